"""Flat dataclasses of fairseq's nested ones.

A preset is a flat dataclass: a nested one breaks `--arch`. Its fields are generated from fairseq's, so that every
option of fairseq's Transformer stays one of ours, under the name that its command line gives it.
"""

import re
import sys
from dataclasses import Field, dataclass, field, fields, is_dataclass, make_dataclass
from enum import Enum
from typing import Any, Dict, Iterator, List, Optional, Tuple, Type, TypeVar

from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from fairseq.models.transformer import TransformerConfig

from fairseq_capsule.errors import UserError

Config = TypeVar("Config", bound=FairseqDataclass)


def _flat_fields(nested: FairseqDataclass, prefix: str = "") -> Iterator[Tuple[str, Any, Field]]:
    for item in fields(nested):
        if item.name.startswith("_"):
            continue
        value = getattr(nested, item.name)
        if is_dataclass(value):
            yield from _flat_fields(value, prefix + item.name + "_")
        else:
            yield prefix + item.name, item.type, field(default=value, metadata=item.metadata)


def _flatten(name: str, nested: FairseqDataclass, without: Tuple[str, ...]) -> Type[FairseqDataclass]:
    flat = [item for item in _flat_fields(nested) if item[0] not in without]
    return make_dataclass(name, flat, bases=(FairseqDataclass,), namespace={"__module__": __name__})


# The decoder's input and output sizes are interpolations between nested configs, which a flat one cannot express; the
# layers to keep are lists there, which fairseq splits as texts.
OWN = ("decoder_input_dim", "decoder_output_dim", "encoder_layers_to_keep", "decoder_layers_to_keep")
_Flat = _flatten("_Flat", TransformerConfig(), without=OWN)


@dataclass
class FlatTransformerConfig(_Flat):
    """Every option of fairseq's Transformer, flat."""

    decoder_input_dim: Optional[int] = field(
        default=None, metadata={"help": "decoder input dimension (default: --decoder-embed-dim)"}
    )
    decoder_output_dim: Optional[int] = field(
        default=None,
        metadata={"help": "decoder output dimension, a linear layer more if different (default: --decoder-embed-dim)"},
    )

    encoder_layers_to_keep: Optional[str] = field(
        default=None, metadata={"help": "encoder layers to keep of a trained model, counted from 0: 0,2,4"}
    )
    decoder_layers_to_keep: Optional[str] = field(
        default=None, metadata={"help": "decoder layers to keep of a trained model, counted from 0: 0,2,4"}
    )

    def kept_layers(self, side: str) -> List[int]:
        """The layers that the `encoder` or the `decoder` has of those that it was trained with, counted from 0.

        Raises:
            UserError: no such layers.
        """
        layers, name = getattr(self, f"{side}_layers"), f"{side}_layers_to_keep"
        text = getattr(self, name)
        if text is None:
            return list(range(layers))
        parts = text.split(",")
        kept = sorted(int(part) for part in parts if re.fullmatch(r"\s*\d{1,4}\s*", part, re.ASCII))
        if len({*kept}) < len(parts) or kept[-1] >= layers:
            raise UserError(f"{option(name)}: {text!r} must name different layers from 0 to {layers - 1}, as 0,2")
        return kept

    def nested(self) -> TransformerConfig:
        """fairseq's own config, carrying this one's further options under their flat names."""
        config = TransformerConfig.from_namespace(self)
        config.decoder.input_dim = self.decoder_input_dim or self.decoder_embed_dim
        config.decoder.output_dim = self.decoder_output_dim or self.decoder_embed_dim
        # fairseq sets the numbers of layers to those that are kept.
        config.trained_layers = {"encoder": self.encoder_layers, "decoder": self.decoder_layers}
        config.kept_layers = {side: self.kept_layers(side) for side in config.trained_layers}
        return config


def preset(base: Type[Config], **defaults: Any) -> Type[Config]:
    """`base` with other defaults."""
    items = {item.name: item for item in fields(base)}
    changed = [
        (name, items[name].type, field(default=value, metadata=items[name].metadata))
        for name, value in defaults.items()
    ]
    return make_dataclass(base.__name__, changed, bases=(base,), namespace={"__module__": base.__module__})


def register_presets(model: Type[BaseFairseqModel], named: Dict[str, Type[FairseqDataclass]]) -> None:
    """Register a model under the name of each of its presets.

    fairseq notes the dataclass on the class that is registered, and its command line takes every default from there:
    each preset has a class of its own, for the model and for the config. They are attributes of the model's module,
    named after the preset (`mine_base`: `MineBaseModel` and `MineBaseConfig`), so that pickle finds them.
    """
    module = sys.modules[model.__module__]
    for name, dataclass_type in named.items():
        title = "".join(part.title() for part in name.split("_"))
        config = type(f"{title}Config", (dataclass_type,), {"__module__": model.__module__})
        config = dataclass(config)
        namespace = {"__module__": model.__module__, "__doc__": model.__doc__, "config_type": config}
        registered = register_model(name, dataclass=config)(type(f"{title}Model", (model,), namespace))
        for kind in (config, registered):
            setattr(module, kind.__name__, kind)


# What any option may be, by its name; None is left to fairseq.
PROBABILITIES = re.compile(r".*(dropout|layerdrop).*")
ITERATIONS = re.compile(r".*_iterations")
SIZES = re.compile(r".*_(layers|positions|dim|size|heads|capsules|sublayers)")
MAY_BE_0 = ("base_layers",)  # beside options whose metadata has another "lowest"
MOST_ITERATIONS = 100


def _check_range(item: Field, value: Any) -> None:
    name = item.name
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if PROBABILITIES.fullmatch(name) and not 0 <= value < 1:
        raise UserError(f"{option(name)} must be at least 0 and below 1, not {value}")
    lowest = 0 if name in MAY_BE_0 else item.metadata.get("lowest", 1)
    if (SIZES.fullmatch(name) or ITERATIONS.fullmatch(name)) and not value >= lowest:
        raise UserError(f"{option(name)} must be at least {lowest}, not {value}")
    if ITERATIONS.fullmatch(name) and value > MOST_ITERATIONS:
        raise UserError(f"{option(name)} must be at most {MOST_ITERATIONS}, not {value}")


def validated(config: Any, dataclass_type: Type[Config]) -> Config:
    """`config` (a DictConfig, a namespace or a preset's object) as an object whose `__post_init__` has checked it.

    Choices become plain strings. Numbers are in their range: probabilities, sizes and iterations here, by their names;
    what one option asks of another in `__post_init__`.

    Raises:
        UserError: a value that is not allowed.
    """
    values = {}
    for item in fields(dataclass_type):
        if hasattr(config, item.name):
            value = getattr(config, item.name)
            if isinstance(item.type, type) and issubclass(item.type, Enum):
                value = _choice(item.name, value, [member.value for member in item.type])
            _check_range(item, value)
            values[item.name] = value
    return dataclass_type(**values)


def _choice(name: str, value: Any, allowed: List[str]) -> str:
    if str(value) not in allowed:
        raise UserError(f"{option(name)} must be one of {', '.join(allowed)}, not {value!s}")
    return str(value)


def option(name: str) -> str:
    """A field's name as the command line has it."""
    return "--" + name.replace("_", "-")


def parse_layers(name: str, text: str, layers: int) -> List[int]:
    """Layer numbers, counted from 1, of a text such as `all`, `1-3` or `1,4-6`.

    Raises:
        UserError: not of that form, or a layer outside 1 to `layers`.
    """
    if text == "all":
        return list(range(1, layers + 1))
    chosen = set()
    for part in text.split(","):
        numbers = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part, re.ASCII)
        if not numbers:
            raise UserError(f"{option(name)}: {text!r} is no set of layers; write all, 1-3 or 1,4-6")
        first, last = numbers.groups()
        chosen.update(range(int(first), int(last or first) + 1))
    if not chosen or min(chosen) < 1 or max(chosen) > layers:
        raise UserError(f"{option(name)}: {text!r} must name layers from 1 to {layers}")
    return sorted(chosen)
