"""A model that starts from the checkpoint of a trained baseline: its architecture, its computation, its parameters."""

import logging
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Collection, Dict, List, Optional, Set, Tuple

import torch
from fairseq.models import BaseFairseqModel
from omegaconf import MISSING, DictConfig, OmegaConf
from torch import Tensor

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.loading import model_options

logger = logging.getLogger(__name__)

# Buffers that older fairseq models save and that nothing reads.
WITHOUT_MEANING = ("version", "_float_tensor")

# The options of fairseq's Transformer and LSTM that determine the parameters and the computation.
SIZE = re.compile(
    r"(encoder|decoder)_(layers|((ffn|out)_)?embed_dim|(input|output)_dim|hidden_size|attention_heads|directions)"
)
# A size, too, if the positions are learned; otherwise the model keeps its own maximum.
POSITIONS = {"max_source_positions": "encoder_learned_pos", "max_target_positions": "decoder_learned_pos"}
WITHOUT_PARAMETERS = (
    r"(encoder|decoder)_normalize_before|activation_fn"
    r"|no_(scale_embedding|token_positional_embeddings|decoder_final_norm)"
)
CHOICE = re.compile(
    rf"{WITHOUT_PARAMETERS}|(encoder|decoder)_(learned_pos|attention)|layernorm_embedding"
    r"|share_(all_embeddings|decoder_input_output_embed)"
)
# Options with which the same parameters can compute something else.
COMPUTATION = re.compile(rf"{WITHOUT_PARAMETERS}|(encoder|decoder)_attention_heads|cross_self_attention")
# If the model has one of these options and the checkpoint does not, the checkpoint is of another kind of model.
NEEDED = re.compile(r"(encoder|decoder)_(layers|embed_dim|hidden_size|attention_heads)")


def take_architecture(config: Any, path: str, state: Dict[str, Any]) -> None:
    """Copy the sizes, the layer options and the sharing of embeddings from a baseline to a model's config.

    `config` has the options that fairseq passes to `build_model`. It is changed in place, so that the checkpoints of
    the training contain the options that the model was built with. Another kind of model in the checkpoint `state`
    raises a UserError.
    """
    options, taken = _flat(model_options(state)), []
    for name in list(vars(config) if isinstance(config, Namespace) else config):
        if name not in options:
            if NEEDED.fullmatch(name):
                remedy = "name a baseline of the model's kind, Transformer or LSTM"
                raise UserError(f"--like-baseline {path}: it has no option {name}; {remedy}")
            continue
        learned = name in POSITIONS and options.get(POSITIONS[name]) is True
        if learned or CHOICE.fullmatch(name) or SIZE.fullmatch(name):
            setattr(config, name, options[name])
            taken.append(f"{name}={options[name]}")
    logger.info(f"{path}: took {', '.join(taken)}")


RoutingOptions = Callable[[Any], Set[str]]  # returns the names of the options that a config's mechanisms set


def refuse_other_computation(config: Any, path: str, state: Dict[str, Any], routing_options: RoutingOptions) -> None:
    """Refuse a baseline that computes something else with the same parameters, such as another number of heads.

    An option that determines the computation of the model with options `config`, or one of a mechanism in the baseline,
    must not differ; otherwise a UserError is raised. Options without a value are not compared.
    """
    options, own = _flat(model_options(state)), _flat(config)
    compared = routing_options(Namespace(**options)).union(filter(COMPUTATION.fullmatch, own))
    for name, theirs, ours in _differences(compared, options, own):
        values = f"is {theirs}, but that of the model is {ours}"
        raise UserError(f"--init-from-baseline {path}: its {name} {values}; use the options of the baseline")


def other_computation(options: Any, others: Any, routing_options: RoutingOptions) -> Optional[Tuple[str, str, str]]:
    """Return the first option with which two models of equal parameters compute something else, and both values.

    They are the options of the models in two checkpoints. Options without a value are not compared.
    """
    first, second = _flat(options), _flat(others)
    compared = routing_options(Namespace(**first)) | routing_options(Namespace(**second))
    return next(_differences(compared.union(filter(COMPUTATION.fullmatch, first)), first, second), None)


def _differences(
    names: Set[str], first: Mapping[str, Any], second: Mapping[str, Any]
) -> Iterator[Tuple[str, str, str]]:
    for name in sorted(names & first.keys() & second.keys()):
        one, other = first[name], second[name]
        if one is not None and other is not None and str(one) != str(other):
            yield name, repr(str(one)[:40]), repr(str(other)[:40])


def init_from_baseline(
    model: BaseFairseqModel,
    path: str,
    state: Dict[str, Any],
    added: Collection[str],
    removed: Collection[str],
) -> None:
    """Copy all parameters of a baseline into a model. The other parameters of the model keep their initialisation.

    The other parameters on both sides are logged. `state` is the checkpoint `path`; its parameters get their present
    names. `added` and `removed` are the names of parameters that mechanisms added to those of the baseline's kind or
    removed. Other dimensions, other parameters than these, and separate embeddings that the model shares raise a
    UserError.
    """
    label = f"--init-from-baseline {path}"
    baseline: Dict[str, Tensor] = state["model"]
    model.upgrade_state_dict(baseline)
    own = model.state_dict()
    parameters = dict(model.named_parameters(remove_duplicate=False))
    absent = [name for name in baseline if name not in own and not name.endswith(WITHOUT_MEANING)]
    strangers = [name for name in absent if name not in removed]
    if strangers:
        remedy = "use the architecture, the layers and the options of the baseline"
        raise UserError(f"{label}: the model has no {_names(strangers)}; {remedy}")
    for name, value in baseline.items():
        if name in own and own[name].shape != value.shape:
            shapes = f"{tuple(value.shape)} there and {tuple(own[name].shape)} in the model"
            raise UserError(f"{label}: {name} has the shape {shapes}; use the dimensions of the baseline")
    new = [name for name in parameters if name not in baseline]
    missing = [name for name in new if name not in added]
    if missing:
        remedy = "use the layers and the options of the baseline"
        raise UserError(f"{label}: it has no {_names(missing)}, which no mechanism adds; {remedy}")
    first: Dict[int, str] = {}
    for name, parameter in parameters.items():
        other = first.setdefault(id(parameter), name) if name in baseline else name
        if other != name and not torch.equal(baseline[name], baseline[other]):
            remedy = "share only the embeddings that the baseline shares"
            raise UserError(f"{label}: {other} and {name} differ there but are shared in the model; {remedy}")
    model.load_state_dict({**own, **{name: value for name, value in baseline.items() if name in own}})
    number = len(parameters)
    logger.info(f"{path}: took {number - len(new)} of the model's {number} parameter tensors; new: {_names(new)}")
    logger.info(f"{path}: left out, because a mechanism replaces them: {_names(absent)}")


def _names(names: List[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "") or "none"


def _flat(options: Any) -> Dict[str, Any]:
    """Return the options of a model that have a value, under the names of this package."""
    options = OmegaConf.to_container(options) if isinstance(options, DictConfig) else options
    values = options if isinstance(options, Mapping) else getattr(options, "__dict__", {})
    flat = {name: value for name, value in values.items() if isinstance(name, str) and value != MISSING}
    for side in ("encoder", "decoder"):  # the nested config of fairseq's Transformer
        if isinstance(flat.get(side), Mapping):
            flat.update({f"{side}_{name}": value for name, value in flat[side].items()})
    if "encoder_bidirectional" in flat:  # fairseq's LSTM
        flat = {"encoder_directions": 2 if flat["encoder_bidirectional"] is True else 1, **flat}
    return flat
