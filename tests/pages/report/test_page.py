"""The page as text: escaped, in one file, with the given figures."""

import html
import json
import re

import pytest

from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.pages.report.charts import curves_chart
from tests.pages.report.runs import make_data, make_run

HOSTILE = "</script><script>alert(1)</script>"


def table(page, name):
    """Return the texts of the cells of a table, by rows."""
    (content,) = re.findall(f'<table id="{name}">(.*?)</table>', page, re.DOTALL)
    rows = re.findall("<tr>(.*?)</tr>", content, re.DOTALL)
    return [[html.unescape(cell) for cell in re.findall("<t[dh][^>]*>(.*?)</t[dh]>", row)] for row in rows]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    references = make_data(folder / "data", 30)
    references[3] = f"{HOSTILE} rot."
    (folder / "data/raw/test.de").write_text("".join(line + "\n" for line in references))
    names = ["base $x$ & <b>", f"other {HOSTILE.replace('/', '_')}"]
    runs = [make_run(folder / f"run{i}", folder / "data", references, (0.3, 0.1)[i], seed=i) for i in range(2)]
    words = ["report", *runs, "--data", folder / "data", "--out", folder / "out", "--samples", 20]
    words += ["--names", names[0], "--names", names[1]]
    assert main([str(word) for word in words]) == 0
    return (folder / "out/report.html").read_text(encoding="utf-8")


def test_text_is_escaped_in_the_page(page):
    assert re.findall("<script[^>]*>", page) == ['<script type="application/json" id="data">', "<script>"]
    assert table(page, "scores")[1][0] == "base $x$ & <b>"


def test_the_page_loads_nothing_from_elsewhere(page):
    assert re.findall(r'\b(?:src|href|action|srcset)="(?!#)[^"]*"|url\((?!#)', page) == []


def test_the_page_has_scores_lengths_curves_and_sentences(page):
    head, base, other = table(page, "scores")
    assert head[:3] == ["system", "tokenised BLEU", "p"]
    assert re.fullmatch(r"\d+\.\d\d ± \d+\.\d\d", base[1]) and base[2] == "" and re.fullmatch(r"0\.\d{4}", other[2])
    assert sum(int(row[1]) for row in table(page, "lengths")[1:]) == 30
    drawn = re.findall('<svg[^>]* aria-label="(.*?)(?: of each.*?)?"', page)
    assert drawn == ["tokenised BLEU", "validation loss, bits", "validation NLL, bits"]
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    data = json.loads(found)
    assert len(data["sentences"]) == 30 and HOSTILE in data["sentences"][3]["references"][0]
    assert {len(sentence["texts"]) for sentence in data["sentences"]} == {2}


def test_charts_use_the_text_colour_of_the_page():
    drawn = curves_chart({"a": {1: 2.0}, "$b$ <x>": {1: 2.0}}, ["a", "$b$ <x>"], "loss")
    assert "currentColor" in drawn and "#012345" not in drawn and "#000000" not in drawn
    assert "$b$ &lt;x&gt;" in drawn and "<style" not in drawn and "<metadata" not in drawn
