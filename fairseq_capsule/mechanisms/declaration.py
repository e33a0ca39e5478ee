"""Rules for what a mechanism declares. They are checked before it is registered."""

import os
import sys
from dataclasses import Field, fields, is_dataclass
from typing import Any, Iterable, Iterator, List, Set, Type

from fairseq.dataclass import FairseqDataclass

REQUIRED = ("name", "summary", "options", "off")
# Keys of what fairseq's encoders and decoders return, and of what the models add.
RESERVED = frozenset(
    "encoder_out encoder_padding_mask encoder_embedding encoder_states fc_results src_tokens src_lengths sentences "
    "attn inner_states".split()
)


def option_fields(options: Type[FairseqDataclass]) -> List[Field[Any]]:
    """Return the fields of a dataclass that are options. fairseq's own field `_name` is none."""
    return [item for item in fields(options) if not item.name.startswith("_")]


def option_names(*dataclasses: Any) -> Set[str]:
    """Return the names of the options of dataclasses, or of None, which has none."""
    return {item.name for options in dataclasses if options is not None for item in option_fields(options)}


def check_declaration(
    mechanism: Any, others: Iterable[Any] = (), models: Iterable[Type[FairseqDataclass]] = ()
) -> None:
    """Raise a ValueError if an attribute of a mechanism is missing or wrong.

    It must not share its name or an option with one of `others`, which are registered, nor, as a mechanism of another
    package, an option with one of `models`.
    """
    for fault in _faults(mechanism, others, models):  # the first one counts
        raise ValueError(f"mechanism {fault}")


def _faults(mechanism: Any, others: Iterable[Any], models: Iterable[Type[FairseqDataclass]]) -> Iterator[str]:
    for attribute in REQUIRED:
        if not getattr(mechanism, attribute, None):
            yield f"{type(mechanism).__qualname__} has no `{attribute}`; set this attribute in the class"
    name, options, losses = mechanism.name, mechanism.options, mechanism.loss_options
    if name in RESERVED:
        yield f"{name}: fairseq's encoders or decoders return something of this name; rename it"
    for attribute, kind in (("options", options), ("loss_options", losses or options)):
        if not (isinstance(kind, type) and is_dataclass(kind) and issubclass(kind, FairseqDataclass)):
            yield f"{name}: `{attribute}` must be a dataclass with the base class FairseqDataclass"
    if "losses" in vars(type(mechanism)) and not any(item.endswith("_weight") for item in option_names(losses)):
        yield f"{name}: `losses` needs `loss_options` with an option NAME_weight for each loss"
    own, every = option_names(options), option_names(options, losses)
    iterations = [mechanism.iterations] if mechanism.iterations else []
    for attribute, named in (("off", mechanism.off), ("on", mechanism.on), ("iterations", iterations)):
        for option in (option for option in named if option not in own):
            known = f"the options of {options.__name__} are {', '.join(sorted(own)) or 'none'}"
            yield f"{name}: `{attribute}` names {option}, but {known}; correct the name"
    still_off = (str(mechanism.on.get(key, value)) == str(value) for key, value in mechanism.off.items())
    if mechanism.preset and all(still_off):
        yield f"{name}: `on` must turn it on, because its presets have these values"
    for other in others:
        owner = f"the mechanism {other.name} of {type(other).__module__}"
        if other.name == name:
            yield f"{name!r} is already registered by {type(other).__module__}; rename it"
        for option in sorted(every & option_names(other.options, other.loss_options)):
            yield f"{name}: {owner} has an option {option} too; rename the option"
    if models:
        for option, value in mechanism.off.items():
            default = getattr(options(), option)
            if str(default) != str(value):
                problem = f"{option} is {default!r} by default, but {value!r} turns the mechanism off"
                yield f"{name}: {problem}; make the default equal to the value in `off`"
        for option in sorted(every & option_names(*models)):
            yield f"{name}: the models already have an option {option}; rename the option"


def same_class(mechanism: Any, other: Any) -> bool:
    """Return whether two mechanisms have the same class, perhaps from a module that was imported under two names."""
    # A class of an interactive session has no file.
    modules = (sys.modules.get(type(item).__module__) for item in (mechanism, other))
    files = {file and os.path.realpath(file) for file in (getattr(module, "__file__", None) for module in modules)}
    return type(mechanism).__qualname__ == type(other).__qualname__ and len(files) == 1
