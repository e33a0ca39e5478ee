"""Presets: a model under several names, each with defaults of its own."""

import sys
from dataclasses import field, fields, make_dataclass
from typing import Any, Mapping, NamedTuple, Tuple, Type

from fairseq.dataclass import FairseqDataclass
from fairseq.models import MODEL_REGISTRY, BaseFairseqModel, register_model


class Presets(NamedTuple):
    """Presets of one family.

    Attributes:
        bases: the dataclasses whose fields are their options.
        defaults: for each name of an architecture, the options with another default than in `bases`.
    """

    bases: Tuple[Type[FairseqDataclass], ...]
    defaults: Mapping[str, Mapping[str, Any]]


def register_presets(model: Type[BaseFairseqModel], presets: Presets) -> None:
    """Register a model under the name of each of its presets, unless that is done already.

    fairseq notes the dataclass on the class that is registered, and its command line takes every default from there:
    each preset has a class of its own, for the model and for the config. They are attributes of the model's module,
    named after the preset (`mine_base`: `MineBaseModel` and `MineBaseConfig`), so that pickle finds them.

    Raises:
        ValueError: another model has the name.
    """
    module = sys.modules[model.__module__]
    items = {item.name: item for base in presets.bases for item in fields(base)}
    for name, defaults in presets.defaults.items():
        if issubclass(MODEL_REGISTRY.get(name, object), model):
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
