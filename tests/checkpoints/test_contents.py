"""A checkpoint is built again: what its pickle does to methods and storages is gone, or the file is refused."""

import contextlib
import io
from argparse import Namespace
from collections import Counter, OrderedDict

import pytest
import torch
from fairseq import checkpoint_utils
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.averaging import average_checkpoints
from fairseq_capsule.checkpoints.contents import COUNTED, NUMBERS, PARAMETERS, rebuild
from tests.checkpoints.hostile_files import NO_ARCHIVE, Made, saved

FORMS = pytest.mark.parametrize("options", [{}, NO_ARCHIVE], ids=["archive", "older"])


def filled(kind, content, planted):
    """A mapping with entries and other attributes."""
    return Made(kind, (), planted, None, iter(content.items()))


def tensor(value, planted):
    """A tensor with other attributes, as torch restores those of a subclass."""
    arguments = value.untyped_storage(), 0, tuple(value.shape), value.stride(), False, OrderedDict()
    arguments = (torch.storage.TypedStorage(wrap_storage=arguments[0], dtype=value.dtype), *arguments[1:])
    return Made(
        torch._tensor._rebuild_from_type_v2, (torch._utils._rebuild_tensor_v2, torch.Tensor, arguments, planted)
    )


def methods(kind):
    return [name for name in dir(kind) if callable(getattr(kind, name, None)) and not name.startswith("__")]


@FORMS
@pytest.mark.parametrize("kind", [OrderedDict, Counter])
def test_methods_of_mappings_cannot_be_replaced(kind, options):
    planted = dict.fromkeys([*methods(kind), "__iter__", "new"], set)
    for part, content in (("model", {"w": torch.ones(2)}), ("extra_state", {"epoch": 1, "x": "y"})):
        file = saved({part: filled(kind, content, planted)}, **options)
        assert vars(torch.load(io.BytesIO(file))[part])["new"] is set
        rebuilt = rebuild(file)[part]
        assert type(rebuilt) is kind and not vars(rebuilt)
        assert list(rebuilt) == list(content) and str(rebuilt[list(content)[0]]) == str(content[list(content)[0]])


@FORMS
@given(names=st.sets(st.sampled_from(methods(torch.Tensor)), min_size=1, max_size=20))
def test_methods_of_tensors_cannot_be_replaced(names, options):
    for planted in (dict.fromkeys(names, set), {"anything": 1}):
        with contextlib.suppress(AttributeError, RuntimeError):  # torch refuses some
            rebuilt = rebuild(saved({"model": {"w": tensor(torch.ones(3), planted)}}, **options))["model"]["w"]
            assert type(rebuilt) is torch.Tensor and not rebuilt.__dict__


@FORMS
def test_a_parameter_becomes_a_tensor_without_attributes(options):
    parameter = nn.Parameter(torch.ones(3))
    parameter.is_floating_point = 1
    rebuilt = rebuild(saved({"model": {"w": parameter}}, **options))["model"]["w"]
    assert type(rebuilt) is torch.Tensor and not rebuilt.__dict__ and not rebuilt.requires_grad


def test_an_option_cannot_be_a_function():
    for planted in ({"dropout": set}, {"_get_kwargs": set}, {"__class__": torch.Tensor}):
        options = Namespace()
        vars(options).update(planted)
        with pytest.raises(UserError, match="its args.* is of type .*, which is not plain data"):
            rebuild(saved({"args": options}))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_the_average_sees_numbers_that_a_file_hides(place, value):
    """With `items` or `is_floating_point` replaced, the checks saw no parameter, and NaN was written."""
    state = place.state()
    for parameter in state["model"].values():
        parameter.fill_(value)
    planted = {"items": set, "values": set}
    tensors = {name: tensor(item, {"is_floating_point": set}) for name, item in state["model"].items()}
    hidden = filled(OrderedDict, tensors, planted)
    path = place.write("hidden.pt", {**state, "model": hidden, "last_optimizer_state": None})
    with pytest.raises(UserError, match="is not finite"):
        average_checkpoints([path])


def test_counts_are_checked_in_a_mapping_with_its_own_get(place):
    state = {**place.state(), "last_optimizer_state": None}
    iterator = {**state["extra_state"]["train_iterator"], "epoch": "/../../evil"}
    state["extra_state"] = filled(OrderedDict, {**state["extra_state"], "train_iterator": iterator}, {"get": set})
    with pytest.raises(UserError, match="its epoch is not a whole number from 0 on"):
        checkpoint_utils.load_checkpoint_to_cpu(str(place.write("counts.pt", state)))


@FORMS
def test_tied_tensors_share_a_storage_of_their_size(options):
    weight, large = torch.arange(12.0).view(3, 4), torch.arange(1000.0)
    model = {"a": weight, "b": weight, "c": nn.Parameter(weight), "view": weight.view(4, 3), "turned": weight.t()}
    model.update(slice=large[5:8], column=torch.arange(20.0).view(4, 5)[:, 1])
    state = {"model": model, "extra_state": {"ema": model}}
    rebuilt = rebuild(saved(state, **options))
    assert rebuilt["extra_state"]["ema"] is rebuilt["model"]
    places = {}
    for name, value in rebuilt["model"].items():
        assert torch.equal(value, model[name]) and value.is_contiguous()
        assert value.untyped_storage().nbytes() == value.numel() * value.element_size()
        places[name] = value.data_ptr()
    assert places["a"] == places["b"] == places["c"] != places["turned"]
    rebuilt["model"]["a"].zero_()
    assert rebuilt["model"]["slice"].tolist() == [5, 6, 7] and not rebuilt["model"]["b"].any()


@FORMS
@given(
    size=st.integers(0, 60),
    views=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(1, 3)), min_size=1, max_size=4),
    kind=st.sampled_from(PARAMETERS),
)
def test_no_storage_is_larger_than_its_tensors(size, views, kind, options):
    storage = torch.arange(size).to(kind)
    model = {str(number): storage[start:end:step] for number, (start, end, step) in enumerate(views)}
    rebuilt = rebuild(saved({"model": model}, **options))["model"]
    for name, value in rebuilt.items():
        assert torch.equal(value, model[name]) and value.is_contiguous()
        assert value.untyped_storage().nbytes() == value.numel() * value.element_size()


@FORMS
@pytest.mark.parametrize("shape", [(0,), (0, 200), (200, 0), (200, 0, 200)])
def test_empty_tensors_have_no_bytes(shape, options):
    rebuilt = rebuild(saved({"model": {"w": torch.zeros(shape)}, "extra": torch.zeros(shape)[:0]}, **options))
    assert rebuilt["model"]["w"].shape == shape and not rebuilt["model"]["w"].untyped_storage().nbytes()


def memory(*arguments):
    return Made(torch.storage.TypedStorage, arguments)


@FORMS
@pytest.mark.parametrize(
    "value",
    [
        Made(torch.FloatTensor, (5,)),
        Made(torch.Tensor, (5,)),
        Made(torch._utils._rebuild_tensor, (memory(5), 0, (5,), (1,))),
        Made(torch._utils._rebuild_tensor_v2, (torch.ones(3).storage(), 0, (2**28,), (1,), False, OrderedDict())),
        Made(torch._utils._rebuild_tensor_v2, (torch.ones(3).storage(), 0, (2**28,), (0,), False, OrderedDict())),
        Made(torch._utils._rebuild_tensor_v2, (torch.ones(3).storage(), 1, (3,), (1,), False, OrderedDict())),
        torch.ones(1).expand(2**40),
    ],
)
def test_memory_that_is_not_in_the_file_is_refused(value, options):
    with pytest.raises((UserError, RuntimeError)):
        rebuild(saved({"model": {"w": value}}, **options))


@FORMS
def test_a_storage_is_not_repeated_without_end(options):
    large = torch.ones(2000)
    with pytest.raises(UserError, match="repeats bytes of other tensors"):
        rebuild(saved({"model": {str(start): large[start:] for start in range(1, 50)}}, **options))


REFUSED = [torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2, *NUMBERS]


@pytest.mark.parametrize("name", ["w", "version.w", *(f"norm.{name}" for name in COUNTED)])
@pytest.mark.parametrize("dtype", [*PARAMETERS, *REFUSED])
@pytest.mark.parametrize("place", ["model", "ema"])
def test_parameters_have_types_of_parameters(place, name, dtype):
    parameters = {name: torch.ones(2).to(dtype)}
    state = {"model": parameters} if place == "model" else {"extra_state": {"ema": parameters}}
    if dtype in PARAMETERS or (name.startswith("norm.") and dtype in NUMBERS):
        rebuilt = rebuild(saved(state))
        assert (rebuilt.get("model") or rebuilt["extra_state"]["ema"])[name].dtype == dtype
    else:
        with pytest.raises(UserError, match=f"its parameter {name} is of type {dtype}; the types of parameters are"):
            rebuild(saved(state))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", ["model", "last_optimizer_state"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.qint8),
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.eye(3).to_sparse_csr(),
        lambda: torch.ones(3, device="meta"),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(1)]),
    ],
)
def test_tensors_that_are_not_dense_are_refused(make, part):
    with pytest.raises(UserError, match=rf"its {part}.w is not a dense CPU tensor \(.*\)"):
        rebuild(saved({part: {"w": make()}}))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float8_e4m3fn, *NUMBERS])
def test_the_optimiser_may_have_other_types(dtype):
    value = torch.ones(3).to(dtype)
    rebuilt = rebuild(saved({"last_optimizer_state": {"state": {0: {"step": value}}}}))
    assert rebuilt["last_optimizer_state"]["state"][0]["step"].dtype == dtype


def test_a_lazy_view_is_computed():
    value = torch._neg_view(torch.ones(3))
    assert value.is_neg()
    content = io.BytesIO()
    torch.save({"model": {"w": value}}, content)
    rebuilt = rebuild(content.getvalue())["model"]["w"]
    assert not rebuilt.is_neg() and rebuilt.tolist() == [-1, -1, -1]
