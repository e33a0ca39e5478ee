"""Every entry point loads what fairseq and this package write, and refuses text that calls something."""

from collections import OrderedDict

import numpy as np
import pytest
import torch
from fairseq import options
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import metrics
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.tasks import setup_task
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.averaging import average_checkpoints
from fairseq_capsule.checkpoints.loading import read_checkpoint
from fairseq_capsule.checkpoints.models import load_model
from tests.checkpoints import hostile
from tests.checkpoints.expressions import CALLED
from tests.checkpoints.marker import MARKER
from tests.checkpoints.ways_in import SETTINGS, TASK, WAYS
from tests.zoo import ARCHITECTURES, SMALL

# Commands that need another kind of checkpoint load this one, and then refuse it with these words.
OTHER_KINDS = {"probe": "bag_of_words_probe", "overlap": "guided-heads"}
# Architectures of fairseq, with and without a dataclass. In those without, fairseq evaluates the layers as Python text.
PLAIN = ["transformer_tiny", "lstm_wiseman_iwslt_de_en", "fconv_iwslt_de_en", "lightconv_iwslt_de_en"]


@pytest.mark.parametrize("way", WAYS)
def test_a_real_checkpoint_loads(place, way):
    try:
        getattr(place, way)(place.good)
    except UserError as error:
        assert OTHER_KINDS.get(way, "nothing") in str(error)


def ema(state):
    """--store-ema --ema-fp32"""
    parameters = state["model"]
    state["extra_state"]["ema_fp32_params"] = {name: value.float() + 1 for name, value in parameters.items()}
    state["extra_state"]["ema"] = OrderedDict((name, value + 1) for name, value in parameters.items())


def half(state):
    """--fp16, with its parameters of float32 in the optimiser's state"""
    state["model"] = OrderedDict((name, value.half()) for name, value in state["model"].items())
    state["extra_state"].update(ema=state["model"], previous_training_time=1.5)
    flat = torch.cat([value.flatten() for value in state["model"].values()]).float()
    state["last_optimizer_state"]["state"] = {0: {"step": torch.tensor(3.0), "exp_avg": flat, "exp_avg_sq": flat**2}}
    state["last_optimizer_state"]["loss_scale"] = 128.0


def eval_bleu(state):
    """--eval-bleu, whose counts are arrays in the meters"""
    with metrics.aggregate("valid"):
        metrics.log_scalar("_bleu_counts", np.array([9, 5, 2, 0]))
        metrics.log_scalar("_bleu_sys_len", np.int64(12).item(), round=3)
        metrics.log_derived("bleu", lambda meters: meters["_bleu_counts"].sum[0].item())
    state["extra_state"]["metrics"] = metrics.state_dict()
    assert any(isinstance(part, np.ndarray) for part in state["extra_state"]["metrics"]["valid"][0][3].values())


def sharded(state):
    """--ddp-backend fully_sharded: a part of the optimiser's state, views of one storage, and where parts belong"""
    flat = torch.arange(300.0)
    state["last_optimizer_state"] = {
        "state": {index: {"step": 1, "exp_avg": flat[100 * index : 100 * index + 100]} for index in range(3)},
        "param_groups": [{"lr": 0.1, "betas": (0.9, 0.98), "params": [0, 1, 2], "initial_lr": 0.1}],
        "partition": [[0, 1], [2]],
        "uncollected_local_ids": [],
    }
    shapes = [value.shape for value in state["model"].values()]
    parameters = {"flat_param_0": {"names": list(state["model"]), "shapes": shapes, "numels": [5], "padding": 3}}
    state["shard_metadata"] = {
        "param_metadata": [{"fsdp_path": "", "params": parameters, "no_broadcast_optim_state": False}],
        "buffer_names": ["decoder.version"],
    }


@pytest.mark.parametrize("older", [False, True], ids=["archive", "older"])
@pytest.mark.parametrize("form", [ema, half, eval_bleu, sharded])
def test_every_form_of_a_training_s_checkpoint_loads(place, form, older):
    state = place.state()
    form(state)
    path = place.folder / f"{form.__name__}.pt"
    torch.save(state, path, _use_new_zipfile_serialization=not older)
    loaded = read_checkpoint(path)
    for name, value in state["model"].items():
        assert torch.equal(loaded["model"][name], value) and loaded["model"][name].dtype == value.dtype
    assert loaded.get("shard_metadata") == state.get("shard_metadata")
    metrics.load_state_dict(loaded["extra_state"]["metrics"])
    model, *_ = load_model(path, place.data)
    weight = "decoder.embed_tokens.weight"
    assert torch.equal(model.state_dict()[weight], state["model"][weight].float())
    averaged = average_checkpoints([path, path])
    assert not averaged["extra_state"].keys() & {"ema", "ema_fp32_params"}
    torch.save(averaged, path)
    again = read_checkpoint(path)["model"]
    assert all(torch.equal(again[name], value) for name, value in state["model"].items())
    place.baseline(path)


@pytest.mark.parametrize("arch", [*ARCHITECTURES, *PLAIN])
def test_every_architecture_loads(place, arch):
    """The checkpoint has the trainer's format, or the format of fairseq before it had configs."""
    fields = getattr(MODEL_DATACLASS_REGISTRY.get(arch), "__dataclass_fields__", {})
    small = {name: value for name, value in SMALL.items() if name in fields and arch in ARCHITECTURES}
    sizes = [part for name, value in small.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    arguments = [str(place.data), *TASK, *SETTINGS, "--arch", arch, *sizes]
    args = options.parse_args_and_arch(options.get_training_parser(), arguments)
    cfg = convert_namespace_to_omegaconf(args)
    model = setup_task(cfg.task).build_model(cfg.model)
    state = {**place.state(), "model": model.state_dict()}
    forms = [{"cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)}]
    if arch.endswith(("tiny", "lstm", "de_en")):  # the larger ones read the same options
        forms.append({"cfg": None, "args": args})
    for form in forms:
        path = place.write("real.pt", {**state, **form})
        (loaded,), _, _ = load_model_ensemble_and_task([str(path)])
        assert type(loaded) is type(model)
        for name, value in model.state_dict().items():
            # lightconv does not initialise some of its parameters
            assert torch.equal(loaded.state_dict()[name].nan_to_num(), value.nan_to_num())


@settings(max_examples=60)
@given(CALLED, st.sampled_from(WAYS), st.sampled_from(["decoder_attention", "adaptive_softmax_cutoff"]), st.booleans())
def test_text_with_a_call_is_refused(place, nothing_starts, text, way, option, older):
    state = place.state()
    state["last_optimizer_state"] = None
    form = hostile.option(option, text)[f"{option}, {'args' if older else 'cfg'}"]
    with nothing_starts(), pytest.raises((UserError, SystemExit), match=f"not loaded: its option .*{option}"):
        getattr(place, way)(place.write("calls.pt", form(state)))
    assert not MARKER.exists()
