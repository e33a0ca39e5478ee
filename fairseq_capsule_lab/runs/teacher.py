"""A teacher's translations as the targets of a training set (sequence-level distillation, Kim and Rush 2016)."""

import os
import re
import shutil
from pathlib import Path

from fairseq.data import Dictionary, data_utils, indexed_dataset
from torch import Tensor

from capsule_routing.errors import UserError
from capsule_routing.text.folders import language_pairs
from fairseq_capsule.checkpoints.belonging import of_data, refuse_other
from fairseq_capsule.checkpoints.loading import belonging_of, model_options, positions, read_options
from fairseq_capsule.checkpoints.models import refuse_unknown_architecture
from fairseq_capsule.data.binarised import recompute_offsets
from fairseq_capsule.data.dictionaries import read_dictionary

HYPOTHESIS = re.compile(r"H-(\d+)\t[^\t]*\t(.*)")
SKIPPED = re.compile(r"([\d,]+) samples have invalid sizes and will be skipped")


def check_teacher(teacher: str, data: str, plugin: bool = False) -> tuple[str, str, int]:
    """Check that a model can teach on a data folder. Return the languages and its maximum target length.

    With `plugin`, one that is not imported here may define its architecture.
    """
    pairs = language_pairs(Path(data), "train")
    if not pairs:
        raise UserError(f"{data}: no binarised training set in it; name the folder that fairseq-preprocess made")
    source, target = pairs[0]
    if os.path.exists(f"{data}/train1.{source}-{target}.{target}.bin"):
        raise UserError(f"{data}: its training set has several parts (train1.…); binarise it as one")
    state = read_options(teacher)
    known = belonging_of(teacher, state)
    refuse_other(known, of_data(Path(data), known, (source, target)))
    config = model_options(state)
    option = config.get if isinstance(config, dict) else lambda key: getattr(config, key, None)
    if not plugin:
        refuse_unknown_architecture(teacher, option("_name") or option("arch"))
    return source, target, positions(state)[1]


def collect(data: Path, source: str, target: str, longest: int, shards: Path, out: Path) -> list[str]:
    """Write a data folder whose training targets are a teacher's translations. Return two lines that count them.

    A sentence keeps its own target if its translation is empty, has an unknown word, reaches the maximum length (twice
    the source plus 10, or the `longest` that the teacher supports), or is missing because the teacher skips its source.
    `shards` has the outputs of fairseq-generate.
    """
    pair = f"{source}-{target}"
    out.mkdir()
    for file in data.iterdir():
        if file.is_file() and not file.name.startswith(f"train.{pair}.{target}."):
            shutil.copy2(file, out)
    dictionary = read_dictionary(str(data / f"dict.{target}.txt"))
    sources, targets = (
        data_utils.load_indexed_dataset(str(data / f"train.{pair}.{language}"), dictionary)
        for language in (source, target)
    )
    translations = _translations(shards)
    prefix = out / f"train.{pair}.{target}"
    builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", len(dictionary))
    kept = {"empty": 0, "over-long": 0, "with <unk>": 0, "skipped": 0}
    for number, (words, own) in enumerate(zip(sources, targets)):
        text = translations.get(number)
        tokens = dictionary.encode_line(text or "", add_if_not_exist=False).long()
        reason = "skipped" if text is None else _reason(tokens, dictionary, min(2 * len(words) + 10, longest - 1))
        builder.add_item(own if reason else tokens)
        if reason:
            kept[reason] += 1
    builder.finalize(f"{prefix}.idx")
    recompute_offsets(out)
    if kept["skipped"] > _announced(shards):
        problem = f"{kept['skipped']} translations are missing in {shards.name}"
        raise UserError(f"{problem}: delete that folder and run the command again")
    return [
        f"{len(targets)} training sentences, {len(targets) - sum(kept.values())} of them the teacher's; the others:",
        ", ".join(f"{number} {reason}" for reason, number in kept.items()),
    ]


def _reason(tokens: Tensor, dictionary: Dictionary, most: int) -> str:
    """Return why a translation cannot be a target, or "". `most` is the number of words that fairseq stops at."""
    if len(tokens) <= 1:
        return "empty"
    if len(tokens) - 1 >= most:
        return "over-long"
    return "with <unk>" if dictionary.unk() in tokens else ""


def _announced(shards: Path) -> int:
    """Return how many sentences fairseq says that it skips."""
    logs = (file.read_text(encoding="utf-8") for file in shards.glob("*.log"))
    return max((int(number.replace(",", "")) for log in logs for number in SKIPPED.findall(log)), default=0)


def _translations(shards: Path) -> dict[int, str]:
    """Return the best translation of each sentence number."""
    best: dict[int, str] = {}
    for file in sorted(shards.glob("*.out")):
        with open(file, encoding="utf-8") as lines:
            for match in filter(None, map(HYPOTHESIS.match, lines)):
                best.setdefault(int(match[1]), match[2])
    return best
