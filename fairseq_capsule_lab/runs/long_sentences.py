"""Sentences of a set that are longer than a model's positions, or than a batch: fairseq ends at the first one."""

import struct
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from capsule_routing.errors import UserError
from capsule_routing.text.folders import language_pairs
from fairseq_capsule_lab.runs.settings import Settings
from fairseq_capsule_lab.values import checked_integer

SIDES = ("source", "target")
POSITIONS = 1024  # of fairseq's tasks
SKIP = "dataset.skip_invalid_size_inputs_valid_test"
_HEADER, _MAGIC = struct.Struct("<9sQBQ"), b"MMIDIDX\x00\x00"


class Long(NamedTuple):
    """A sentence, counted from 1, that has more `tokens` than the `limit` of its side; `</s>` is a token too."""

    text: Path
    number: int
    side: str  # source, target, or batch
    tokens: int
    limit: int

    def __str__(self) -> str:
        limit = f"a batch {self.limit:,}" if self.side == "batch" else f"the model {self.limit:,} positions"
        return f"{self.text}: sentence {self.number} has {self.tokens:,} tokens, {limit}"


def long_sentence(
    data: Path, split: str, languages: Sequence[str], positions: Sequence[int], batch: int, skips: bool = False
) -> Long | None:
    """Return the first sentence of binarised data that is too long, if there is one.

    Args:
        languages, positions: of the source and of the target.
        batch: the most tokens of a sentence in a batch, 0 for any number.
        skips: whether pairs with too many tokens for the positions are left out.
    """
    pairs = [pair for pair in (tuple(languages), tuple(languages)[::-1]) if pair in language_pairs(data, split)]
    if not pairs:
        return None
    texts = [data / f"{split}.{'-'.join(pairs[0])}.{language}" for language in languages]
    for number, lengths in enumerate(zip(*map(_lengths, texts)), 1):
        for side, text, tokens, limit in zip(SIDES, texts, lengths, positions):
            if tokens > limit and not skips:
                return Long(text, number, side, tokens, limit)
        fits = all(tokens <= limit for tokens, limit in zip(lengths, positions))
        if fits and max(lengths) > batch > 0:
            return Long(texts[lengths.index(max(lengths))], number, "batch", max(lengths), batch)
    return None


def refuse_long_validation(settings: Settings, data: Path) -> None:
    """Raise a UserError if a sentence of a validation set is too long for the model of a training."""
    if settings.get("dataset.disable_validation"):
        return
    keys, positions = [], []
    for side in SIDES:
        known = {f"task.max_{side}_positions": POSITIONS}
        for key in (*known, f"model.max_{side}_positions"):
            if settings.get(key) is not None:
                known[key] = checked_integer(key, settings.get(key))
        keys.append(min(known, key=known.__getitem__))
        positions.append(known[keys[-1]])
    if settings.get("task.truncate_source"):
        positions[0] = sys.maxsize
    batch = settings.get("dataset.max_tokens_valid", settings.get("dataset.max_tokens", 0))
    batch = checked_integer("dataset.max_tokens_valid", batch, low=0)
    languages = [settings.get(f"task.{side}_lang") for side in SIDES]
    for split in settings.get("dataset.valid_subset", "valid").split(","):
        of_split = languages if all(languages) else next(iter(language_pairs(data, split)), ())
        found = long_sentence(data, split, of_split, positions, batch, settings.get(SKIP, False))
        if found and found.side == "batch":
            raise UserError(f"{found}; give dataset.max_tokens_valid={found.tokens} after OUT")
        if found:
            key = keys[SIDES.index(found.side)]
            raise UserError(f"{found}; give {key}={found.tokens} after OUT, or {SKIP}=true to leave such pairs out")


def _lengths(text: Path) -> Sequence[int]:
    """Return the lengths of the sentences of a binarised text; none of fairseq's older format.

    They are read here because the import of fairseq takes seconds. Whether a file is whole, the tasks check.
    """
    lengths = array("i")
    index = text.with_name(f"{text.name}.idx")
    if index.is_file():
        with open(index, "rb") as stream:
            header = stream.read(_HEADER.size)
            if header.startswith(_MAGIC) and len(header) == _HEADER.size:
                count = _HEADER.unpack(header)[3]
                content = stream.read(count * lengths.itemsize)
                lengths.frombytes(content[: len(content) // lengths.itemsize * lengths.itemsize])
    return lengths
