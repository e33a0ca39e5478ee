"""Arrays of numbers in checkpoints, and pickles that describe other arrays."""

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.contents import CODES
from tests.checkpoints.hostile_files import Made
from tests.tasks.test_capsule_translation import save


def reconstruct():
    return np.empty(0).__reduce__()[:2]


def kind(code="i8", state=(3, "<", None, None, None, -1, -1, 0)):
    return Made(np.dtype, (code, False, True), state)


HOSTILE = {
    "objects": np.array([[1]], dtype=object),
    "text": np.array(["a"]),
    "records": np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "big-endian": np.arange(3, dtype=">i4"),
    "a scalar": np.float64(1),
    "a type alone": np.dtype("i8"),
    "too few bytes": Made(*reconstruct(), (1, (1000,), kind(), False, b"12345678")),
    "too many bytes": Made(*reconstruct(), (1, (1,), kind(), False, bytes(80))),
    "a negative size": Made(*reconstruct(), (1, (-1, -1), kind(), False, bytes(8))),
    "a large size": Made(*reconstruct(), (1, (10**30,), kind(), False, bytes(8))),
    "a size that is no number": Made(*reconstruct(), (1, ("a",), kind(), False, bytes(8))),
    "a type that is none": Made(*reconstruct(), (1, (1,), "i8", False, bytes(8))),
    "content that is none": Made(*reconstruct(), (1, (1,), kind(), False, [1])),
    "a short state": Made(*reconstruct(), (1, (1,))),
    "no tuple as state": Made(*reconstruct(), 5),
    "a type with fields": Made(*reconstruct(), (1, (1,), kind("V8"), False, bytes(8))),
    "a type with a list as code": Made(*reconstruct(), (1, (1,), kind(["i8"]), False, bytes(8))),
    "a state of a type": Made(*reconstruct(), (1, (1,), kind("i8", ()), False, bytes(8))),
    "a key": {np.dtype("i8"): 1},
}


def load(path, value):
    """Save a checkpoint with this value in its metrics, and load it."""
    save(path, cfg=None, args=None, model={}, extra_state={"train_iterator": {"epoch": 1}, "metrics": value})
    return checkpoint_utils.load_checkpoint_to_cpu(str(path))["extra_state"]["metrics"]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_arrays_of_numbers_are_loaded(tmp_path, code, shape):
    array = np.arange(np.prod(shape)).reshape(shape).astype(code)
    once = load(tmp_path / "once.pt", [array, array.T])
    for loaded, saved in zip([*once, *load(tmp_path / "twice.pt", once)], [array, array.T] * 2):
        np.testing.assert_array_equal(loaded, saved)
        assert (loaded.dtype, (loaded + loaded).shape) == (saved.dtype, shape if saved is array else shape[::-1])


def test_a_loaded_array_is_one_of_numpy(tmp_path):
    assert type(load(tmp_path / "model.pt", {"a": [(np.arange(3),)]})["a"][0][0]) is np.ndarray


@pytest.mark.parametrize(
    "place", ["last_optimizer_state", "optimizer_history", "task_state", "model", "criterion", "cfg", "args"]
)
def test_only_the_metrics_have_arrays(tmp_path, place):
    content = {"cfg": None, "args": None, "model": {}, place: {"a": np.arange(3)}}
    save(tmp_path / "model.pt", **content)
    with pytest.raises(UserError, match="not loaded: its "):
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "model.pt"))


def test_a_pickle_cannot_make_a_tensor_of_an_array(tmp_path):
    """They would share memory, and a second state of the array would free it."""
    call = Made(torch._utils._rebuild_device_tensor_from_numpy, (np.arange(3), torch.int64, "cpu", False))
    with pytest.raises(UserError, match="not loaded: .*_rebuild_device_tensor_from_numpy"):
        load(tmp_path / "model.pt", call)


@pytest.mark.parametrize("name", HOSTILE)
def test_other_arrays_are_refused(tmp_path, name):
    with pytest.raises(UserError, match="not loaded: it(s extra_state.metrics| contains) ") as error:
        load(tmp_path / "model.pt", HOSTILE[name])
    assert str(error.value).isprintable()
