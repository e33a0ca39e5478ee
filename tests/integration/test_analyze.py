"""`fairseq-capsule analyze overlap` and `iterations`: the same figures as fairseq's own commands."""

import json
import re

import pytest

from fairseq_capsule_lab.cli import main
from tests.integration.commands import run, train


def rows(capsys, kind, *arguments):
    assert main(["analyze", kind, *map(str, arguments), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed["kind"] == kind
    return printed["rows"]


@pytest.fixture(scope="module")
def routed(data, tmp_path_factory):
    """The folder and the output of a training: one epoch of a model with PAST and FUTURE and attention routing."""
    folder = tmp_path_factory.mktemp("routed")
    parts = "--encoder-routing vertical --eval-overlap --max-epoch 1 --required-batch-size-multiple 1".split()
    return folder, train(data, folder, *parts, arch="gdr_transformer_tiny")


def test_overlap_equals_that_of_the_validation(data, routed, tmp_path, capsys):
    folder, output = routed
    checkpoint = folder / "checkpoint_last.pt"
    found = rows(capsys, "overlap", checkpoint, "--data", data, "--split", "valid", "--out", tmp_path)
    assert [row["part"] for row in found] == ["all", *(f"{i}–{i + 10}" for i in range(0, 100, 10))]
    assert found[0]["system"] == f"{folder.name}/checkpoint_last" and found[0]["sentences"] == 30
    for content in ("past", "future"):
        reported = float(re.findall(rf"\| overlap_{content} ([\d.]+)", output)[-1])
        assert found[0][content] == pytest.approx(reported, abs=0.01)  # other batches may change the rank of a word
    assert (tmp_path / "overlap.svg").exists()


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
        ("overlap", "routed", ["--split", "nope"], "--split nope: "),
        ("iterations", "routed", [], "its model has --past-future-iterations and --routing-iterations; choose one"),
        (
            "iterations",
            "trained",
            ["--option", "global-iterations"],
            "its model has no --global-iterations; choose from --routing-iterations",
        ),
        ("iterations", "missing", [], "checkpoint_last.pt: No such file or directory"),
    ],
)
def test_what_cannot_be_analysed_is_named(data, trained, routed, tmp_path, capsys, kind, of, arguments, message):
    folder = {"trained": trained, "routed": routed[0], "missing": tmp_path}[of]
    paths = [folder / "checkpoint_last.pt", "--data", data, "--out", tmp_path / "out"]
    assert main(["analyze", kind, *map(str, paths), *arguments]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("fairseq-capsule analyze: error: ") and message in line
    assert not (tmp_path / "out").exists()
