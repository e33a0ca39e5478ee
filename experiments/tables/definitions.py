"""Definitions of tables and figures, read from configs/tables/*.yaml or a file of the user, and checked."""

import itertools
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import yaml

from capsule_routing.errors import UserError
from experiments.tables.measures import MEASURES

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGS = REPOSITORY / "configs"
TEXT_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # libyaml is faster; PyYAML may lack it
TITLES = CONFIGS / "titles.yaml"

Words = Tuple[str, ...]

# The keys of a definition, and the kind of each value.
TABLE = {"title": str, "paper": str, "columns": dict, "rows": dict, "against": str, "figure": dict, "notes": list}
COLUMN = {"corpus": str, "measure": str, "splits": str, "only": str}
FIGURE = {"x": str, "y": str, "series": str}
ROW = {"run": str, "on": str, "teacher": str, "against": str, "paper": list, "grid": dict}
_KINDS: Dict[type, str] = {str: "text", list: "a list", dict: "keys with values"}


@dataclass(frozen=True)
class Column:
    """One measure on one corpus.

    Attributes:
        corpus: its name, and overrides for every run on it.
        splits: the test sets; the figure is the mean over them.
        only: options of a model, such as `guided_heads=both`: rows have the figure whose model has one of them; empty
            for all rows.
    """

    label: str
    measure: str
    corpus: Words
    splits: Words
    only: Words = ()


@dataclass(frozen=True)
class Row:
    """One system of a table.

    Attributes:
        run: the configuration's name and its overrides, with `{name}` for values of `at` and of a scale; None if the
            paper quotes the row from other work.
        on, teacher, against: labels of the rows that it starts from, learns from, and is compared with.
        paper: the paper's figure for each column, as printed, or None.
        at: the values of its grid, by the grid's keys.
        defined: its label before the values of its grid were filled in.
    """

    label: str
    run: Optional[Words] = None
    on: Optional[str] = None
    teacher: Optional[str] = None
    against: Optional[str] = None
    paper: Tuple[Optional[str], ...] = ()
    at: Mapping[str, str] = field(default_factory=dict)
    defined: str = ""


@dataclass(frozen=True)
class Table:
    """One table or figure of a paper.

    Attributes:
        source: the file of the definition.
        paper: its key in configs/titles.yaml; empty if the table is of no paper.
        figure: how it is drawn; empty if it is not. `x` is a key of the grid, `rows`, the label of a column, or the
            name of the axis of columns with several points. `series` is a key of the grid. `y` is the label of a column
            that is drawn over the column `x`.
    """

    source: Path
    title: str
    paper: str
    paper_title: str
    columns: Tuple[Column, ...]
    rows: Tuple[Row, ...]
    figure: Mapping[str, str]
    notes: Tuple[str, ...]

    @property
    def name(self) -> str:
        return self.source.stem

    def row(self, label: str) -> Row:
        """The row with this label; raises a UserError if there is none that can be run."""
        rows = {row.label: row for row in self.rows if row.run}
        if label not in rows:
            raise UserError(f"{self.name} has no row {label!r} with a 'run'; those are: {'; '.join(rows)}")
        return rows[label]

    def to_run(self, labels: Sequence[str] = ()) -> List[Row]:
        """The rows that can be run, or of these the ones in `labels`, if any; raises a UserError for another label."""
        chosen = [self.row(label) for label in labels]
        return [row for row in self.rows if row.run and (not labels or row in chosen)]


def table_names() -> List[str]:
    """The names of all definitions."""
    return sorted(path.stem for path in (CONFIGS / "tables").glob("*.yaml"))


def load_table(name: str) -> Table:
    """Read a definition by its name in configs/tables, or by the path of a YAML file.

    Raises:
        UserError: there is no such table, or its file is not a valid definition.
    """
    names = table_names()
    path = Path(name).absolute() if name.endswith(".yaml") else CONFIGS / "tables" / f"{name}.yaml"
    if name not in names and not name.endswith(".yaml"):
        raise UserError(f"no table {name!r}; there are: {', '.join(names)}; or give the path of a YAML file")
    content = _checked(path, "the table", read_yaml(path), TABLE, required=("title", "columns", "rows"))
    paper = content.get("paper") or ""
    titles = read_yaml(TITLES)
    if paper and paper not in titles:
        raise UserError(f"{path}: paper {paper!r} is none of {', '.join(titles)}; add it to {TITLES}, or leave it out")
    columns = []
    for label, column in content["columns"].items():
        spec = _checked(path, f"column {label!r}", column, COLUMN, required=("corpus", "measure"))
        splits = (spec.get("splits") or "test").split()
        only = tuple((spec.get("only") or "").split())
        for option in only:
            if "=" not in option:
                raise UserError(f"{path}: column {label!r}: only: {option!r} is not OPTION=VALUE")
        columns.append(Column(label, spec["measure"], tuple(spec["corpus"].split()), tuple(splits), only))
    specs = {label: _checked(path, f"row {label!r}", spec or {}, ROW) for label, spec in content["rows"].items()}
    against = content.get("against")
    exempt = {against, specs.get(against, {}).get("on")}  # the row of all comparisons, and its baseline
    rows = tuple(
        row
        for label, spec in specs.items()
        for row in _rows(path, label, spec, None if label in exempt else against, len(columns))
    )
    for label, number in Counter(row.label for row in rows).items():
        if number > 1:
            raise UserError(f"{path}: {number} rows are named {label!r}; rename one, or name each {{key}} of its grid")
    figure = content.get("figure") or {}
    if figure:
        _checked(path, "figure", figure, FIGURE, required=("x",))
    notes = tuple(content.get("notes") or ())
    table = Table(path, content["title"], paper, titles.get(paper, ""), tuple(columns), rows, figure, notes)
    _require_known_names(table)
    return table


def _require_known_names(table: Table) -> None:
    """Raise a UserError if a column has an unknown measure, or if the figure names what the table does not have."""
    for column in table.columns:
        if column.measure not in MEASURES:
            raise UserError(
                f"{table.source}: column {column.label!r}: measure {column.measure!r} is none of {', '.join(MEASURES)}"
            )
        if not MEASURES[column.measure].score and column.splits != ("test",):
            raise UserError(
                f"{table.source}: column {column.label!r}: splits are for scores; {column.measure} has a set of its own"
            )
    known = {"rows", *(column.label for column in table.columns), *(key for row in table.rows for key in row.at)}
    if any(MEASURES[column.measure].by_words for column in table.columns):
        known.add(table.figure.get("x", "rows"))  # the name of the axis of their points
    for name, axis in table.figure.items():
        if axis not in known:
            raise UserError(
                f"{table.source}: figure: {name} is {axis!r}; it must be one of: {', '.join(sorted(known))}"
            )


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template with a value for each `{name}` in it; values are inserted once, as they are.

    Raises:
        UserError: a name has no value.
    """
    try:
        return re.sub(r"\{(\w+)\}", lambda name: values[name[1]], template)
    except KeyError as error:
        raise UserError(f"{template!r}: no value for {error}; there are: {', '.join(values)}") from error


class _Loader(TEXT_LOADER):
    """Reads `null` as None, and refuses a repeated key. PyYAML keeps only the last of its values."""

    def construct_scalar(self, node: yaml.ScalarNode) -> Optional[str]:
        return None if node.value == "null" else super().construct_scalar(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Dict[Any, Any]:
        for key, number in Counter(key.value for key, _ in node.value).items():
            if number > 1:
                line = node.start_mark.line + 1
                raise yaml.YAMLError(f"the keys from line {line} on: {key!r} is repeated; rename or delete one")
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Dict[str, Any]:
    """Read a YAML file with scalars as text, so that a printed 26.30 does not become 26.3; `null` is None."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}") from error


def _rows(path: Path, label: str, spec: Dict[str, Any], against: Optional[str], columns: int) -> Iterator[Row]:
    """The row, or one row for each point of its grid."""
    grid = spec.get("grid") or {}
    for key, values in grid.items():
        if not isinstance(values, list):
            raise UserError(f"{path}: row {label!r}: {key} of its grid must be a list, such as [1, 2]")
    words = tuple(spec["run"].split()) if spec.get("run") else None
    others = (spec.get("on"), spec.get("teacher"), spec.get("against", against) if words else None)
    points = list(itertools.product(*grid.values()))
    printed = spec.get("paper") or []
    of_points = printed if grid and printed else [printed] * len(points)
    fit = all(isinstance(figures, list) and len(figures) <= columns for figures in of_points)
    if len(of_points) != len(points) or not fit:
        each = f" for each of its {len(points)} points" if grid else ""
        raise UserError(f"{path}: row {label!r}: paper must be a list of at most {columns} figures{each}")
    for values, figures in zip(points, of_points):
        at = dict(zip(grid, values))
        name = filled(label, at) if grid else label
        yield Row(name, words, *others, tuple(figures) + (None,) * (columns - len(figures)), at, label)


def _checked(path: Path, what: str, spec: Any, kinds: Mapping[str, type], required: Words = ()) -> Dict[str, Any]:
    """Return a part of a definition; raise a UserError for a wrong key, a wrong kind of value or a missing key."""
    if not isinstance(spec, dict):
        raise UserError(f"{path}: {what} must have keys: {', '.join(kinds)}")
    for key, value in spec.items():
        if key not in kinds:
            raise UserError(f"{path}: {what}: {key!r} is none of {', '.join(sorted(kinds))}")
        if value is not None and not isinstance(value, kinds[key]):
            raise UserError(f"{path}: {what}: {key} must be {_KINDS[kinds[key]]}, not {str(value)[:80]!r}")
    for key in required:
        if not spec.get(key):
            raise UserError(f"{path}: {what} has no {key!r}; add it")
    return spec
