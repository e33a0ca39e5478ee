"""Files that are not checkpoints are refused by name, and nothing in them runs."""

import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils, file_utils
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.distributed import utils as distributed_utils
from fairseq.trainer import Trainer

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints import loading
from tests.checkpoints.ways_in import TASK
from tests.integration.commands import last_line, run, train


class Malicious:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


def test_a_malicious_checkpoint_is_refused(data, trained, tmp_path):
    checkpoint, marker = tmp_path / "evil.pt", tmp_path / "it-ran"
    state = torch.load(trained / "checkpoint_last.pt")
    torch.save({**state, "extra": Malicious(marker)}, checkpoint)
    output = run("generate", data, "--path", checkpoint, "--cpu", succeeds=False)
    assert f"{checkpoint}: not loaded: it contains posix.system" in last_line(output)
    assert "nothing in it was run" in last_line(output)
    assert not marker.exists()


@pytest.mark.parametrize("option", ["encoder_xformers_att_config", "adaptive_softmax_cutoff"])
@pytest.mark.parametrize("form", ["cfg", "args"])
def test_an_option_that_runs_code_is_refused(trained, tmp_path, option, form):
    """fairseq evaluates several options as Python. None of them may contain a call."""
    checkpoint, marker = tmp_path / "evil.pt", tmp_path / "it-ran"
    state = torch.load(trained / "checkpoint_last.pt")
    state["cfg"]["model"][option] = f"__import__('os').system('touch {marker}')"
    if form == "args":
        sections = [section for section in state.pop("cfg").values() if isinstance(section, dict)]
        flat = {name: value for section in sections for name, value in section.items() if name != "_name"}
        names = {"arch": "capsule_transformer_tiny", "task": "translation", "criterion": "cross_entropy"}
        state["args"] = Namespace(**flat, **names)
    torch.save(state, checkpoint)
    with pytest.raises(UserError, match="evil.pt: not loaded: ") as error:
        load_model_ensemble_and_task([str(checkpoint)])
    if form == "cfg":  # in the older format, fairseq itself accepts only literals for some options
        assert f"its option model.{option} is neither plain text nor a literal" in str(error.value)
    assert not marker.exists()


@pytest.mark.parametrize(
    "part, options",
    [
        ("model", {"adaptive_softmax_cutoff": "[10, 20]"}),
        ("task", {"data": "some (odd) folder/data.bin"}),
        ("task", {"data": "wmt(1)/bin"}),  # its text is also an expression with a call
        ("bpe", {"_name": "subword_nmt", "bpe_codes": "???"}),  # only --bpe subword_nmt
        ("bpe", {"_name": "subword_nmt", "bpe_codes": "codes(1)"}),
    ],
)
def test_options_that_are_data_are_accepted(trained, tmp_path, part, options):
    state = torch.load(trained / "checkpoint_last.pt")
    state["cfg"][part] = {**(state["cfg"][part] or {}), **options}
    torch.save(state, tmp_path / "checkpoint.pt")
    assert checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "checkpoint.pt"))["model"]


@pytest.mark.parametrize("task", [TASK, []], ids=["our task", "fairseq's task"])
def test_a_checkpoint_without_its_plugin_is_refused(data, trained, tmp_path, task):
    state = torch.load(trained / "checkpoint_last.pt")
    state["cfg"]["model"]["_name"] = "my_transformer"
    torch.save(state, tmp_path / "my.pt")
    line = last_line(run("generate", data, *task, "--path", tmp_path / "my.pt", "--cpu", succeeds=False))
    assert "UserError: the architecture 'my_transformer' is unknown; " in line
    assert "or give the --user-dir of the plugin that defines it" in line


LOAD = [
    "from fairseq_capsule.hub import load; hub = load('{run}/checkpoint_last.pt', '{data}')",
    "from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel as Model; "
    "hub = Model.from_pretrained('{run}', 'checkpoint_last.pt', '{data}')",
]


@pytest.mark.parametrize("load", LOAD, ids=["hub", "from_pretrained"])
def test_loading_a_model_prints_nothing(data, trained, load):
    """The configuration of fairseq and DEBUG logs of libraries are not printed; an inspection prints a summary."""
    program = f"""import logging
before = logging.getLogger().level, logging.getLogger().handlers[:]
{load.format(run=trained, data=data)}
import matplotlib.pyplot
assert (logging.getLogger().level, logging.getLogger().handlers) == before
print(hub.inspect("a b")[0])"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    first, *others = done.stdout.splitlines()
    assert first.startswith("sentence 1: ") and len(others) == 4


def test_a_table_prints_no_logs_of_libraries(tmp_path):
    words = [Path(sys.executable).parent / "fairseq-capsule", "table", "comparison-lstm", "--runs", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_checkpoint_of_plain_fairseq_loads(data, tmp_path):
    train(data, tmp_path, "--max-update", 1, arch="transformer_tiny", user_dir=None)
    output = run("generate", data, "--path", tmp_path / "checkpoint_last.pt", "--cpu", "--max-len-b", 5)
    assert "Generate test" in output


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"PK\x03\x04 cut off"])
def test_a_damaged_checkpoint_is_named(tmp_path, content):
    checkpoint = tmp_path / "checkpoint.pt"
    checkpoint.write_bytes(content)
    with pytest.raises(UserError) as error:
        checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))
    assert str(error.value).startswith(f"{checkpoint}: not loaded: ")
    assert "\n" not in str(error.value)


def test_a_truncated_checkpoint_is_named(trained, tmp_path):
    checkpoint = tmp_path / "checkpoint.pt"
    whole = (trained / "checkpoint_last.pt").read_bytes()
    checkpoint.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="damaged"):
        checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))


def test_installing_twice_patches_once():
    before = checkpoint_utils.torch, distributed_utils.torch, file_utils.load_archive_file, Trainer.load_checkpoint
    loading.install()
    patched = checkpoint_utils.torch, distributed_utils.torch, file_utils.load_archive_file, Trainer.load_checkpoint
    assert all(now is then for now, then in zip(patched, before))


def test_torch_itself_stays_as_it_is():
    for module in (checkpoint_utils, distributed_utils):
        assert module.torch is not torch and module.torch.load is not torch.load
        assert module.torch.save is torch.save and module.torch.distributed is torch.distributed
    assert torch.load.__module__ == "torch.serialization" and Namespace not in torch.serialization.get_safe_globals()
