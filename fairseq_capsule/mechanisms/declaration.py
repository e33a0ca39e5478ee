"""Rules for what a mechanism declares. They are checked before it is registered."""

import os
import sys
from dataclasses import Field, fields, is_dataclass
from typing import Any, Iterable, List, Set, Type

from fairseq.dataclass import FairseqDataclass

REQUIRED = ("name", "summary", "options", "off")
# Keys of what fairseq's encoders and decoders return, and of what the models add.
RESERVED = frozenset(
    {
        *("encoder_out", "encoder_padding_mask", "encoder_embedding", "encoder_states", "fc_results", "src_tokens"),
        *("src_lengths", "sentences", "attn", "inner_states"),
    }
)


def option_fields(options: Type[FairseqDataclass]) -> List[Field[Any]]:
    """Return the fields of a dataclass that are options. fairseq's own field `_name` is none."""
    return [item for item in fields(options) if not item.name.startswith("_")]


def option_names(options: Type[FairseqDataclass]) -> Set[str]:
    """Return the names of the options of a dataclass."""
    return {item.name for item in option_fields(options)}


def all_option_names(mechanism: Any) -> Set[str]:
    """Return the names of a mechanism's options, with those of its losses."""
    return option_names(mechanism.options) | option_names(mechanism.loss_options or FairseqDataclass)


def check_declaration(mechanism: Any) -> None:
    """Check the attributes of a mechanism, without regard to others.

    Raises:
        ValueError: a required attribute is missing, the name is that of something that encoders or decoders return,
            `off`, `on` or `iterations` names an option that is not a field of `options`, or the mechanism cannot be on.
    """
    kind = type(mechanism).__qualname__
    for attribute in REQUIRED:
        if not getattr(mechanism, attribute, None):
            raise ValueError(f"mechanism {kind} has no `{attribute}`; set this attribute in the class")
    options, name = mechanism.options, mechanism.name
    if name in RESERVED:
        raise ValueError(f"mechanism {name}: fairseq's encoders or decoders return something of this name; rename it")
    for attribute, kind in (("options", options), ("loss_options", mechanism.loss_options or options)):
        if not (isinstance(kind, type) and is_dataclass(kind) and issubclass(kind, FairseqDataclass)):
            raise ValueError(
                f"mechanism {name}: `{attribute}` must be a dataclass with the base class FairseqDataclass"
            )
    weights = [
        option for option in option_names(mechanism.loss_options or FairseqDataclass) if option.endswith("_weight")
    ]
    if "losses" in vars(type(mechanism)) and not weights:
        raise ValueError(f"mechanism {name}: `losses` needs `loss_options` with an option NAME_weight for each loss")
    own = option_names(options)
    iterations = [] if mechanism.iterations is None else [mechanism.iterations]
    for attribute, named in (("off", mechanism.off), ("on", mechanism.on), ("iterations", iterations)):
        for option in named:
            if option not in own:
                raise ValueError(
                    f"mechanism {name}: `{attribute}` names {option}, but the options of {options.__name__} are "
                    f"{', '.join(sorted(own)) or 'none'}; correct the name"
                )
    if mechanism.preset and all(
        str(mechanism.on.get(option, value)) == str(value) for option, value in mechanism.off.items()
    ):
        raise ValueError(f"mechanism {name}: `on` must turn it on, because its presets have these values")


def check_own_options(mechanism: Any, *models: Type[FairseqDataclass]) -> None:
    """Check the options of a mechanism from another package.

    Args:
        models: the options of the models that can contain the mechanism.

    Raises:
        ValueError: by default the mechanism is on, or a model already has an option of the same name.
    """
    default = mechanism.options()
    for option, value in mechanism.off.items():
        if str(getattr(default, option)) != str(value):
            raise ValueError(
                f"mechanism {mechanism.name}: {option} is {getattr(default, option)!r} by default, but {value!r} turns "
                "the mechanism off; make the default equal to the value in `off`"
            )
    taken = sorted(all_option_names(mechanism) & set().union(*map(option_names, models)))
    if taken:
        raise ValueError(f"mechanism {mechanism.name}: the models already have an option {taken[0]}; rename the option")


def check_others(mechanism: Any, others: Iterable[Any]) -> None:
    """Check that a mechanism has nothing in common with the registered ones.

    Raises:
        ValueError: another mechanism has its name, its preset or one of its options.
    """
    for other in others:
        owner = f"the mechanism {other.name} of {type(other).__module__}"
        if other.name == mechanism.name:
            raise ValueError(
                f"mechanism {mechanism.name!r} is already registered by {type(other).__module__}; rename it"
            )
        if mechanism.preset is not None and other.preset == mechanism.preset:
            raise ValueError(
                f"mechanism {mechanism.name}: {owner} has the preset {other.preset} too; rename the preset"
            )
        shared = sorted(all_option_names(mechanism) & all_option_names(other))
        if shared:
            raise ValueError(f"mechanism {mechanism.name}: {owner} has an option {shared[0]} too; rename the option")


def same_class(mechanism: Any, other: Any) -> bool:
    """Return whether two mechanisms have the same class, perhaps from a module that was imported under two names."""
    # A class of an interactive session has no file.
    modules = (sys.modules.get(type(item).__module__) for item in (mechanism, other))
    files = {file and os.path.realpath(file) for file in (getattr(module, "__file__", None) for module in modules)}
    return type(mechanism).__qualname__ == type(other).__qualname__ and len(files) == 1
