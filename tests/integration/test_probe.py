"""`bag_of_words_probe` and `fairseq-capsule probe`: from a trained GRET to the row of a table."""

import json

import pytest

from fairseq_capsule_lab.cli import main
from tests.integration.commands import SMALL, run, train


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
    row = json.loads(capsys.readouterr().out.splitlines()[-1])["rows"][0]
    assert row["reads"] == "global" and row["sentences"] == 20
    assert row["bag_recall_200"] == 1.0  # the dictionary has fewer words than 200


@pytest.mark.parametrize(
    "checkpoint, arguments, message",
    [
        (
            "gret/checkpoint_last.pt",
            [],
            "trained with label_smoothed_cross_entropy; give a model trained with bag_of_words_probe",
        ),
        ("probe/checkpoint_last.pt", ["--split", "nope"], "--split nope"),
        ("missing.pt", [], "missing.pt: No such file or directory"),
    ],
)
def test_what_cannot_be_probed_is_named(data, probed, capsys, checkpoint, arguments, message):
    assert main(["probe", str(probed / checkpoint), "--data", str(data), *arguments]) == 1
    assert message in capsys.readouterr().err
