"""What a table or figure of a paper shows, and what was trained for it: configs/tables/*.yaml, read and checked."""

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import yaml

from fairseq_capsule.errors import UserError

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGS = REPOSITORY / "configs"
PAPERS = {
    "duan": "Duan et al. 2020, Capsule-Transformer for Neural Machine Translation",
    "zheng": "Zheng et al. 2019, Dynamic Past and Future for Neural Machine Translation",
    "weng": "Weng et al. 2020, GRET: Global Representation Enhanced Transformer",
    "wang": "Wang et al. 2019, Towards Linear Time Neural Machine Translation with Capsule Networks",
}

Words = Tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """A measure of a corpus: its name, and overrides for every run on it. Of several splits the mean is taken."""

    label: str
    measure: str
    corpus: Words
    splits: Words


@dataclass(frozen=True)
class Row:
    """One system of a table.

    Attributes:
        run: the configuration's name and its overrides, or None where the paper quotes others.
        on, teacher, against: labels of the rows that it starts from, is taught by, and is compared with.
        paper: the paper's figure for each column, as printed, or None.
        at: where in a figure it stands: the values of its grid.
    """

    label: str
    run: Optional[Words] = None
    on: Optional[str] = None
    teacher: Optional[str] = None
    against: Optional[str] = None
    paper: Tuple[Optional[str], ...] = ()
    at: Mapping[str, str] = field(default_factory=dict)

    @property
    def needs(self) -> Tuple[str, ...]:
        """The rows that must be there before it."""
        return tuple(label for label in (self.on, self.teacher, self.against) if label)


@dataclass(frozen=True)
class Table:
    """`figure` is empty for a table. Its `x` is a grid's key, or `rows`, or else says what the columns' own points are;
    its `series` is a grid's key."""

    name: str
    title: str
    paper: str
    columns: Tuple[Column, ...]
    rows: Tuple[Row, ...]
    figure: Mapping[str, str]
    notes: Tuple[str, ...]

    def row(self, label: str) -> Row:
        """Raises UserError: there is no such row."""
        for row in self.rows:
            if row.label == label:
                return row
        rows = "; ".join(row.label for row in self.rows if row.run)
        raise UserError(f"{self.name} has no row {label!r}; its rows are: {rows}")

    def in_order(self, labels: Optional[List[str]] = None) -> List[Row]:
        """The rows that are run, or those of `labels`, with all that they need, each behind what it needs.

        Raises:
            UserError: an unknown row, one that the paper quotes, or rows that need each other.
        """
        ordered: List[Row] = []

        def add(row: Row, above: Tuple[str, ...]) -> None:
            if row.label in above:
                raise UserError(f"{self.name}: {' needs '.join((*above, row.label))}: no order can be found")
            if row.run is None:
                raise UserError(f"{self.name}: {row.label!r} is quoted from another paper and cannot be run")
            for label in row.needs:
                add(self.row(label), (*above, row.label))
            if row not in ordered:
                ordered.append(row)

        for row in [self.row(label) for label in labels] if labels else [row for row in self.rows if row.run]:
            add(row, ())
        return ordered


def table_names() -> List[str]:
    """Raises UserError: the package does not lie in a checkout, where the definitions are."""
    names = sorted(path.stem for path in (CONFIGS / "tables").glob("*.yaml"))
    if not names:
        raise UserError(
            f"{CONFIGS / 'tables'}: no tables; they belong to a checkout of fairseq-capsule (pip install -e)"
        )
    return names


def load_table(name: str) -> Table:
    """Read a definition.

    Raises:
        UserError: there is no such table, or its file is not one.
    """
    path = CONFIGS / "tables" / f"{name}.yaml"
    if name not in table_names():
        raise UserError(f"no table {name!r}; there are: {', '.join(table_names())}")
    content = read_yaml(path)
    _require_keys(path, content, {"title", "paper", "columns", "rows", "against", "figure", "notes"})
    if content["paper"] not in PAPERS:
        raise UserError(f"{path}: paper {content['paper']!r} is none of {', '.join(PAPERS)}")
    columns = tuple(_column(label, **spec) for label, spec in content["columns"].items())
    against = content.get("against")
    exempt = {
        against,
        content["rows"].get(against, {}).get("on"),
    }  # what all others are compared with, and its baseline
    rows = tuple(
        row
        for label, spec in content["rows"].items()
        for row in _rows(path, label, spec, None if label in exempt else against, len(columns))
    )
    table = Table(
        name,
        content["title"],
        content["paper"],
        columns,
        rows,
        content.get("figure", {}),
        tuple(content.get("notes", ())),
    )
    table.in_order()
    return table


def read_yaml(path: Path) -> Dict[str, Any]:
    """A YAML file whose scalars stay as they are written: a printed 26.30 is not 26.3. `null` is None."""
    try:
        return _without_null(yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader))
    except yaml.YAMLError as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}") from error


def _without_null(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_null(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_without_null(value) for value in node]
    return None if node == "null" else node


def _column(label: str, measure: str, corpus: str, splits: str = "test") -> Column:
    return Column(label, measure, tuple(corpus.split()), tuple(splits.split()))


def _rows(path: Path, label: str, spec: Dict[str, Any], against: Optional[str], columns: int) -> Iterator[Row]:
    """The row, or one for every point of its grid."""
    _require_keys(path, spec, {"run", "on", "teacher", "against", "paper", "grid"})
    grid = spec.get("grid", {})
    points = [dict(zip(grid, values)) for values in itertools.product(*grid.values())]
    for number, point in enumerate(points):
        name, words = label, spec.get("run")
        for key, value in point.items():
            name = name.replace(f"{{{key}}}", value)
            words = words.replace(f"{{{key}}}", value)
        printed = spec.get("paper", [])
        printed = printed[number] if grid and printed else printed
        if len(printed) > columns:
            raise UserError(f"{path}: {name}: {len(printed)} figures of the paper for {columns} columns")
        yield Row(
            name,
            tuple(words.split()) if words else None,
            spec.get("on"),
            spec.get("teacher"),
            spec.get("against", against) if words else None,
            tuple(printed) + (None,) * (columns - len(printed)),
            point,
        )


def _require_keys(path: Path, content: Dict[str, Any], known: set) -> None:
    for key in content:
        if key not in known:
            raise UserError(f"{path}: {key!r} is none of {', '.join(sorted(known))}")
