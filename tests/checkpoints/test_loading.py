"""What fairseq and this package write loads, and is read once."""

import sys
from collections import OrderedDict

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils, options
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import meters, metrics
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.tasks import setup_task
from omegaconf import OmegaConf

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.averaging import average_checkpoints
from fairseq_capsule.checkpoints.loading import read_checkpoint
from fairseq_capsule.checkpoints.models import load_model
from fairseq_capsule.mechanisms.registry import routing_options
from tests.checkpoints.ways_in import SETTINGS, TASK
from tests.zoo import SMALL, SYSTEMS

# Architectures of fairseq, with and without a dataclass. In those without, fairseq evaluates the layers as Python text.
PLAIN = ["transformer_tiny", "lstm_wiseman_iwslt_de_en", "fconv_iwslt_de_en"]


def ema(state):
    """--store-ema --ema-fp32"""
    parameters = state["model"]
    state["extra_state"]["ema_fp32_params"] = {name: value.float() + 1 for name, value in parameters.items()}
    state["extra_state"]["ema"] = OrderedDict((name, value + 1) for name, value in parameters.items())


def half(state):
    """--fp16, with its parameters of float32 in the optimiser's state"""
    state["model"] = OrderedDict((name, value.half()) for name, value in state["model"].items())
    flat = torch.cat([value.flatten() for value in state["model"].values()]).float()
    state["last_optimizer_state"]["state"] = {0: {"step": torch.tensor(3.0), "exp_avg": flat, "exp_avg_sq": flat**2}}
    state["last_optimizer_state"]["loss_scale"] = 128.0


def eval_bleu(state):
    """--eval-bleu, whose counts are arrays in the meters"""
    with metrics.aggregate("valid"):
        metrics.log_scalar("_bleu_counts", np.array([9, 5, 2, 0]))
        metrics.log_derived("bleu", lambda meters: meters["_bleu_counts"].sum[0].item())
    state["extra_state"]["metrics"] = metrics.state_dict()
    assert any(isinstance(part, np.ndarray) for part in state["extra_state"]["metrics"]["valid"][0][3].values())


def saved_meters():
    """The classes of meters. That of a derived figure is made anew after loading."""
    return [kind for kind in meters.Meter.__subclasses__() if kind.__qualname__ == kind.__name__]


def own_meters(state):
    """fairseq's meters themselves, as its older versions saved them, under the name of their former module"""
    kinds = {"average": meters.AverageMeter(), "sum": meters.SumMeter(), "times": meters.TimeMeter()}
    kinds |= {"watch": meters.StopwatchMeter(), "parts": meters.ConcatTensorMeter()}
    assert {type(kind) for kind in kinds.values()} == set(saved_meters())
    kinds["average"].update(torch.tensor(3.0), n=2)
    state["extra_state"]["train_meters"] = OrderedDict(kinds)


@pytest.mark.parametrize("form, older", [(ema, False), (half, True), (eval_bleu, False), (own_meters, True)])
def test_every_form_of_a_training_s_checkpoint_loads(place, form, older):
    state = place.state()
    form(state)
    path = place.folder / f"{form.__name__}.pt"
    torch.save(state, path, _use_new_zipfile_serialization=not older)
    loaded = read_checkpoint(path)
    for name, value in state["model"].items():
        assert torch.equal(loaded["model"][name], value) and loaded["model"][name].dtype == value.dtype
    metrics.load_state_dict(loaded["extra_state"]["metrics"])
    model, *_ = load_model(path, place.data)
    weight = "decoder.embed_tokens.weight"
    assert torch.equal(model.state_dict()[weight], state["model"][weight].float())
    averaged = average_checkpoints([path, path], routing_options)
    assert not averaged["extra_state"].keys() & {"ema", "ema_fp32_params"}
    torch.save(averaged, path)
    again = read_checkpoint(path)["model"]
    assert all(torch.equal(again[name], value) for name, value in state["model"].items())


def test_meters_of_fairseq_s_older_module_load(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "fairseq.meters", meters)
    for kind in saved_meters():
        monkeypatch.setattr(kind, "__module__", "fairseq.meters")
    state = place.state()
    own_meters(state)
    path = place.write("older_meters.pt", state)
    monkeypatch.undo()
    loaded = read_checkpoint(path)["extra_state"]["train_meters"]
    assert loaded["average"].avg == 3 and type(loaded["watch"]) is meters.StopwatchMeter


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3).T, np.arange(3, dtype=">i4"), np.array(True)])
def test_arrays_load_and_are_saved_as_arrays_of_numpy(tmp_path, array):
    path = tmp_path / "array.pt"
    value = [array]
    for _ in range(2):
        torch.save({"metrics": value}, path)
        with open(path, "rb") as file:
            value = checkpoint_utils.torch.load(file)["metrics"]
        np.testing.assert_array_equal(value[0], array)
        assert value[0].shape == array.shape and value[0].dtype.kind == array.dtype.kind
    with torch.serialization.safe_globals([np.ndarray, np._core.multiarray._reconstruct, np.dtype, type(array.dtype)]):
        assert type(torch.load(path, weights_only=True)["metrics"][0]) is np.ndarray


@pytest.mark.parametrize("arch", [*SYSTEMS, *PLAIN])
def test_every_architecture_loads(place, arch):
    """The checkpoint has the trainer's format, or the format of fairseq before it had configs."""
    fields = getattr(MODEL_DATACLASS_REGISTRY.get(arch), "__dataclass_fields__", {})
    small = {name: value for name, value in SMALL.items() if name in fields and arch in SYSTEMS}
    sizes = [part for name, value in small.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    arguments = [str(place.data), *TASK, *SETTINGS, "--arch", arch, *sizes]
    args = options.parse_args_and_arch(options.get_training_parser(), arguments)
    cfg = convert_namespace_to_omegaconf(args)
    model = setup_task(cfg.task).build_model(cfg.model)
    state = {**place.state(), "model": model.state_dict()}
    for form in ({"cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)}, {"cfg": None, "args": args}):
        path = place.write("real.pt", {**state, **form})
        (loaded,), _, _ = load_model_ensemble_and_task([str(path)])
        assert type(loaded) is type(model)
        assert all(torch.equal(loaded.state_dict()[name], value) for name, value in model.state_dict().items())


def test_a_criterion_that_is_gone_does_not_matter(place):
    state = place.state()
    state["cfg"]["criterion"]["_name"] = "label_smoothed_cross_entropy_with_guided_losses"
    path = place.write("older_criterion.pt", state)
    for way in (place.size, place.hub_load, place.generate):
        way(path)


def test_fairseq_keeps_its_eval_and_torch_its_load():
    changed = [name for name, module in sys.modules.items() if name.startswith("fairseq.") and "eval" in vars(module)]
    assert not changed
    assert checkpoint_utils.torch.load is not torch.load and torch.load.__module__ == "torch.serialization"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off"])
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(content)
    with pytest.raises(UserError, match="checkpoint.pt: not loaded: .* not a checkpoint"):
        read_checkpoint(path)


def test_another_file_of_torch_is_named(tmp_path):
    torch.save({"model": {}}, tmp_path / "other.pt")
    with pytest.raises(UserError, match="other.pt: .*not a checkpoint of fairseq"):
        read_checkpoint(tmp_path / "other.pt")
