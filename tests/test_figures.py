"""The figures of the documents are those of results/."""

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
TABLES = [path.with_name(path.name.replace("-curves", "")) for path in RESULTS.glob("*-curves.md")]
MEASUREMENTS = {
    "docs/speed.md": "speed.csv",
    "docs/results-one-seed.md": "one-seed.csv",
    "docs/results.md": "further.csv",
}


def table_rows(text):
    """Yield the label and the other cells of each row of a text's tables, without headers, bold and backticks."""
    for table in re.findall(r"^\|[ :|-]+\|\n((?:\|.*\n)+)", text.replace("−", "-"), re.MULTILINE):
        for line in table.splitlines():
            label, *cells = (cell.strip() for cell in re.sub(r"[*`]", "", line)[1:].split(" |"))
            yield label, [cell for cell in cells if re.search(r"\d", cell)]


def read(name):
    with (RESULTS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_page_of_results_has_cells_of_the_tables():
    """Each cell with a figure is a cell of the same row in results/, with or without the difference in its brackets."""
    known = {}
    for path in TABLES:
        for label, cells in table_rows(path.read_text(encoding="utf-8")):
            known.setdefault(label, set()).update(cells, (cell.split(" (")[0] for cell in cells))
    rows = [row for row in table_rows((ROOT / "docs/results.md").read_text(encoding="utf-8")) if row[0] in known]
    assert len(rows) > 15
    for label, cells in rows:
        assert set(cells) <= known[label], label


def test_the_readme_has_figures_of_the_comparison():
    """The speeds, and the gains in BLEU with one decimal, are those of the rows in results/ that a system has."""
    rows_of = {
        "capsule-Transformer": ["+ routed attention", "capsule-Transformer"],
        "Dynamic Past and Future": ["+ GDR, mean", "+ GDR, sum"],
        "GRET": ["+ GRET"],
        "CapsNMT": ["CapsNMT, norm and clip", "CapsNMT, norm after"],
    }
    rows = (*read("readings.csv"), *read("comparison.csv"))
    known = {(row["row"].removeprefix("'"), row["column"]): row for row in rows}
    checked = set()
    for label, cells in table_rows((ROOT / "README.md").read_text(encoding="utf-8")):
        name = label.removeprefix("[").split("]")[0]
        if name in rows_of:
            *_, speeds, gains, _ = cells
            columns = ("training speed", "generation speed")
            assert speeds == ", ".join(f"{float(known[rows_of[name][-1], column]['mean']):.2f}" for column in columns)
            measured = [float(known[row, "BLEU, mean"]["difference"]) for row in rows_of[name]]
            assert [float(gain) for gain in re.findall(r"[+-]?\d+\.\d", gains)] == pytest.approx(measured, abs=0.05)
            checked.add(name)
    assert checked == set(rows_of)


@pytest.mark.parametrize("page", ["docs/speed.md", "docs/results-one-seed.md"])
def test_the_tables_of_a_page_have_figures_of_its_measurements(page):
    """Each figure is in a row of the CSV file with the same label."""
    number = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
    known = {}
    for row in read(MEASUREMENTS[page]):
        texts = (row["value"], row.get("difference", ""), row.get("paper", ""))
        known.setdefault(row["what"], set()).update(match[0] for text in texts if (match := number.search(text)))
    rows = list(table_rows((ROOT / page).read_text(encoding="utf-8")))
    assert len(rows) > 15
    for label, cells in rows:
        assert {figure.replace(",", "") for figure in number.findall(", ".join(cells))} <= known[label], label


@pytest.mark.parametrize("page, name", MEASUREMENTS.items())
def test_measurements_are_numbers_and_their_page_names_the_file(page, name):
    rows = read(name)
    assert all(row["what"] and row["measure"] and row["setting"] and row["unit"] for row in rows)
    for row in rows:
        figures = [float(row[column]) for column in ("value", "difference", "p") if row.get(column)]
        assert figures or row["paper"], row
    assert f"`results/{name}`" in (ROOT / page).read_text(encoding="utf-8")
