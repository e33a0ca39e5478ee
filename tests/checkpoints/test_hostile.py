"""Every entry point refuses hostile checkpoints: nothing runs, is written, fetched or read from the environment."""

import copy
import re
from collections import defaultdict

import pytest
import torch
from fairseq import checkpoint_utils

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints import loading
from tests.checkpoints import hostile
from tests.checkpoints.marker import MARKER
from tests.checkpoints.ways_in import WAYS
from tests.integration.commands import REPOSITORY, last_line, run
from tests.processes import run_forked

# Kinds that begin with the same words. A group of two, of texts that take seconds to refuse, is not among them.
GROUPS = defaultdict(list)
for kind in hostile.HOSTILE:
    GROUPS[re.split(" of | in |:", kind)[0]].append(kind)
SLOW = GROUPS.pop("text")


@pytest.fixture(scope="module")
def written(place):
    """Write all hostile checkpoints; return their paths by kind."""
    paths = {}
    state = {**place.state(), "last_optimizer_state": None}  # it would be half of the file
    for number, (kind, make) in enumerate(hostile.HOSTILE.items()):
        made = make(copy.deepcopy(state))
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


def kinds_for(way):
    """Kinds of every group, other ones for every entry point."""
    number = WAYS.index(way)
    return [kind for group in GROUPS.values() for kind in group[number % len(group) :: len(WAYS)]]


@pytest.mark.parametrize("way", WAYS)
def test_hostile_checkpoints_are_refused_by_every_entry_point(place, written, nothing_starts, way):
    for kind in kinds_for(way):
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
    loading.install()
    for kind in list(hostile.HOSTILE)[::8]:
        with nothing_starts(), pytest.raises(UserError, match="not loaded: "):
            checkpoint_utils.load_checkpoint_to_cpu(str(written[kind]))
    assert checkpoint_utils.load_checkpoint_to_cpu(str(place.good))["cfg"] is not None


def test_every_kind_is_tried_at_an_entry_point_and_every_entry_point_with_all_groups():
    assert len(GROUPS) >= 15
    assert {kind for way in WAYS for kind in kinds_for(way)} == set(hostile.HOSTILE) - set(SLOW)
    assert all(set(kinds_for(way)) & set(group) for way in WAYS for group in GROUPS.values())


@pytest.mark.parametrize(
    "command, kind",
    [
        ("size", "expression: call: adaptive_softmax_cutoff, cfg"),
        ("generate", "value: bytes: decoder_attention, args"),
    ],
)
def test_a_command_line_refuses_them(place, written, command, kind):
    if command == "size":
        words = ["size", written[kind], "--data", place.data]
        finished = run_forked("fairseq_capsule_lab.cli", "main", words, REPOSITORY)
        assert finished.returncode == 1
        output = finished.stderr
    else:
        output = run("generate", place.data, "--path", written[kind], "--cpu", succeeds=False)
    assert f"{written[kind]}: not loaded: " in last_line(output)
