"""A plain Transformer as a checkpoint of fairseq's own `transformer`: fairseq reads it without this package.

`ct2-fairseq-converter` of CTranslate2 reads it too. It takes the options from `args`, which today's fairseq leaves
empty.
"""

from argparse import Namespace
from dataclasses import fields
from pathlib import Path
from typing import Any, Dict, Optional

import torch
from fairseq import utils
from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerConfig

from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel
from fairseq_capsule_lab.export import transformer

NAME = "fairseq alone"
NESTED = ("encoder", "decoder", "quant_noise")  # fields of a TransformerConfig whose fields have their name before them


def refusal(model: BaseFairseqModel) -> Optional[str]:
    """Return why a model is no plain Transformer, or None if it is one."""
    routing = transformer.mechanisms_in(model)
    if routing and isinstance(model, CapsuleTransformerModel):
        return f"it routes ({', '.join(mechanism.name for mechanism in routing)})"
    return transformer.refusal(model, utils.get_available_activation_fns())


def write(model: BaseFairseqModel, task: Any, folder: Path) -> None:
    """Write a model that `refusal` accepts, and its dictionaries, into a new folder: model.pt, dict.LANG.txt."""
    source, target = task.cfg.source_lang, task.cfg.target_lang
    names = {"arch": "transformer", "task": "translation", "source_lang": source, "target_lang": target}
    history = {"optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}  # fairseq requires it
    state = {
        "args": Namespace(**flat_options(model), **names),
        "model": model.state_dict(),
        "optimizer_history": [history],
        "extra_state": {},
    }
    torch.save(state, folder / "model.pt")
    for language, dictionary in ((source, task.source_dictionary), (target, task.target_dictionary)):
        dictionary.save(str(folder / f"dict.{language}.txt"))


def flat_options(model: BaseFairseqModel) -> Dict[str, Any]:
    """Return the options of a Transformer as they are named on the command line."""
    config = TransformerConfig.from_namespace(model.cfg)
    flat = {item.name: getattr(config, item.name) for item in fields(TransformerConfig) if item.name not in NESTED}
    for name in NESTED:
        part = getattr(config, name)
        flat.update({f"{name}_{item.name}": getattr(part, item.name) for item in fields(part) if item.name != "_name"})
    del flat["_name"]
    for side in ("encoder", "decoder"):
        flat[f"{side}_layers"] = len(getattr(model, side).layers)  # without those that pruning removed
        flat[f"{side}_layers_to_keep"] = None
        flat[f"{side}_embed_path"] = None  # the file of initial embeddings
    return flat
