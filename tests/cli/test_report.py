"""`fairseq-capsule report`: what it writes, links and refuses."""

import json
import os
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fairseq_capsule_lab.analysis import charts
from fairseq_capsule_lab.cli import report
from tests.libraries import library
from tests.pages.report.runs import make_data, make_run, write


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


def test_a_sentence_links_only_to_pages_of_the_same_sentence(command, words, place, undrawn):
    pages = place / "pages of b"
    pages.mkdir()
    sources = [line for line in (place / "b/evaluation/test/generate.out").read_text().splitlines() if line[:2] == "S-"]
    for number, text in ((3, sources[3].partition("\t")[2]), (4, "ANOTHER ONE"), (5, sources[5].partition("\t")[2])):
        np.savez(pages / f"test-{number}.npz", source=np.array([*text.replace("DER", "DE@@ R").split(), "</s>"]))
        (pages / f"test-{number}.html").touch()
    (pages / "test-5.npz").write_bytes(b"damaged")
    assert command(*words, "--pages", f"b={pages}").status == 0
    links = [sentence["pages"] for sentence in data_of(place / "out/report.html")["sentences"]]
    assert links[3] == [None, "../pages%20of%20b/test-3.html"]
    assert [pair for number, pair in enumerate(links) if number != 3] == [[None, None]] * 29
    assert command(*words, "--pages", f"c={pages}").err.endswith("no run has that name; choose one of a, b\n")


def array_file(header):
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize(
    "content",
    [b"", array_file(b"{'descr': (((\n"), array_file(b"{'descr':'<f8','fortran_order':False,'shape':(0,)}\n"), None],
    ids=["empty", "header", "one array", "numbers"],
)
def test_a_foreign_file_among_the_pages_is_skipped(command, words, place, undrawn, content):
    if content is None:
        np.savez(place / "test-3.npz", source=np.arange(5))
    else:
        (place / "test-3.npz").write_bytes(content)
    assert command(*words, "--pages", f"b={place}").status == 0


def test_a_run_without_a_log_or_a_manifest_is_accepted(command, words, place):
    for name in ("train.log", "manifest.json", "settings.json"):
        (place / "a" / name).unlink()
    assert command(*words).status == 0
    assert "No validation in the log of: a." in (place / "out/report.html").read_text()


@pytest.mark.parametrize("ratio", ["1" * 401, "NaN", "1e308", "-0.1", "1e13", "[1]", '"1"', "null", "{}", ""])
def test_damaged_measures_are_named(refused, words, place, ratio):
    (place / "b/measures/throughput-train.json").write_text(f'{{"ratio": {ratio}}}')
    assert "b/measures/throughput-train.json: damaged, a figure in it is unreadable or impossible; delete" in refused(
        *words
    )


def test_measures_that_are_missing_are_left_out(command, words, place, undrawn):
    for name in "ab":
        (place / name / "measures/throughput-train.json").unlink()
    assert command(*words).status == 0
    assert "training, × baseline" not in (place / "out/report.html").read_text(encoding="utf-8")


def test_a_hostile_manifest_and_log_give_a_page(command, words, place):
    start = {"gpus": [1, None], "batch": "\ud800", "seed": "nan"}
    (place / "a/manifest.json").write_text(json.dumps({"starts": [start]}))
    log = {r"$\frac": "1", "\ud800": "1", "num_updates": "1e308", "huge": "-1.7e308", "loss": "2"}
    write(place / "a/train.log", [f"[x][valid][INFO] - {json.dumps(log)}"])
    assert command(*words).status == 0
    page = (place / "out/report.html").read_text(encoding="utf-8")
    assert "<td>1, None</td>" in page and "frac" not in page and 'data-value="nan"' not in page


class TestRefusals:
    def test_a_run_that_was_not_evaluated_is_refused(self, refused, words, place):
        shutil.rmtree(place / "b/evaluation")
        line = refused(*words)
        assert line.startswith(f"{place / 'b'}: not evaluated on 'test'; run scripts/evaluate.sh --split test ")
        assert not (place / "out").exists()

    def test_a_run_with_a_pipe_is_refused(self, refused, words, place):
        (place / "b/train.log").unlink()
        os.mkfifo(place / "b/train.log")
        assert "b/train.log: a pipe or a device, not a file or a folder; delete it" in refused(*words)

    def test_a_run_that_was_evaluated_on_another_split_is_refused(self, refused, words):
        assert "it has test; choose one with --split" in refused(*words, "--split", "test1")

    @pytest.mark.parametrize("content", ["", "[]", "{}", '{"references": [], "scores": {}}', '{"references": ["x"]}'])
    def test_damaged_scores_are_named(self, refused, words, place, content):
        (place / "b/evaluation/test/scores.json").write_text(content)
        assert re.search(
            "b/evaluation/test/scores.json: (damaged, .*; delete it|missing or damaged; leave)", refused(*words)
        )

    @pytest.mark.parametrize("wrong", [-1, 101, 1e300, float("nan"), "30", None, True])
    @pytest.mark.parametrize("place_of", ["score", "p"])
    def test_impossible_scores_are_named(self, refused, words, place, wrong, place_of):
        if (wrong, place_of) != (None, "p"):  # nothing to test
            path = place / "b/evaluation/test/scores.json"
            entry = {"score": 1.0, "signature": "case:mixed", "against": {"difference": 1.0, "p": 0.5}}
            (entry if place_of == "score" else entry["against"])[place_of] = wrong
            change(path, scores={**json.loads(path.read_text())["scores"], "chrf": entry})
            assert "b/evaluation/test/scores.json: damaged, a figure in it is unreadable or impossible" in refused(
                *words
            )

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

    def test_missing_references_are_named(self, refused, words, place):
        (place / "data/raw/test.de").unlink()
        assert "raw/test.de: missing" in refused(*words)

    def test_a_single_run_is_refused(self, refused, words, place):
        line = "a comparison needs two different runs or more; name another run folder"
        assert refused("report", place / "a", *words[3:]) == line
        assert refused("report", place / "a", place / "a", *words[3:]) == line

    def test_wrong_numbers_of_names_are_refused(self, refused, words):
        assert refused(*words, "--names", "x", "x") == "--names: give 2 different names, one for each system: not x x"
        assert refused(*words, "--names", "x").startswith("--names: give 2 different names")

    def test_a_damaged_manifest_is_named(self, refused, words, place):
        (place / "a/manifest.json").write_text("{")
        assert "manifest.json: no manifest of train.sh" in refused(*words)

    def test_coverage_of_untokenised_text_is_refused(self, refused, words, place):
        output = place / "b/evaluation/test/generate.out"
        lines = output.read_text().splitlines()
        write(output, [line.replace(" .", ".") if line.startswith("D-") else line for line in lines])
        assert "--coverage: words and punctuation of" in refused(*words, "--coverage", 1)


@pytest.mark.parametrize("source, target, stated", [("en", "de", "en"), ("de", "en", "de"), ("en", "de", None)])
def test_coverage_learns_from_the_training_text_in_the_direction_of_the_run(
    command, words, place, monkeypatch, undrawn, source, target, stated
):
    raw, tokenised = place / "data/raw", place / "data/tokenised"
    texts = [(raw / f"test.{language}").read_text() for language in ("en", "de")]  # bin has test.en-de.*
    tokenised.mkdir()
    for language, text in zip((source, target), texts, strict=True):
        (raw / f"test.{language}").write_text(text)
        write(tokenised / f"train.{language}", [f"{language} 1", f"{language} 2"])
    for run in ("a", "b"):
        change(place / run / "settings.json", config={"model": {"_name": "lstm"}, "task": {"source_lang": stated}})
        change(place / run / "evaluation/test/scores.json", references=[f"raw/test.{target}"])
    trainings = []
    monkeypatch.setattr(
        report, "coverage_report", lambda *arguments: trainings.append(arguments[2]) or SimpleNamespace(rows=[])
    )
    assert command(*words, "--coverage", 1).status == 0
    (tokenised / "train.de").unlink()
    assert command(*words, "--coverage", 1).status == 0
    assert trainings == [([f"{source} 1", f"{source} 2"], [f"{target} 1", f"{target} 2"]), ([], [])]


def test_coverage_is_a_table_of_the_page(command, words, place, undrawn):
    library("eflomal")
    assert command(*words, "--coverage", 1).status == 0
    assert 'id="coverage-table"' in (place / "out/report.html").read_text()


def test_the_table_of_runs_has_the_reading_of_each_checkpoint(command, words, place):
    """Run a has an older checkpoint, run b has none, only settings."""
    model = {"_name": "gdr_transformer_tiny", "guided_heads": "both"}
    state = {"cfg": {"model": model}, "args": None, "model": {}, "extra_state": {}, "optimizer_history": [{}]}
    torch.save(state, place / "a/checkpoint_last.pt")
    change(place / "b/settings.json", config={"model": {**model, "guided_reduction": "mean"}})
    assert command(*words).status == 0
    page = (place / "out/report.html").read_text()
    assert "--guided-reduction sum" in page and "--guided-reduction mean" in page
    (place / "a/checkpoint_last.pt").write_bytes(b"damaged")
    assert command(*words).status == 0
    assert "--guided-reduction sum" not in (place / "out/report.html").read_text()


def test_external_scores_have_intervals_and_a_p(command, words, place, undrawn):
    scores = {"a": [0.5 + 0.001 * number for number in range(30)], "b": [0.6 - 0.001 * number for number in range(30)]}
    (place / "comet.json").write_text(json.dumps(scores))
    assert command(*words, "--external", f"COMET={place / 'comet.json'}").status == 0
    page = (place / "out/report.html").read_text(encoding="utf-8")
    assert ">COMET</button>" in page and "metric:COMET|mean:sentences" in page
    assert f">{np.mean(scores['a']):.4f} ± 0.00" in page and f">{np.mean(scores['b']):.4f} ± 0.00" in page
