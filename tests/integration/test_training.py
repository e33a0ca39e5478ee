"""Train, stop, resume, average, translate and validate with the real command lines."""

import re
import tempfile
import threading
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_capsule.models import CapsuleTransformerModel
from fairseq_capsule_lab.cli import main
from tests.integration.commands import REPOSITORY, run, train
from tests.zoo import ARCHITECTURES


def parameters(checkpoint):
    return checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))["model"]


def assert_same_parameters(one, other):
    one, other = parameters(one), parameters(other)
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


# Without this option fairseq silently skips the last sentences of a split that do not fill a multiple of 8.
ALL = ("--required-batch-size-multiple", 1)

SHORT_BATCHES = ("--max-tokens", "200", "--no-epoch-checkpoints")

# The task, fairseq's trainer and the modules of all architectures are the same: a Transformer and an LSTM cover them.
QUICK = ("capsule_transformer_tiny", "gdr_lstm")


@pytest.mark.parametrize("arch", [pytest.param(a, marks=() if a in QUICK else pytest.mark.slow) for a in ARCHITECTURES])
def test_resuming_equals_an_uninterrupted_training(data, tmp_path, arch):
    """The result is bitwise equal, from the middle of an epoch after the first."""
    ours = ("--task", "capsule_translation", *SHORT_BATCHES)  # the task of fairseq forms its batches only once
    train(data, tmp_path / "stopped", *ours, "--max-update", 15, arch=arch)
    output = train(data, tmp_path / "stopped", *ours, "--max-update", 26, arch=arch)
    assert "epoch 2 @ 15 updates" in output and "epoch 003" in output
    train(data, tmp_path / "straight", *ours, "--max-update", 26, arch=arch)
    assert_same_parameters(tmp_path / "stopped/checkpoint_last.pt", tmp_path / "straight/checkpoint_last.pt")


def test_checkpoints_are_averaged_and_translate_and_validate(data, trained, tmp_path, capsys):
    average = tmp_path / "average.pt"
    assert main(["average", str(trained), "--last", "2", "--output", str(average)]) == 0
    second, third, mean = (
        parameters(path) for path in (trained / "checkpoint2.pt", trained / "checkpoint3.pt", average)
    )
    for name, value in mean.items():
        if value.is_floating_point():
            torch.testing.assert_close(value, (second[name] + third[name]) / 2)

    generated = run("generate", data, "--path", average, "--cpu", "--beam", 3, "--batch-size", 7, *ALL)
    assert len(re.findall(r"^H-\d+", generated, re.M)) == 20
    assert "Generate test with beam=3: BLEU4 = " in generated
    assert "valid on 'valid' subset" in run(
        "validate", data, "--task", "translation", "--path", average, "--cpu", "--max-tokens", 400
    )
    interactive = run("interactive", data, "--path", average, "--cpu", stdin="a b c\n\nd z\n")
    assert len(re.findall(r"^H-\d+", interactive, re.M)) == 3

    hub = CapsuleTransformerModel.from_pretrained(str(tmp_path), "average.pt", str(data))
    translations = hub.translate(["a b c d", "", "e f"], beam=3)
    assert len(translations) == 3
    assert hub.translate("a b c d", beam=3) == translations[0]
    with pytest.raises(Exception, match="max_positions"):
        hub.translate(["a " * 1100])


def train_with_two_processes(data, save_dir, *arguments, arch):
    meeting = Path(tempfile.mkdtemp(dir=save_dir.parent)) / "meeting"  # a free port may be taken before it is used
    common = (
        f"--distributed-world-size 2 --distributed-init-method file://{meeting} --distributed-no-spawn "
        "--distributed-backend gloo --ddp-backend legacy_ddp"
    ).split()
    outputs = {}

    def rank(number):
        outputs[number] = train(
            data, save_dir, *arguments, *common, "--distributed-rank", number, arch=arch, env={"OMP_NUM_THREADS": "1"}
        )

    ranks = [threading.Thread(target=rank, args=(number,)) for number in range(2)]
    for thread in ranks:
        thread.start()
    for thread in ranks:
        thread.join()
    assert set(outputs) == {0, 1}
    return outputs[0]


@pytest.mark.parametrize(
    "arch", ["gdr_transformer_tiny", pytest.param("capsule_transformer_tiny", marks=pytest.mark.slow)]
)
def test_two_processes_train_stop_and_resume(data, tmp_path, arch):
    """Their validation translates: `--eval-bleu` adds arrays of numpy to the metrics that fairseq saves."""
    bleu = ("--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_b": 5}')
    ours = ("--task", "capsule_translation", *bleu, *SHORT_BATCHES)
    train_with_two_processes(data, tmp_path / "stopped", *ours, "--max-update", 3, arch=arch)
    output = train_with_two_processes(data, tmp_path / "stopped", *ours, "--max-update", 8, arch=arch)
    assert "epoch 1 @ 3 updates" in output and re.search(r"epoch 002 \| valid on .* \| bleu \d", output)
    train_with_two_processes(data, tmp_path / "straight", *ours, "--max-update", 8, arch=arch)
    assert_same_parameters(tmp_path / "stopped/checkpoint_last.pt", tmp_path / "straight/checkpoint_last.pt")


def test_the_plugin_can_be_named_by_any_path(data, tmp_path):
    """The path is relative to another folder, and the package is also installed."""
    (tmp_path / "link").symlink_to(REPOSITORY)
    output = train(data, tmp_path / "run", "--max-update", 1, user_dir="link/fairseq_capsule", cwd=tmp_path)
    assert "done training" in output
