"""The parts of mechanisms in a model: how they are attached, and found again."""

from typing import Any, Dict, Iterator, Optional, Tuple

from fairseq.models import BaseFairseqModel
from torch import nn

from capsule_routing.errors import UserError
from fairseq_capsule.mechanisms.base import Mechanism
from fairseq_capsule.mechanisms.registry import active_mechanisms, registered


def add_part(owner: Any, mechanism: str, part: nn.Module, where: str) -> str:
    """Attach a part of a mechanism to an encoder, a decoder or an attention, and return the name of its attribute.

    `owner.mechanism_parts` maps the attribute to the mechanism. If the owner has the attribute already, a UserError
    names it by `where`.
    """
    name = registered(mechanism).attached_as(part)
    if hasattr(owner, name):
        raise UserError(f"{mechanism}: {where} already has a part {name}; turn one of them off")
    owner.add_module(name, part)
    owner.mechanism_parts[name] = mechanism
    return name


def parts_of(model: BaseFairseqModel, mechanism: Mechanism) -> Iterator[nn.Module]:
    """Yield the parts that a mechanism has in a model: after its encoder and decoder, and in attentions."""
    for module in model.modules():
        for name, owner in getattr(module, "mechanism_parts", {}).items():
            if owner == mechanism.name:
                yield getattr(module, name)


def loss_heads(model: BaseFairseqModel) -> Iterator[Tuple[Mechanism, str, Optional[nn.Module]]]:
    """Yield the losses of a model's mechanisms, each with its mechanism, its name and its head.

    The head is None for a loss without parameters. A loss whose head was not built is left out.
    """
    own = getattr(model.decoder, "mechanism_parts", {})
    for mechanism in active_mechanisms(getattr(model, "cfg", None)):
        parts = [getattr(model.decoder, part) for part, owner in own.items() if owner == mechanism.name]
        for name in mechanism.loss_weights:
            built = [getattr(part, name) for part in parts if hasattr(part, name)]
            if None not in built:  # None: the part can have this head, but was built without it
                yield mechanism, name, next((head for head in built if isinstance(head, nn.Module)), None)


def leave_out_agreements(names: str, module: Any, state_dict: Dict[str, Any], prefix: str, *_: Any) -> None:
    """Leave out the parameters of a checkpoint whose names start with `names` if one iteration does not read them.

    For `register_load_state_dict_pre_hook`.
    """
    if module.iterations == 1:
        for name in [name for name in state_dict if name.startswith(prefix + names)]:
            del state_dict[name]
