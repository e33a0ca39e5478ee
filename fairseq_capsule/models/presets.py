"""Presets: one model registered under several names, each with its own defaults."""

import sys
from dataclasses import field, fields, make_dataclass
from typing import Any, Dict, Mapping, NamedTuple, Sequence, Tuple, Type

from fairseq.dataclass import FairseqDataclass
from fairseq.models import MODEL_REGISTRY, BaseFairseqModel, register_model

from fairseq_capsule.mechanisms import Mechanism
from fairseq_capsule.mechanisms.base import options_off


class Presets(NamedTuple):
    """Presets of one family.

    Attributes:
        bases: the dataclasses that define the options.
        defaults: for each architecture name, the options with another default than in `bases`.
    """

    bases: Tuple[Type[FairseqDataclass], ...]
    defaults: Mapping[str, Mapping[str, Any]]


def bases_of(config: Type[FairseqDataclass], mechanisms: Sequence[Mechanism]) -> Tuple[Type[FairseqDataclass], ...]:
    """Return the dataclasses of presets: a model's, and those of the mechanisms whose options it does not have.

    The weights of the losses of such mechanisms are options of the model too.
    """
    bases = [config]
    for mechanism in mechanisms:
        if not issubclass(config, mechanism.options):
            bases += [mechanism.options, *([mechanism.loss_options] if mechanism.loss_options else [])]
    return tuple(bases)


def values_of(config: Type[FairseqDataclass], mechanisms: Sequence[Mechanism]) -> Dict[str, Any]:
    """Return option values that turn these mechanisms on and all others off."""
    values = options_off(config())
    for mechanism in mechanisms:
        values.update({**mechanism.off, **mechanism.on})
    return values


def register_presets(model: Type[BaseFairseqModel], presets: Presets) -> None:
    """Register a model under the name of each preset. Presets that are already registered are skipped.

    fairseq stores the dataclass on the registered class and takes all defaults of the command line from it. Therefore
    each preset has its own model class and config class. They are attributes of the model's module, so that pickle
    finds them. Their names follow the preset: `mine_base` has `MineBaseModel` and `MineBaseConfig`.

    Raises:
        ValueError: another model has the name of a preset.
    """
    module = sys.modules[model.__module__]
    items = {item.name: item for base in presets.bases for item in fields(base)}
    for name, defaults in presets.defaults.items():
        known = MODEL_REGISTRY.get(name)
        if known is not None and issubclass(known, model):
            if known.config_type.__bases__ != presets.bases or any(
                known.config_type.__dataclass_fields__[key].default != value for key, value in defaults.items()
            ):
                raise ValueError(f"architecture {name}: it is registered with other options; choose another name")
            continue
        changed = [
            (key, items[key].type, field(default=value, metadata=items[key].metadata))
            for key, value in defaults.items()
        ]
        title = "".join(part.title() for part in name.split("_"))
        of_module = {"__module__": module.__name__}
        config = make_dataclass(f"{title}Config", changed, bases=presets.bases, namespace=of_module)
        kind = type(f"{title}Model", (model,), {**of_module, "__doc__": model.__doc__, "config_type": config})
        setattr(module, config.__name__, config)
        setattr(module, kind.__name__, kind)
        register_model(name, dataclass=config)(kind)
