"""Tables, and complete files."""

import csv
import io
from dataclasses import dataclass
from typing import Optional

import pytest
from matplotlib.figure import Figure

from fairseq_capsule_lab.analysis.output import Analysis, column, comma_separated, escaped, markdown_table


@dataclass(frozen=True)
class Row:
    name: str = column("the name")
    score: Optional[float] = column("score", digits=1)


ROWS = [Row("a, b|c", 1.25), Row("ü", None)]


def analysis():
    figure = Figure()
    figure.subplots().plot([1, 2], [3, 4])
    return Analysis("kind", "text\n", ROWS, figure)


def test_a_markdown_table_rounds_and_leaves_none_empty():
    assert markdown_table(ROWS) == "| the name | score |\n| --- | --- |\n| a, b\\|c | 1.2 |\n| ü |  |\n"


def test_csv_has_all_digits():
    rows = list(csv.reader(io.StringIO(comma_separated(ROWS))))
    assert rows == [["name", "score"], ["a, b|c", "1.25"], ["ü", ""]]


@pytest.mark.parametrize("text", ["=cmd|'/C calc'!A0", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "-1\r=1"])
def test_csv_has_no_formulas(text):
    [_, row] = csv.reader(io.StringIO(comma_separated([Row(text, 1.25)])))
    assert row == ["'" + text.replace("\r", " "), "1.25"]


@pytest.mark.parametrize("text", ["+0.5", "-1,000.25", "a = b", "≤ 10"])
def test_csv_keeps_numbers_and_other_texts(text):
    [_, row] = csv.reader(io.StringIO(comma_separated([Row(text, -1.25)])))
    assert row == [text, "-1.25"]


def test_markdown_characters_are_escaped():
    assert escaped("a_b _c_ <i> & *x* [y](z) `q` \\") == r"a_b \_c\_ &lt;i&gt; &amp; \*x\* \[y\](z) \`q\` \\"


def test_the_four_files_are_reproducible(tmp_path):
    paths = analysis().write(tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["kind.md", "kind.csv", "kind.png", "kind.svg"]
    assert paths[2].read_bytes().startswith(b"\x89PNG") and b"<svg" in paths[3].read_bytes()
    again = analysis().write(tmp_path / "again")
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    assert len(list(paths[0].parent.iterdir())) == 4


@pytest.mark.parametrize("control", ["\n", "\r", "\u2028"])
def test_text_with_control_characters_stays_in_its_cell(control):
    (line,) = f"| {escaped(f'a{control}b')} |".splitlines()
    assert line.isprintable()


def test_no_mark_turns_the_direction_of_a_text():
    assert escaped("a\u202eb\u2066c\u200fd") == "a b c d"
