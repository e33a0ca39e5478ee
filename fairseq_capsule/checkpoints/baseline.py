"""A model that starts from the checkpoint of a trained baseline: its architecture, its computation, its parameters.

The checkpoint is read once, by `read_checkpoint`, and handed to each function.
"""

import logging
import re
from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Callable, Collection, Dict, List, Set

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor

from fairseq_capsule.checkpoints.readings import READINGS, readings
from fairseq_capsule.data.dictionaries import refuse_other_dictionaries
from fairseq_capsule.errors import UserError

logger = logging.getLogger(__name__)

# Buffers that older fairseq models save and that nothing reads.
WITHOUT_MEANING = ("version", "_float_tensor")

# The options of fairseq's Transformer and LSTM that determine the parameters and the computation.
SIZE = re.compile(r"(encoder|decoder)_(layers|((ffn|out)_)?embed_dim|(input|output)_dim|hidden_size|attention_heads)")
POSITIONS = re.compile(r"max_(source|target)_positions")
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

    Args:
        config: the options that fairseq passes to `build_model`. It is changed in place, so that the checkpoints of the
            training contain the options that the model was built with.
        path, state: the name and the content of a checkpoint of a Transformer or an LSTM.

    Raises:
        UserError: the checkpoint has another kind of model, or an option with an impossible value.
    """
    label = f"--like-baseline {path}"
    if not isinstance(state.get("model"), dict):
        raise UserError(f"{label}: it contains no model")
    options = _flat(_options(state))
    # A forged size could fill the memory. No real size exceeds the largest dimension of a parameter with content.
    parameters = [value for value in state["model"].values() if value.numel()]
    largest = max((side for parameter in parameters for side in parameter.shape), default=0)
    taken = {}
    for name in _names(config):
        if name in options and _is_architecture(name, options):
            most = len(parameters) if name.endswith("_layers") else largest
            taken[name] = _checked(label, name, options[name], most)
        elif NEEDED.fullmatch(name):
            raise UserError(
                f"{label}: it has no option {name}; name a baseline of the model's kind, Transformer or LSTM"
            )
    try:
        for name, value in taken.items():
            setattr(config, name, value)
    except (OmegaConfBaseException, ValueError) as error:
        raise UserError(f"{label}: its {name} cannot be {str(value)!r}") from error
    logger.info(f"{path}: took {', '.join(f'{name}={value}' for name, value in taken.items())}")


def refuse_other_computation(
    config: Any, path: str, state: Dict[str, Any], routing_options: Callable[[Any], Set[str]]
) -> None:
    """Refuse a baseline that computes something else with the same parameters, such as another number of heads.

    Options that a checkpoint does not have, or that have no value, are not compared.

    Args:
        config: the options of the model.
        path, state: the name and the content of the baseline's checkpoint.
        routing_options: returns the names of the options that a config's mechanisms set.

    Raises:
        UserError: an option that determines the computation differs, or one of a mechanism that the baseline contains.
    """
    options, own = _flat(_options(state)), _flat(config)
    without_effect = READINGS.keys() - readings(options)
    compared = routing_options(Namespace(**options)).union(filter(COMPUTATION.fullmatch, own)) - without_effect
    for name in sorted(compared & options.keys() & own.keys()):
        theirs, ours = options[name], own[name]
        if theirs is not None and ours is not None and str(theirs) != str(ours):
            raise UserError(
                f"--init-from-baseline {path}: its {name} is {str(theirs)[:40]!r}, but that of the model is "
                f"{str(ours)[:40]!r}; use the options of the baseline"
            )


def init_from_baseline(
    model: BaseFairseqModel,
    path: str,
    state: Dict[str, Any],
    source_dictionary: Dictionary,
    target_dictionary: Dictionary,
    added: Collection[str],
    removed: Collection[str],
):
    """Copy all parameters of a baseline into a model. The other parameters of the model keep their initialisation.

    Both numbers of parameters are logged.

    Args:
        path, state: the name and the content of the baseline's checkpoint. The names of its parameters are updated.
        source_dictionary, target_dictionary: the dictionaries of the data.
        added, removed: the names of the parameters that the model's mechanisms added to those of the baseline's kind,
            and of those that they removed.

    Raises:
        UserError: the baseline has another dictionary, other dimensions, parameters that the model does not have, or
            separate embeddings that the model shares. Or the model has parameters that are not in the baseline and that
            no mechanism adds.
    """
    if not isinstance(state.get("model"), dict):
        raise UserError(f"--init-from-baseline {path}: it contains no model")
    refuse_other_dictionaries(f"--init-from-baseline {path}", state, source_dictionary, target_dictionary)
    baseline = state["model"]
    model.upgrade_state_dict(baseline)
    own = model.state_dict()
    parameters = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    strangers = [
        name for name in baseline if name not in own and name not in removed and not name.endswith(WITHOUT_MEANING)
    ]
    if strangers:
        raise UserError(
            f"--init-from-baseline {path}: the model has no {_listed(strangers)}; use the architecture, the layers "
            "and the options of the baseline"
        )
    for name, value in baseline.items():
        if name in parameters and not value.is_floating_point():
            raise UserError(f"--init-from-baseline {path}: {name} is of type {value.dtype}, which no parameter has")
        if name in own and own[name].shape != value.shape:
            raise UserError(
                f"--init-from-baseline {path}: {name} has the shape {tuple(value.shape)} there and "
                f"{tuple(own[name].shape)} in the model; use the dimensions of the baseline"
            )
    new = [name for name in parameters if name not in baseline]
    missing = [name for name in new if name not in added]
    if missing:
        raise UserError(
            f"--init-from-baseline {path}: it has no {_listed(missing)}, which no mechanism adds; "
            "use the layers and the options of the baseline"
        )
    _check_sharing(path, model, baseline)
    model.load_state_dict({**own, **{name: value for name, value in baseline.items() if name in own}})

    logger.info(
        f"{path}: took {len(parameters) - len(new)} of the model's {len(parameters)} parameters; new: {_listed(new)}"
    )


def _check_sharing(path: str, model: BaseFairseqModel, baseline: Dict[str, Tensor]) -> None:
    """Raise a UserError if the baseline has different values for embeddings that the model shares."""
    seen: Dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if name not in baseline:
            continue
        other = seen.setdefault(id(parameter), name)
        if not torch.equal(baseline[name], baseline[other]):
            raise UserError(
                f"--init-from-baseline {path}: {other} and {name} differ there but are shared in the model; "
                "share only the embeddings that the baseline shares"
            )


def _listed(names: List[str]) -> str:
    if not names:
        return "none"
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _options(state: Dict[str, Any]) -> Any:
    return (state.get("cfg") or {}).get("model") or state.get("args")


def _flat(options: Any) -> Dict[str, Any]:
    """Return the options of a model that have a value, under the names of this package."""
    if isinstance(options, Namespace):
        options = vars(options)
    elif isinstance(options, DictConfig):
        options = OmegaConf.to_container(options)
    given = options.items() if isinstance(options, Mapping) else ()
    options = {name: value for name, value in given if isinstance(name, str) and value != MISSING}
    for side in ("encoder", "decoder"):  # the nested config of fairseq's Transformer
        if isinstance(options.get(side), Mapping):
            options.update({f"{side}_{name}": value for name, value in options[side].items()})
    if "encoder_bidirectional" in options:  # fairseq's LSTM
        options = {"encoder_directions": 2 if options["encoder_bidirectional"] is True else 1, **options}
    return options


def _names(config: Any) -> List[str]:
    return list(vars(config) if isinstance(config, Namespace) else config)


def _is_architecture(name: str, options: Dict[str, Any]) -> bool:
    if POSITIONS.fullmatch(name):  # without learned positions, the model keeps its own maximum
        return options.get("encoder_learned_pos" if "source" in name else "decoder_learned_pos") is True
    return name == "encoder_directions" or bool(SIZE.fullmatch(name) or CHOICE.fullmatch(name))


def _checked(label: str, name: str, value: Any, most: int) -> Any:
    """Return the value if its type and range are right for the option. None leaves the option to fairseq."""
    if CHOICE.fullmatch(name):
        allowed = type(value) is bool or (isinstance(value, str) and re.fullmatch(r"\w{1,20}", value, re.ASCII))
    else:
        allowed = type(value) is int and 1 <= value <= most
    if not allowed and value is not None:
        raise UserError(f"{label}: its {name} cannot be {str(value)[:40]!r}")
    return value
