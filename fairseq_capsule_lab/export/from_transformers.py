"""An exported model, or one that was trained in transformers, as a checkpoint and a prepared folder of fairseq."""

import json
import shutil
from argparse import Namespace
from dataclasses import fields
from pathlib import Path
from typing import Any, Dict

import torch
from fairseq.data import Dictionary

from capsule_routing.errors import UserError
from capsule_routing.huggingface import CapsuleConfig, CapsuleForConditionalGeneration, CapsuleTokenizer
from capsule_routing.huggingface.tokenization import FILES
from capsule_routing.text.folders import SETTINGS
from fairseq_capsule.checkpoints.belonging import DIGESTS, digest
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerConfig
from fairseq_capsule_lab.export.to_transformers import ACTIVATIONS
from fairseq_capsule_lab.files import as_json

CHECKPOINT = "model.pt"
# The files of subwords in a prepared folder, by the tokenizer's names. If there are two, each has its language.
SUBWORDS = {"codes": "codes", "pieces": "sentencepiece.model"}


def write(source: Path, folder: Path) -> str:
    """Write the model of a folder of transformers into a new folder: model.pt, bin/dict.LANG.txt, subwords, settings.

    Returns:
        The pair of languages, such as `en-de`.

    Raises:
        UserError: the folder has no model and tokenizer of this package, or an option that fairseq lacks.
    """
    try:
        model = CapsuleForConditionalGeneration.from_pretrained(source, local_files_only=True)
        tokenizer = CapsuleTokenizer.from_pretrained(source, local_files_only=True)
    except (OSError, ValueError, TypeError) as error:  # TypeError: the tokenizer is of another class
        problem = str(error).splitlines()[0]
        raise UserError(f"{source}: {problem}; name a folder with a model and a tokenizer of this package") from error
    first, second = tokenizer.preparations
    languages = {"source_lang": first.language, "target_lang": second.language}
    names = {"arch": "capsule_transformer", "task": "capsule_translation"}
    history = {"optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}  # fairseq requires it
    weights = model.float().state_dict()  # fairseq's commands compute in half precision only with --fp16
    for side in ("encoder", "decoder"):
        weights[f"{side}.version"] = torch.tensor([3.0])  # without it fairseq drops the final norm
    state: Dict[str, Any] = {
        "args": Namespace(**options(model.config), **names, **languages),
        "model": weights,
        "optimizer_history": [history],
        "extra_state": {},
        "task_state": {DIGESTS: {}},
    }
    (folder / SETTINGS).write_bytes(as_json(settings(tokenizer)))
    binarised = folder / "bin"
    binarised.mkdir()
    words = json.loads((source / FILES["vocabulary"]).read_text(encoding="utf-8"))
    for side, language in (("source", first.language), ("target", second.language)):
        lines = "".join(f"{word} 1\n" for word in words[side][4:])  # without <s>, <pad>, </s> and <unk>
        dictionary = binarised / f"dict.{language}.txt"
        dictionary.write_text(lines, encoding="utf-8")
        state["task_state"][DIGESTS][side] = digest(Dictionary.load(str(dictionary)))
    torch.save(state, folder / CHECKPOINT)
    for name, file in SUBWORDS.items():
        of_source, of_target = source / FILES[name], source / FILES[f"target_{name}"]
        if of_target.is_file():
            shutil.copyfile(of_source, folder / _of_language(file, first.language))
            shutil.copyfile(of_target, folder / _of_language(file, second.language))
        elif of_source.is_file():
            shutil.copyfile(of_source, folder / file)
    return f"{first.language}-{second.language}"


def options(config: CapsuleConfig) -> Dict[str, Any]:
    """Return the options of fairseq's model with the configuration of an exported one."""
    for name in ("sinusoids", "padding_has_positions", "output_bias"):
        if getattr(config, name) != CapsuleConfig.__dataclass_fields__[name].default:
            raise UserError(f"fairseq has no Transformer with {name}, which the model has of its original")
    activations = {ours: fairseqs for fairseqs, ours in ACTIVATIONS.items()}
    if config.activation not in activations:
        raise UserError(f"fairseq has no activation {config.activation}; it has {', '.join(ACTIVATIONS)}")
    of_fairseq = {item.name: item.default for item in fields(CapsuleTransformerConfig) if not item.name.startswith("_")}
    known = {name: getattr(config, name) for name in of_fairseq if hasattr(config, name)}
    layers = config.encoder_routing_layers
    return {
        **of_fairseq,
        **known,
        "activation_fn": activations[config.activation],
        "encoder_routing_layers": ",".join(map(str, layers)) if layers else "all",
    }


def settings(tokenizer: CapsuleTokenizer) -> Dict[str, str]:
    """Return the settings of a prepared folder with which raw text is read as the tokenizer reads it.

    Raises:
        UserError: it reads the two languages in ways that a prepared folder has only for both.
    """
    source, target = tokenizer.preparations
    for name in ("lower", "subwords", "drops_controls", "splits_hyphens", "keeps_punctuation"):
        if getattr(source, name) != getattr(target, name):
            raise UserError(f"its tokenizer has another {name} for {source.language} than for {target.language}")
    tokenisers = [source.tokenizer] if source.tokenizer == target.tokenizer else [source.tokenizer, target.tokenizer]
    romanian = source.diacritics or target.diacritics
    return {
        "script": "prepare.sh",
        "source": source.language,
        "target": target.language,
        "tokenise": ",".join(tokenisers),
        "lower": "yes" if source.lower else "no",
        "bpe": source.subwords,
        "controls": "drop" if source.drops_controls else "space",
        "hyphens": "split" if source.splits_hyphens else "keep",
        **({"diacritics": romanian} if romanian else {}),
        **({"punctuation": "keep"} if source.keeps_punctuation else {}),
    }


def _of_language(file: str, language: str) -> str:
    stem, _, ending = file.partition(".")
    return f"{stem}.{language}.{ending}" if ending else f"{stem}.{language}"
