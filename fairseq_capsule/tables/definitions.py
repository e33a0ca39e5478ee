"""Definitions of tables and figures, read from configs/tables/*.yaml and checked."""

import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import yaml

from fairseq_capsule.errors import UserError

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGS = REPOSITORY / "configs"
TEXT_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # libyaml is faster; PyYAML may lack it
PAPERS = CONFIGS / "papers.yaml"

Words = Tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """One measure on one corpus.

    Attributes:
        corpus: its name, and overrides for every run on it.
        splits: the test sets; the figure is the mean over them.
    """

    label: str
    measure: str
    corpus: Words
    splits: Words


@dataclass(frozen=True)
class Row:
    """One system of a table.

    Attributes:
        run: the configuration's name and its overrides, with `{name}` for values of `at` and of a scale; None if the
            paper quotes the row from other work.
        on, teacher, against: labels of the rows that it starts from, learns from, and is compared with.
        paper: the paper's figure for each column, as printed, or None.
        at: the values of its grid, by the grid's keys.
    """

    label: str
    run: Optional[Words] = None
    on: Optional[str] = None
    teacher: Optional[str] = None
    against: Optional[str] = None
    paper: Tuple[Optional[str], ...] = ()
    at: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """One table or figure of a paper.

    Attributes:
        figure: how it is drawn; empty if it is not. `x` is a key of the grid, `rows`, the label of a column, or the
            name of the axis of columns with several points. `series` is a key of the grid. `y` is the label of a column
            that is drawn over the column `x`.
    """

    name: str
    title: str
    paper: str
    paper_title: str
    columns: Tuple[Column, ...]
    rows: Tuple[Row, ...]
    figure: Mapping[str, str]
    notes: Tuple[str, ...]

    @property
    def is_figure(self) -> bool:
        """Whether it is a figure in the paper. Such a one is always drawn."""
        return "-figure" in self.name

    def row(self, label: str) -> Row:
        """The row with this label; raises a UserError if there is none."""
        for row in self.rows:
            if row.label == label:
                return row
        rows = "; ".join(row.label for row in self.rows if row.run)
        raise UserError(f"{self.name} has no row {label!r}; its rows are: {rows}")

    def to_run(self, labels: Optional[List[str]] = None) -> List[Row]:
        """The rows that can be run, or of these the ones in `labels`.

        Raises:
            UserError: an unknown row, or one that the paper quotes from other work.
        """
        for row in map(self.row, labels or ()):
            if row.run is None:
                raise UserError(f"{self.name}: {row.label!r} is quoted from another paper and cannot be run")
        return [row for row in self.rows if row.run and (not labels or row.label in labels)]


def table_names() -> List[str]:
    """The names of all definitions; raises a UserError outside a checkout, which holds them."""
    names = sorted(path.stem for path in (CONFIGS / "tables").glob("*.yaml"))
    if not names:
        raise UserError(
            f"{CONFIGS / 'tables'}: no tables; they belong to a checkout of fairseq-capsule (pip install -e)"
        )
    return names


def load_table(name: str) -> Table:
    """Read a definition.

    Raises:
        UserError: there is no such table, or its file is not a valid definition.
    """
    path = CONFIGS / "tables" / f"{name}.yaml"
    if name not in table_names():
        raise UserError(f"no table {name!r}; there are: {', '.join(table_names())}")
    content = read_yaml(path)
    _require_keys(path, content, {"title", "paper", "columns", "rows", "against", "figure", "notes"})
    papers = read_yaml(PAPERS)
    if content["paper"] not in papers:
        raise UserError(f"{path}: paper {content['paper']!r} is none of {', '.join(papers)}")
    columns = tuple(
        Column(label, spec["measure"], tuple(spec["corpus"].split()), tuple(spec.get("splits", "test").split()))
        for label, spec in content["columns"].items()
    )
    against = content.get("against")
    exempt = {against, content["rows"].get(against, {}).get("on")}  # the row of all comparisons, and its baseline
    rows = tuple(
        row
        for label, spec in content["rows"].items()
        for row in _rows(path, label, spec, None if label in exempt else against, len(columns))
    )
    notes = tuple(content.get("notes", ()))
    table = Table(
        name,
        content["title"],
        content["paper"],
        papers[content["paper"]],
        columns,
        rows,
        content.get("figure", {}),
        notes,
    )
    for row in rows:
        _require_an_end(table, row, ())
    return table


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template with a value for each `{name}` in it; values are inserted once, as they are.

    Raises:
        UserError: a name has no value.
    """
    missing = set(re.findall(r"\{(\w+)\}", template)) - set(values)
    if missing:
        raise UserError(f"{template!r}: no value for {', '.join(sorted(missing))}; there are: {', '.join(values)}")
    return re.sub(r"\{(\w+)\}", lambda found: values[found[1]], template)


def read_yaml(path: Path) -> Dict[str, Any]:
    """Read a YAML file with scalars as text, so that a printed 26.30 does not become 26.3; `null` is None."""
    try:
        return _without_null(yaml.load(path.read_text(encoding="utf-8"), TEXT_LOADER))
    except yaml.YAMLError as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}") from error


def _without_null(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_null(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_without_null(value) for value in node]
    return None if node == "null" else node


def _rows(path: Path, label: str, spec: Dict[str, Any], against: Optional[str], columns: int) -> Iterator[Row]:
    """The row, or one row for each point of its grid."""
    _require_keys(path, spec, {"run", "on", "teacher", "against", "paper", "grid"})
    grid = spec.get("grid", {})
    words = tuple(spec["run"].split()) if "run" in spec else None
    others = (spec.get("on"), spec.get("teacher"), spec.get("against", against) if words else None)
    for number, values in enumerate(itertools.product(*grid.values())):
        at = dict(zip(grid, values))
        name = filled(label, at) if grid else label
        printed = spec.get("paper", [])
        printed = printed[number] if grid and printed else printed
        if len(printed) > columns:
            raise UserError(f"{path}: {name}: {len(printed)} figures of the paper for {columns} columns")
        yield Row(name, words, *others, tuple(printed) + (None,) * (columns - len(printed)), at)


def _require_an_end(table: Table, row: Row, above: Words) -> None:
    """Raise a UserError if rows need each other in a circle, or a row that does not exist."""
    if row.label in above:
        raise UserError(f"{table.name}: {' needs '.join((*above, row.label))}: the rows need each other in a circle")
    for label in filter(None, (row.on, row.teacher, row.against)):
        _require_an_end(table, table.row(label), (*above, row.label))


def _require_keys(path: Path, content: Dict[str, Any], known: set) -> None:
    for key in content:
        if key not in known:
            raise UserError(f"{path}: {key!r} is none of {', '.join(sorted(known))}")
