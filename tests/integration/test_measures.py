"""`analyze`, `nll` and `probe`: the same figures as fairseq's own commands."""

import json
import re

import pytest
from fairseq.data import Dictionary
from fairseq.data.data_utils import load_indexed_dataset

from fairseq_capsule_lab.cli import main
from tests.integration.commands import SMALL, run, train
from tests.libraries import library


def rows(capsys, kind, *arguments):
    assert main(["analyze", kind, *map(str, arguments), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["kind"] == kind
    return printed["rows"]


@pytest.fixture(scope="module")
def routed(data, tmp_path_factory):
    """The folder and the output of a training: one epoch of a model with PAST and FUTURE and attention routing."""
    folder = tmp_path_factory.mktemp("routed")
    parts = "--encoder-routing vertical --log-routing --max-epoch 1 --required-batch-size-multiple 1".split()
    return folder, train(data, folder, *parts, arch="gdr_transformer_tiny")


def test_overlap_equals_that_of_the_validation(data, routed, tmp_path, capsys):
    folder, output = routed
    checkpoint = folder / "checkpoint_last.pt"
    found = rows(capsys, "overlap", checkpoint, "--data", data, "--split", "valid", "--out", tmp_path)
    assert [row["part"] for row in found] == ["all", *(f"{i}–{i + 10}" for i in range(0, 100, 10))]
    assert found[0]["system"] == "checkpoint_last.pt" and found[0]["sentences"] == 30
    for content in ("past", "future"):
        reported = float(re.findall(rf"\| routing_past_future_overlap_{content} ([\d.]+)", output)[-1])
        assert found[0][content] == pytest.approx(reported, abs=0.01)  # other batches may change the rank of a word
    assert (tmp_path / "overlap.svg").exists()


@pytest.fixture(scope="module")
def links(data):
    """The links of the test split: a target is its source in reverse order."""
    dictionary = Dictionary.load(str(data / "dict.en.txt"))
    sources = load_indexed_dataset(f"{data}/test.en-de.en", dictionary)
    lengths = [len(source) - 1 for source in sources]  # without the end of the sentence
    return [" ".join(f"{word}-{length - 1 - word}" for word in range(length)) for length in lengths]


def test_assignment_is_compared_with_alignments(data, routed, links, tmp_path, capsys):
    checkpoint = routed[0] / "checkpoint_last.pt"
    (tmp_path / "links").write_text("".join(f"{line}\n" for line in links))
    arguments = (checkpoint, "--data", data, "--alignments", tmp_path / "links", "--out", tmp_path / "out")
    model, attention, position = rows(capsys, "assignment", *arguments, "--names", "GDR")
    names = [row["system"] for row in (model, attention, position)]
    assert names == ["GDR", "GDR: cross-attention so far", "GDR: position alone"]
    for row in (model, attention, position):
        assert row["sentences"] == len(links) and 0 <= row["area"] <= 1 and 0 <= row["near"] <= 1
    assert model["precision"] is None  # every word has a link
    assert position["area"] < 0.7  # near 1 if a target is in the order of its source; here it is reversed
    assert (tmp_path / "out/assignment.svg").exists()


def test_assignment_aligns_the_words_itself(data, routed, links, tmp_path, capsys):
    library("eflomal")
    for language in ("en", "de"):
        dictionary = Dictionary.load(str(data / f"dict.{language}.txt"))
        sentences = load_indexed_dataset(f"{data}/train.en-de.{language}", dictionary)
        (tmp_path / language).write_text("".join(f"{dictionary.string(sentence)}\n" for sentence in sentences))
    (tmp_path / "links").write_text("".join(f"{line}\n" for line in links))
    arguments = (routed[0] / "checkpoint_last.pt", "--data", data, "--out", tmp_path / "out")
    *_, expected = rows(capsys, "assignment", *arguments, "--alignments", tmp_path / "links")
    *_, found = rows(capsys, "assignment", *arguments, "--train", tmp_path / "en", tmp_path / "de")
    assert found["area"] == pytest.approx(expected["area"], abs=0.1)  # eflomal samples without a seed


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda lines: lines[:-1], "--alignments: 19 lines, but test has 20 sentences"),
        (lambda lines: ["0-99", *lines[1:]], "--alignments, line 1: 0-99, but the sentence has "),
    ],
)
def test_alignments_of_another_text_are_refused(data, routed, links, tmp_path, capsys, change, message):
    (tmp_path / "links").write_text("".join(f"{line}\n" for line in change(links)))
    words = [routed[0] / "checkpoint_last.pt", "--data", data, "--alignments", tmp_path / "links", "--out", tmp_path]
    assert main(["analyze", "assignment", *map(str, words)]) == 1
    assert message in capsys.readouterr().err


def test_iterations_have_the_scores_of_generate_and_validate(data, trained, tmp_path, capsys):
    checkpoint = trained / "checkpoint3.pt"
    arguments = ("--data", data, "--split", "test", "--iterations", "1,3", "--beam", 2, "--out", tmp_path)
    found = rows(capsys, "iterations", checkpoint, *arguments)
    assert [(row["iterations"], row["trained_with"]) for row in found] == [(1, 3), (3, 3)]
    assert {row["option"] for row in found} == {"--routing-iterations"}
    assert found[0]["nll"] != found[1]["nll"]
    common = ("--path", checkpoint, "--cpu", "--required-batch-size-multiple", 1)
    overridden = (*common, "--model-overrides", "{'routing_iterations': 1}")
    generated = run("generate", data, *overridden, "--beam", 2, "--remove-bpe")
    assert found[0]["bleu"] == pytest.approx(float(re.search(r"BLEU4 = ([\d.]+),", generated)[1]), abs=0.01)
    validated = run(
        "validate", data, *overridden, "--task", "translation", "--valid-subset", "test", "--max-tokens", 400
    )
    assert found[0]["nll"] == pytest.approx(float(re.search(r"\| nll_loss ([\d.]+)", validated)[1]), abs=1e-3)


def test_an_option_is_required_for_several_routings(data, routed, tmp_path, capsys):
    folder, _ = routed
    arguments = ("--data", data, "--beam", 1, "--out", tmp_path)
    wanted = ("--option", "past-future-iterations", "--iterations", 1)
    found = rows(capsys, "iterations", folder / "checkpoint_last.pt", *arguments, *wanted)
    assert [(row["option"], row["iterations"]) for row in found] == [("--past-future-iterations", 1)]


@pytest.mark.parametrize(
    "kind, of, arguments, message",
    [
        ("overlap", "trained", [], "checkpoint_last.pt: r_OL needs a model that was trained with --guided-heads bow"),
        ("iterations", "routed", [], "its model has --past-future-iterations and --routing-iterations; choose one"),
    ],
)
def test_what_cannot_be_analysed_is_named(data, trained, routed, tmp_path, capsys, kind, of, arguments, message):
    folder = {"trained": trained, "routed": routed[0]}[of]
    paths = [folder / "checkpoint_last.pt", "--data", data, "--out", tmp_path / "out"]
    assert main(["analyze", kind, *map(str, paths), *arguments]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("fairseq-capsule analyze: error: ") and message in line
    assert not (tmp_path / "out").exists()


def test_nll_equals_that_of_fairseq_validate(data, trained, capsys):
    checkpoint = str(trained / "checkpoint_last.pt")
    assert main(["nll", checkpoint, "--data", str(data), "--split", "test", "--json"]) == 0
    output = capsys.readouterr()
    assert "Warning" not in output.err
    row = json.loads(output.out)["rows"][0]
    # Without the last option fairseq skips sentences that do not fill a batch of 8.
    validation = ["--task", "translation", "--valid-subset", "test", "--max-tokens", 400, "--cpu"]
    validation += ["--required-batch-size-multiple", 1]
    validated = run("validate", data, "--path", checkpoint, *validation)
    assert row["nll"] == pytest.approx(float(re.search(r"\| nll_loss ([\d.]+)", validated)[1]), abs=1e-3)
    assert row["tokens"] > 20


@pytest.fixture(scope="module")
def probed(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    train(data, folder / "gret", "--max-epoch", 1, arch="gret_transformer_tiny")
    probe = "--task capsule_translation --criterion bag_of_words_probe --probe-reads global".split()
    start = ["--arch", "gret_transformer_tiny", *SMALL, "--init-from-baseline", folder / "gret/checkpoint_last.pt"]
    learning = "--optimizer adam --lr 1e-2 --max-tokens 400 --max-epoch 2 --cpu --seed 1 --no-progress-bar".split()
    output = run("train", data, *start, *probe, *learning, "--save-dir", folder / "probe")
    assert "bag_recall_200" in output
    return folder


def test_the_command_prints_a_row_for_each_probe(data, probed, capsys):
    assert main(["probe", str(probed / "probe/checkpoint_last.pt"), "--data", str(data), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert row["reads"] == "global" and row["sentences"] == 20
    assert row["bag_recall_200"] == 1.0  # the dictionary has fewer words than 200
