"""Every entry point refuses hostile checkpoints: nothing runs, is written, fetched or read from the environment."""

import subprocess
import sys

import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_capsule.errors import UserError
from tests.checkpoints import hostile
from tests.checkpoints.marker import MARKER
from tests.checkpoints.ways_in import WAYS
from tests.integration.commands import last_line, run

LOADS_ANOTHER_FIRST = ("against", "generate_ensemble")


@pytest.fixture(scope="module")
def written(place):
    """Write all hostile checkpoints; return their paths by kind."""
    paths = {}
    for number, (kind, make) in enumerate(hostile.HOSTILE.items()):
        state = place.state()
        state["last_optimizer_state"] = None  # half of the file
        made = make(state)
        paths[kind] = place.folder / f"hostile{number}.pt"
        paths[kind].write_bytes(made if isinstance(made, bytes) else hostile.saved(made))
    return paths


@pytest.fixture(autouse=True)
def no_marker(monkeypatch):
    monkeypatch.setenv("SECRET", "a secret of the environment")
    yield
    assert not MARKER.exists()


@pytest.mark.parametrize("kind", hostile.HOSTILE)
def test_a_hostile_checkpoint_is_refused(written, nothing_starts, kind):
    with nothing_starts(), pytest.raises(UserError, match=r"hostile\d+.pt: not loaded: ") as error:
        checkpoint_utils.load_checkpoint_to_cpu(str(written[kind]))
    message = str(error.value)
    assert message.isprintable() and len(message) < 500
    assert "a secret" not in message and "weights_only" not in message


@pytest.mark.parametrize("way", WAYS)
def test_hostile_checkpoints_are_refused_by_every_entry_point(place, written, nothing_starts, way):
    kinds = list(hostile.HOSTILE)[:: 16 if way in LOADS_ANOTHER_FIRST else 4]
    for kind in kinds:
        with nothing_starts(), pytest.raises((UserError, SystemExit), match="not loaded: "):
            getattr(place, way)(written[kind])


class _TorchOfUpstream:
    """torch as upstream's main calls it: it reads every checkpoint with `weights_only=False`."""

    def __getattr__(self, name):
        return getattr(torch, name)

    def load(self, *args, **kwargs):
        return torch.load(*args, **{**kwargs, "weights_only": False})


def test_a_fork_that_turns_weights_only_off_changes_nothing(place, written, nothing_starts, monkeypatch):
    monkeypatch.setattr(checkpoint_utils, "torch", _TorchOfUpstream())
    for kind in list(hostile.HOSTILE)[::8]:
        with nothing_starts(), pytest.raises(UserError, match="not loaded: "):
            checkpoint_utils.load_checkpoint_to_cpu(str(written[kind]))
    assert checkpoint_utils.load_checkpoint_to_cpu(str(place.good))["cfg"] is not None


def test_all_kinds_and_entry_points_are_covered():
    """The kinds are the texts before the first colon. Every entry point is tested."""
    assert len({kind.partition(":")[0] for kind in hostile.HOSTILE}) >= 12
    assert len(list(hostile.HOSTILE)[::4]) >= 60


@pytest.mark.parametrize(
    "command, kind",
    [
        ("size", "expression: call: adaptive_softmax_cutoff, cfg"),
        ("generate", "value: bytes: decoder_attention, args"),
    ],
)
def test_a_command_line_refuses_them(place, written, command, kind):
    if command == "size":
        output = run_ours("size", written[kind], "--data", place.data)
    else:
        output = run("generate", place.data, "--path", written[kind], "--cpu", succeeds=False)
    assert f"{written[kind]}: not loaded: " in last_line(output)


def run_ours(*arguments):
    command = [sys.executable, "-m", "fairseq_capsule.cli", *map(str, arguments)]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 1
    return finished.stderr
