"""`fairseq-capsule report`: what it writes, links and refuses."""

import json
import shutil

import numpy as np
import pytest

from fairseq_capsule_lab.pages.report import charts
from tests.pages.report.runs import make_data, make_run


@pytest.fixture
def place(tmp_path):
    references = make_data(tmp_path / "data", 30)
    for number, name in enumerate(("a", "b")):
        make_run(tmp_path / name, tmp_path / "data", references, 0.2, seed=number)
    return tmp_path


@pytest.fixture
def words(place):
    return ["report", place / "a", place / "b", "--data", place / "data", "--out", place / "out", "--samples", 10]


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out the charts, which take most of the time. The test looks at other parts of the page."""
    monkeypatch.setattr(charts, "_svg", lambda figure, description: "")


def change(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def data_of(page):
    text = page.read_text(encoding="utf-8")
    return json.loads(text.partition('id="data">')[2].partition("</script>")[0])


def test_the_page_contains_runs_and_sentences(command, words, place):
    result = command(*words)
    assert result.status == 0 and result.out == f"{place / 'out/report.html'}: runs: 2; sentences: 30\n"
    data = data_of(place / "out/report.html")
    assert data["systems"] == ["a", "b"] and len(data["sentences"]) == 30
    assert data["sentences"][0]["source"] == (place / "data/raw/test.en").read_text().splitlines()[0]


def test_the_same_figures_give_the_same_page(command, words, place):
    pages = []
    for _ in range(2):
        assert command(*words).status == 0
        pages.append((place / "out/report.html").read_bytes())
    assert pages[0] == pages[1]


def test_a_run_without_a_log_or_a_manifest_is_accepted(command, words, place):
    for name in ("train.log", "manifest.json", "settings.json"):
        (place / "a" / name).unlink()
    assert command(*words).status == 0
    assert "No validation in the log of: a." in (place / "out/report.html").read_text()


def test_settings_in_which_the_runs_differ_are_named(command, words, place, undrawn):
    assert command(*words).status == 0
    assert "The runs differ" not in (place / "out/report.html").read_text(encoding="utf-8")
    change(place / "b/evaluation/test/settings.json", beam="4")
    assert command(*words).status == 0
    assert "The runs differ in: beam." in (place / "out/report.html").read_text(encoding="utf-8")


class TestRefusals:
    def test_a_run_that_was_not_evaluated_is_refused(self, refused, words, place):
        shutil.rmtree(place / "b/evaluation")
        line = refused(*words)
        assert line.startswith(f"{place / 'b'}: not evaluated on 'test'; run scripts/evaluate.sh --split test ")
        assert not (place / "out").exists()

    def test_other_references_are_refused(self, refused, words, place):
        change(place / "b/evaluation/test/scores.json", references=["elsewhere/newstest.de"])
        assert "evaluated against newstest.de" in refused(*words)

    def test_another_measure_is_refused(self, refused, words, place):
        change(place / "b/evaluation/test/scores.json", scores={"rouge1": {"score": 30.0, "signature": "case:mixed"}})
        assert "evaluated by ROUGE" in refused(*words)

    def test_a_run_that_was_evaluated_without_case_is_refused(self, refused, words, place):
        change(place / "b/evaluation/test/scores.json", scores={"chrf": {"score": 30.0, "signature": "case:lc"}})
        assert "evaluated without case" in refused(*words)

    def test_another_test_set_is_refused(self, refused, words, place):
        shutil.rmtree(place / "b")
        others = make_data(place / "other", 30, seed=2)
        make_run(place / "b", place / "data", others, 0.2)
        assert refused(*words).startswith(f"{place / 'b'}: evaluated on another text than ")

    def test_another_number_of_sentences_is_refused(self, refused, words, place):
        shutil.rmtree(place / "b")
        make_run(place / "b", place / "data", make_data(place / "other", 12), 0.2)
        assert "12 translations, but" in refused(*words)

    def test_a_run_beside_itself_is_refused(self, refused, words, place):
        line = "a comparison needs two different runs or more; name another run folder"
        assert refused("report", place / "a", place / "a", *words[3:], "--names", "a", "--names", "b") == line


def test_external_scores_have_intervals_and_a_p(command, words, place, undrawn):
    scores = {"a": [0.5 + 0.001 * number for number in range(30)], "b": [0.6 - 0.001 * number for number in range(30)]}
    (place / "comet.json").write_text(json.dumps(scores))
    assert command(*words, "--external", f"COMET={place / 'comet.json'}").status == 0
    page = (place / "out/report.html").read_text(encoding="utf-8")
    assert ">COMET</th>" in page and "metric:COMET|mean:sentences" in page
    assert f">{np.mean(scores['a']):.4f} ± 0.00" in page and f">{np.mean(scores['b']):.4f} ± 0.00" in page
