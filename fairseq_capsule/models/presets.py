"""Presets: one model registered under several names, each with its own defaults."""

import sys
from dataclasses import field, fields, make_dataclass
from typing import Any, Mapping, Sequence, Tuple, Type

from fairseq.dataclass import FairseqDataclass
from fairseq.models import MODEL_REGISTRY, register_model

from fairseq_capsule.mechanisms import Mechanism
from fairseq_capsule.mechanisms.base import options_off


def bases_of(config: Type[FairseqDataclass], mechanisms: Sequence[Mechanism]) -> Tuple[Type[FairseqDataclass], ...]:
    """Return the dataclasses of presets: a model's, and those (also of losses) of mechanisms that it does not have."""
    new = [mechanism for mechanism in mechanisms if not issubclass(config, mechanism.options)]
    owned = (kind for mechanism in new for kind in (mechanism.options, mechanism.loss_options) if kind is not None)
    return (config, *owned)


def register_presets(model: Any, mechanisms: Sequence[Mechanism], presets: Mapping[str, Mapping[str, Any]]) -> None:
    """Register a model under the name of each preset. Presets that are already registered are skipped.

    fairseq stores the dataclass on the registered class and takes all defaults of the command line from it. Therefore
    each preset has its own model class and config class. They are attributes of the model's module, so that pickle
    finds them: `mine_base` has `MineBaseModel` and `MineBaseConfig`.

    Args:
        model: a model with `config_type`, the dataclass of its options.
        mechanisms: those that the presets turn on; all others are off.
        presets: for each name, the further options with another default.
    """
    module = sys.modules[model.__module__]
    bases = bases_of(model.config_type, mechanisms)
    items = {item.name: item for base in bases for item in fields(base)}
    for name, further in presets.items():
        defaults = options_off(model.config_type())
        for mechanism in mechanisms:
            defaults.update({**mechanism.off, **mechanism.on})
        defaults.update(further)
        known = MODEL_REGISTRY.get(name)
        if known is not None and issubclass(known, model):
            own = {key: item.default for key, item in known.config_type.__dataclass_fields__.items()}
            if known.config_type.__bases__ != bases or {**own, **defaults} != own:
                raise ValueError(f"architecture {name}: it is registered with other options; choose another name")
            continue
        pairs = ((items[key], value) for key, value in defaults.items())
        changed = [(item.name, item.type, field(default=value, metadata=item.metadata)) for item, value in pairs]
        title = name.title().replace("_", "")
        of_module = {"__module__": module.__name__}
        config = make_dataclass(f"{title}Config", changed, bases=bases, namespace=of_module)
        kind = type(f"{title}Model", (model,), {**of_module, "__doc__": model.__doc__, "config_type": config})
        setattr(module, config.__name__, config)
        setattr(module, kind.__name__, kind)
        register_model(name, dataclass=config)(kind)
