"""The registration of presets with fairseq, as architectures: names of `--arch`.

fairseq stores the dataclass on the registered class and takes all defaults of the command line from it. Therefore each
preset has a model class of its own. Both classes are attributes of this module, where pickle finds them.
"""

import sys
from dataclasses import field, fields, make_dataclass
from typing import Any, Mapping, Type

from fairseq.dataclass import FairseqDataclass
from fairseq.models import MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY, register_model

from capsule_routing import presets
from fairseq_capsule.models import capsnmt, capsule_lstm, capsule_transformer


def register_preset(
    arch: str, model: Any, *dataclasses: Type[FairseqDataclass], options: Mapping[str, Any] = {}
) -> None:
    """Register an architecture: a class of a model with the options of dataclasses, and with other defaults.

    Help texts and ranges of options stay as they are. Registering an architecture again changes nothing; with other
    options, or for another model, it raises a ValueError.
    """
    if arch in MODEL_REGISTRY and issubclass(MODEL_REGISTRY[arch], model):
        known = MODEL_DATACLASS_REGISTRY[arch]
        own = {item.name: item.default for item in fields(known)}
        if known.__bases__ != dataclasses or {**own, **options} != own:
            raise ValueError(f"architecture {arch}: it is registered with other options; choose another name")
        return
    title = arch.title().replace("_", "")
    inherited = {item.name: item for kind in dataclasses for item in fields(kind)}
    changed = [
        (name, inherited[name].type, field(default=value, metadata=inherited[name].metadata))
        for name, value in options.items()
    ]
    own_place = {"__module__": __name__}
    config = make_dataclass(f"{title}Config", changed, bases=dataclasses, namespace=own_place)
    kind = type(f"{title}Model", (model,), {**own_place, "__doc__": model.__doc__})
    for made in (config, kind):
        setattr(sys.modules[__name__], made.__name__, made)
    register_model(arch, dataclass=config)(kind)


for _arch, _options in presets.TRANSFORMERS.items():
    _transformer = capsule_transformer.CapsuleTransformerModel
    register_preset(_arch, _transformer, capsule_transformer.CapsuleTransformerConfig, options=_options)
for _arch, _options in presets.LSTMS.items():
    register_preset(_arch, capsule_lstm.CapsuleLSTMModel, capsule_lstm.CapsuleLSTMConfig, options=_options)
for _arch, _options in presets.CAPSNMTS.items():
    register_preset(_arch, capsnmt.CapsNMTModel, capsnmt.CapsNMTConfig, options=_options)
