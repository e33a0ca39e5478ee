"""A real checkpoint with one changed value at any place: it loads, or one line reports the reason."""

import math
import os
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from capsule_routing.errors import UserError

# Sizes that no machine can allocate are excluded: SECURITY.md makes no promise about time and memory.
WRONG = st.sampled_from(
    [None, "", "x", "???", "-1", -1, 0, -(10**30), math.nan, math.inf, True, 0.5, [], [1], ["x"], {}, {"x": 1}, {1: 1}]
)


def places(state, path=()):
    """Yield every place in nested dicts and lists."""
    items = state.items() if isinstance(state, dict) else enumerate(state)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, (dict, list)) and len(path) < 4:
            yield from places(value, (*path, key))


def corrupted(state, path, value):
    owner = state
    for key in path[:-1]:
        owner = owner[key]
    if isinstance(value, type):
        del owner[path[-1]]
    else:
        owner[path[-1]] = value
    return state


WAYS = ["size", "probe", "picture", "average", "average_best", "iterations", "baseline", "hub_load"]


@settings(max_examples=60)
@given(st.data(), WRONG | st.just(Tensor), st.sampled_from(WAYS))
def test_a_wrong_value_gives_one_line(place, data, value, way):
    state = place.state()
    state["last_optimizer_state"] = None
    part = data.draw(st.sampled_from([part for part in state if state[part]]))
    path = data.draw(st.sampled_from(list(places({part: state[part]}))))
    checkpoint = place.write("corrupted.pt", corrupted(state, path, value))
    try:
        getattr(place, way)(checkpoint)
    except UserError as error:
        assert str(error).isprintable()
    except OSError as error:
        assert error.filename


@pytest.mark.parametrize("name", ["encoder.embed_positions._float_tensor", "decoder.layers.0.fc1.bias", "new"])
@pytest.mark.parametrize("way", WAYS)
def test_a_parameter_that_is_not_a_tensor_is_refused(place, way, name):
    state = place.state()
    state["model"][name] = None
    with pytest.raises(UserError, match=f"its parameter {name} is of type NoneType"):
        getattr(place, way)(place.write("corrupted.pt", state))


@pytest.mark.parametrize("name", [0, -1, 10**30, 5])
@pytest.mark.parametrize("part", ["model", "ema"])
@pytest.mark.parametrize("way", WAYS)
def test_a_name_of_a_parameter_that_is_no_text_is_refused(place, way, part, name):
    state = place.state()
    (state if part == "model" else state["extra_state"])[part][name] = torch.zeros(1)
    with pytest.raises(UserError, match=f"its parameter {name} has a name of type int, not a text"):
        getattr(place, way)(place.write("corrupted.pt", state))


@pytest.mark.parametrize("shape", [(0, 2**62), (2**62, 0), (2**40, 0, 2**40), (1, 0, 2**25), (0,) * 3 + (2**30,)])
@pytest.mark.parametrize("part", ["model", "criterion", "extra_state"])
@pytest.mark.parametrize("way", ["size", "average", "baseline"])
def test_a_dimension_that_is_larger_than_the_file_is_refused(place, way, part, shape):
    """A tensor without values needs no bytes for it."""
    state = place.state()
    state[part] = {**(state[part] or {}), "new": torch.zeros(shape)}
    with pytest.raises(UserError, match=f"its {part}.new of shape .* is larger than the file"):
        getattr(place, way)(place.write("corrupted.pt", state))


@pytest.mark.parametrize(
    "value", [-1, "x", [], torch.tensor(1.0), torch.zeros(0), torch.zeros(2**60, 0), torch.zeros(1, 1, 1)]
)
@pytest.mark.parametrize("way", [way for way in WAYS if way != "average_best"])  # it builds no model
def test_a_wrong_embedding_is_refused(place, way, value):
    state = place.state()
    state["model"]["encoder.embed_tokens.weight"] = value
    checkpoint = place.write("corrupted.pt", state)
    with pytest.raises(UserError):
        getattr(place, way)(checkpoint)


@pytest.mark.parametrize("kind", ["pipe", "link", "/dev/zero"])
@pytest.mark.parametrize("way", ["size", "picture", "against", "average", "average_best", "baseline", "hub_load"])
def test_a_checkpoint_is_a_regular_file(place, tmp_path, way, kind):
    """A pipe without a writer waits without end, and a device may have no end."""
    checkpoint = Path(kind) if kind.startswith("/") else tmp_path / kind
    if kind == "pipe":
        os.mkfifo(checkpoint)
    elif kind == "link":
        checkpoint.symlink_to("/dev/zero")
    with pytest.raises(UserError, match=": a pipe or a device; name a file"):
        getattr(place, way)(checkpoint)


@pytest.mark.parametrize("way", ["generate", "generate_ensemble", "validate", "ema_seed_model"])
def test_fairseq_reads_no_device(place, way):
    with pytest.raises(UserError, match="/dev/zero: a pipe or a device; name a file"):
        getattr(place, way)("/dev/zero")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("way", ["size", "probe", "picture", "inspect", "iterations", "overlap", "hub_load"])
def test_non_numeric_parameters_are_refused(place, way, value):
    state = place.state()
    for parameter in state["model"].values():
        if parameter.is_floating_point():
            parameter.fill_(value)
    with pytest.raises(UserError, match=r"numbers.pt: parameter .* is not finite"):
        getattr(place, way)(place.write("numbers.pt", state))
