"""The page as text: escaped, in one file, with the given figures."""

import json
import re
from html.parser import HTMLParser

import pytest

from fairseq_capsule_lab.analysis.charts import curves_on_page
from fairseq_capsule_lab.cli import main
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
        if tag == "table":
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
    assert "base $x$ & <b>" in structure.tables["scores"][1]
    assert not any(name.startswith("on") for _, attributes in structure.elements for name in attributes)


def test_the_page_loads_nothing_from_elsewhere(page):
    for _, attributes in Structure(page).elements:
        for name in ("src", "href", "xlink:href", "action", "srcset"):
            assert not re.match(r"\w+:|//", attributes.get(name) or "")
    assert "url(" not in page.replace("url(#", "")


def test_the_page_has_scores_lengths_curves_and_sentences(page):
    structure = Structure(page)
    assert list(structure.tables) == ["scores", "lengths"]
    head, base, other = structure.tables["scores"]
    assert head[:3] == ["system", "tokenised BLEU", "p"]
    assert re.fullmatch(r"\d+\.\d\d ± \d+\.\d\d", base[1]) and base[2] == "" and re.fullmatch(r"0\.\d{4}", other[2])
    assert sum(int(row[1]) for row in structure.tables["lengths"][1:]) == 30
    drawn = [attributes["aria-label"] for tag, attributes in structure.elements if tag == "svg"]
    assert [label.partition(" of each")[0] for label in drawn] == [
        *("tokenised BLEU", "validation loss, bits", "validation NLL, bits"),
    ]
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    data = json.loads(found)
    assert len(data["sentences"]) == 30 and HOSTILE in data["sentences"][3]["references"][0]
    assert {len(sentence["texts"]) for sentence in data["sentences"]} == {2}


def test_charts_use_the_text_colour_of_the_page():
    drawn = curves_on_page({"a": {1: 2.0}, "$b$ <x>": {1: 2.0}}, ["a", "$b$ <x>"], "loss")
    assert "currentColor" in drawn and "#012345" not in drawn and "#000000" not in drawn
    assert "$b$ &lt;x&gt;" in drawn and "<style" not in drawn and "<metadata" not in drawn
