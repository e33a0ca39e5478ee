"""Every entry point loads what fairseq and this package write, and refuses text that calls something."""

import pytest
import torch
from fairseq import options
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.tasks import setup_task
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from fairseq_capsule.errors import UserError
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
    forms = [
        {"cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)},
        {"cfg": None, "args": args},
    ]
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
