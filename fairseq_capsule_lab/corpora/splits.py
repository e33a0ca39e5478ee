"""Splits of the embedded corpora: random choices, splits without common sources, and their files.

The choices are the same on every machine and with every Python. Only `random.Random.random()` is used: Python
guarantees its sequence, but not the sequences of `choice` and `shuffle`.
"""

import contextlib
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.files import replacing

MOST = 1_000_000  # sentences of one corpus; up to here new sentences are found quickly
PATIENCE = 10_000  # consecutive repetitions after which the search ends

Item = TypeVar("Item")
Pair = tuple[str, ...]  # source, target, and what else belongs to them


class Dice:
    """A seeded source of choices."""

    def __init__(self, seed: int):
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random() < probability

    def choose(self, items: Sequence[Item]) -> Item:
        """One of the items, each with the same probability."""
        return items[int(self._random() * len(items))]

    def choose_early(self, items: Sequence[Item]) -> Item:
        """One of the items. Early items are more probable, as frequent words are in a language."""
        return items[int(min(self._random(), self._random()) * len(items))]

    def weigh(self, weights: Mapping[Item, float]) -> Item:
        """One of the keys, with a probability in proportion to its weight."""
        point = self._random() * sum(weights.values())
        for item, weight in weights.items():
            point -= weight
            if point < 0:
                return item
        return item


def draw_splits(pairs: Iterable[Pair], sizes: Mapping[str, int]) -> dict[str, list[Pair]]:
    """Draw splits of the given sizes from pairs of a source and a target.

    No source occurs twice in all splits. No split has a target of a later split, so the training set has no target of
    the test set. The splits are drawn from the last to the first. If `train` is first, its size does not change the
    other splits. Too few sentences are a LabError.
    """
    for split, size in sizes.items():
        if size < 1:
            raise LabError(f"{split}: {size} sentences; ask for at least 1")
    total = sum(sizes.values())
    if total > MOST:
        raise LabError(f"{total} sentences, but the grammar makes only {MOST} without repetition; ask for fewer")
    new = distinct(pairs)
    drawn: dict[str, list[Pair]] = {}
    known: set[str] = set()
    for split, size in reversed(list(sizes.items())):
        drawn[split] = list(islice((pair for pair in new if pair[1] not in known), size))
        if len(drawn[split]) < size:
            left = f"the grammar has only {len(drawn[split])} left; ask for fewer"
            raise LabError(f"{split}: {size} sentences, but {left}")
        known.update(pair[1] for pair in drawn[split])
    return drawn


def distinct(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """The pairs with a new source. The iteration ends after `PATIENCE` consecutive repetitions."""
    seen, repetitions = set(), 0
    for pair in pairs:
        if pair[0] not in seen:
            seen.add(pair[0])
            repetitions = 0
            yield pair
        elif repetitions == PATIENCE:
            return
        else:
            repetitions += 1


def write_parallel(folder: Path, languages: Sequence[str], splits: Mapping[str, Sequence[Pair]]) -> None:
    """Write the files `SPLIT.LANGUAGE` in UTF-8, one sentence per line.

    The files get their names after all are complete, so files of an older corpus are never mixed with new ones.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise LabError(f"{folder}: not a folder; name a folder, or a new name") from None
    except OSError as error:
        raise LabError(f"{folder}: cannot be created: {error.strerror}; name another folder") from error
    name = folder
    try:
        with contextlib.ExitStack() as stack:
            for split, sentences in splits.items():
                for language, lines in zip(languages, zip(*sentences)):
                    name = folder / f"{split}.{language}"
                    stream = stack.enter_context(replacing(name))
                    stream.writelines(f"{line}\n".encode() for line in lines)
                    stream.flush()
                    os.fsync(stream.fileno())  # a full disk is found before a file gets its name
    except OSError as error:
        raise LabError(f"{name}: not written: {error.strerror}; choose another folder") from error
