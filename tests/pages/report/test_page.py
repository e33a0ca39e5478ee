"""The page as text: escaped, in one file, with the given figures."""

import re
from html.parser import HTMLParser

import pytest

from fairseq_capsule_lab.analysis.charts import scores_on_page
from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.pages.report.page import Cell, table
from tests.pages.report.runs import make_data, make_run

HOSTILE = "</script><script>alert(1)</script>"


class Structure(HTMLParser):
    """Every element with its attributes, and the text of the cells of each table."""

    def __init__(self, page):
        super().__init__()
        self.elements = []
        self.tables = {}
        self._cell = None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.elements.append((tag, attributes))
        if tag == "div" and attributes.get("class") == "table":
            self._rows = self.tables[attributes["id"]] = []
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th"):
            self._rows[-1].append("")
            self._cell = tag

    def handle_endtag(self, tag):
        if tag in ("td", "th", "tr", "table"):
            self._cell = None

    def handle_data(self, data):
        if self._cell:
            self._rows[-1][-1] += data


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    references = make_data(folder / "data", 30)
    references[3] = f"{HOSTILE} rot."
    (folder / "data/raw/test.de").write_text("".join(line + "\n" for line in references))
    names = ["base $x$ & <b>", f"other {HOSTILE.replace('/', '_')}"]
    runs = [make_run(folder / f"run{i}", folder / "data", references, (0.3, 0.1)[i], seed=i) for i in range(2)]
    words = ["report", *runs, "--data", folder / "data", "--out", folder / "out", "--samples", 20, "--names", *names]
    assert main([str(word) for word in words]) == 0
    return (folder / "out/report.html").read_text(encoding="utf-8")


def test_text_is_escaped_in_the_page(page):
    structure = Structure(page)
    scripts = [attributes for tag, attributes in structure.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    assert "b" in {tag for tag, _ in structure.elements}  # the bold names in the summary
    assert "base $x$ & <b>" in structure.tables["scores-table"][1]
    assert not any(name.startswith("on") for _, attributes in structure.elements for name in attributes)


def test_the_page_loads_nothing_from_elsewhere(page):
    for _, attributes in Structure(page).elements:
        for name in ("src", "href", "xlink:href", "action", "srcset"):
            assert not re.match(r"\w+:|//", attributes.get(name) or "")
    assert "default-src 'none'" in page and "url(" not in page.replace("url(#", "")


def test_identifiers_are_unique(page):
    names = [attributes["id"] for _, attributes in Structure(page).elements if "id" in attributes]
    drawn = re.compile(r"(?:[mp]|C\w+_)[0-9a-f]{10}")  # matplotlib makes the same ids for the same content
    ours = [name for name in names if not drawn.fullmatch(name)]
    assert len(ours) == len(set(ours))


def test_the_page_has_all_tables_with_their_figures(page):
    tables = Structure(page).tables
    assert list(tables) == ["scores-table", "lengths-table", "ratios-table", "speeds-table", "runs-table"]
    head, base, _ = tables["scores-table"]
    assert head[:3] == ["system", "tokenised BLEU", "p"] and head[-1] == "length ratio"
    assert re.fullmatch(r"\d+\.\d\d ± \d+\.\d\d", base[1]) and base[2] == ""
    head, row, _ = tables["speeds-table"]
    assert head[1:5] == ["parameters", "of them embeddings", "training, words/s", "training, × baseline"]
    assert row[1:5] == ["949,288", "286,720", "2,004", "0.81"]
    assert sum(int(row[1]) for row in tables["lengths-table"][1:]) == 30


def test_charts_use_the_text_colour_of_the_page():
    drawn = scores_on_page(["a", "$b$ <x>"], [(20, 1), (22, 1)], "BLEU")
    assert "currentColor" in drawn and "#012345" not in drawn and "#000000" not in drawn
    assert "$b$ &lt;x&gt;" in drawn and "<style" not in drawn and "<metadata" not in drawn


def test_an_eighth_system_looks_different_from_the_first():
    def styles(number):
        drawn = scores_on_page([f"system {i}" for i in range(number)], [(20, 1)] * number, "BLEU")
        return set(re.findall(r'<use xlink:href="(\S+)".*? style="(.*?)"', drawn))

    assert len(styles(8)) == len(styles(7)) + 1


def test_a_table_keeps_numbers_for_sorting():
    rows = [[Cell("x<y"), Cell("1.00 ± 0.50", 1.0049)], [Cell("z"), Cell("")]]
    text = table("t", "A <caption>", ["a&b", "n"], rows)
    assert "a&amp;b" in text and "x&lt;y" in text and 'data-value="1.0049"' in text and "A &lt;caption&gt;" in text
