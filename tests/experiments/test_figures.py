"""The figures of the documents are those of results/."""

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments/results"
TABLES = list(RESULTS.glob("*.md"))
MEASUREMENTS = {"speed.csv": "docs/speed.md", "one-seed.csv": "docs/results.md", "further.csv": "docs/results.md"}
DIFFERENCE = re.compile(r"\(([+-][\d.]+), (\S+ to \S+), p")


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
    """Each cell with a figure is in a cell of the same row in results/: a mean, or a difference with its interval."""
    known = {}
    for path in TABLES:
        for label, cells in table_rows(path.read_text(encoding="utf-8")):
            known.setdefault(label, set()).update(cell.split(" (")[0] for cell in cells)
            known[label].update(f"{of[1]} ({of[2]})" for of in map(DIFFERENCE.search, cells) if of)
    text = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    rows = list(table_rows(text.partition("## Systems")[2].partition("\n## ")[0]))
    rows = [(label, cells) for label, cells in rows if cells]  # without the headings of blocks
    assert len(rows) > 15
    for label, cells in rows:
        assert set(cells) <= known[label], label


def test_the_readme_has_figures_of_the_comparison():
    """The speeds, and the gains in BLEU with one decimal, are those of a system's rows in results/."""
    rows_of = {  # of the gain; of the speeds in training and in generation, on a CPU and on a GPU
        "capsule-Transformer": (
            "capsule-Transformer",
            ("capsule-Transformer", "capsule-Transformer"),
            ("capsule-Transformer, compiled", "capsule-Transformer"),
        ),
        "Dynamic Past and Future": (
            "+ GDR",
            ("GDR, both losses", "GDR without losses"),
            ("GDR, both losses, compiled", "GDR without losses"),
        ),
        "GRET": ("+ GRET", ("GRET", "GRET"), ("GRET", "GRET")),
        "CapsNMT": ("CapsNMT, norm after", ("CapsNMT",), ("CapsNMT", "CapsNMT")),
    }
    rows = (*read("comparison.csv"), *read("ablation.csv"))  # with five seeds where there are
    known = {(row["row"].removeprefix("'"), row["column"]): row for row in rows}
    page = (ROOT / "docs/speed.md").read_text(encoding="utf-8")
    on_a_gpu = rows_after(page, "## On a GPU")
    on_a_cpu = rows_after(page, "## Training and generation")
    checked = set()
    for label, cells in table_rows((ROOT / "README.md").read_text(encoding="utf-8")):
        name = label.removeprefix("[").split("]")[0]
        if name in rows_of:
            scored, of_cpu, of_gpu = rows_of[name]
            gain = float(known[scored, "BLEU, mean"]["difference"])
            slower = [on_a_cpu[row][place] for row, place in zip(of_cpu, (0, 3))]
            faster = [on_a_gpu[row][place] for row, place in zip(of_gpu, (0, -1))]
            assert cells == [*(f"{float(speed):.2f}" for speed in (*slower, *faster)), f"{gain:+.1f}"], name
            checked.add(name)
    assert checked == set(rows_of)


def rows_after(page, heading):
    """Return the cells of each row of the first table after a heading, by the row's label."""
    lines = page.partition(heading)[2].partition("\n|---")[2].partition("\n\n")[0].splitlines()[1:]
    rows = ([cell.strip(" `*") for cell in line.strip("|").split("|")] for line in lines)
    return {row[0].replace("`", ""): row[1:] for row in rows}


def test_the_page_of_speeds_has_figures_of_its_measurements():
    """Each figure is in a row of the CSV file with the same label."""
    number = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
    known = {}
    for row in read("speed.csv"):
        known.setdefault(row["what"], set()).update(number.findall(row["value"])[:1])
    rows = list(table_rows((ROOT / "docs/speed.md").read_text(encoding="utf-8")))
    assert len(rows) > 15
    for label, cells in rows:
        assert {figure.replace(",", "") for figure in number.findall(", ".join(cells))} <= known[label], label


@pytest.mark.parametrize("name, page", MEASUREMENTS.items())
def test_measurements_are_numbers_and_their_page_names_the_file(name, page):
    rows = read(name)
    assert all(row["what"] and row["measure"] and row["setting"] and row["unit"] for row in rows)
    for row in rows:
        figures = [float(row[column]) for column in ("value", "difference", "p") if row.get(column)]
        assert figures or row["paper"], row
    assert f"`experiments/results/{name}`" in (ROOT / page).read_text(encoding="utf-8")
