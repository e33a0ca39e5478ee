"""Validation and test pairs out of a training text.

The source sentences with the smallest hashes are held out. This choice depends on the seed and on the text, not on its
order. All pairs of such a sentence leave the training text, even if they differ in translation, case or spaces. The
first pair of each sentence is written to the held-out set.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from heapq import heappop, heappush
from pathlib import Path

from capsule_routing.errors import UserError
from fairseq_capsule_lab.corpora.parallel import progress_bar

MOST_LENGTH = 500  # characters of a held-out sentence, so that its subwords fit a model

Pair = tuple[str, str]


def hold_out(folder: Path, languages: Sequence[str], sizes: Mapping[str, int], seed: int) -> None:
    """Move as many pairs as `sizes` says from the training text of a folder into new files SPLIT.LANG; 0: none."""
    total = sum(sizes.values())
    training = [folder / f"train.{language}" for language in languages]
    numbers = _smallest(_pairs_of(training), total, seed)
    if len(numbers) < total:
        text = f"{len(numbers)} different source sentences of at most {MOST_LENGTH} characters in the training text"
        raise UserError(f"{text}: {total} cannot be held out; ask for fewer")
    split_of = dict(zip(numbers, (split for split, size in sizes.items() for _ in range(size))))
    with ExitStack() as stack:
        outputs = {
            split: [stack.enter_context(open(folder / f"{split}.{language}", "wb")) for language in languages]
            for split in ("rest", *(split for split, size in sizes.items() if size))
        }
        for pair in _pairs_of(training):
            number = _number(pair[0], seed)
            split = split_of.get(number, "rest")
            if number in split_of:
                if not split or not _is_short(pair):
                    continue
                split_of[number] = ""  # only the first pair of a sentence is written
            for file, line in zip(outputs[split], pair):
                file.write(line.encode())
    rest = [folder / f"rest.{language}" for language in languages]
    if not rest[0].stat().st_size:
        raise UserError("all training pairs would be held out: ask for fewer")
    for left, train in zip(rest, training):
        os.replace(left, train)


def _number(sentence: str, seed: int) -> int:
    """Return a 64-bit hash of a source sentence that ignores case and spaces."""
    key = f"{seed} {' '.join(sentence.lower().split())}".encode()
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big")


def _is_short(pair: Pair) -> bool:
    return max(len(line.rstrip("\n")) for line in pair) <= MOST_LENGTH


def _smallest(pairs: Iterable[Pair], count: int, seed: int) -> list[int]:
    """Return the `count` smallest distinct hashes of the short source sentences, in ascending order."""
    largest: list[int] = []  # a heap of negative hashes
    kept: set[int] = set()  # the hashes in it
    for pair in pairs if count else ():
        number = _number(pair[0], seed)
        if not _is_short(pair) or number in kept or (len(kept) == count and number > -largest[0]):
            continue
        kept.add(number)
        heappush(largest, -number)
        if len(kept) > count:
            kept.remove(-heappop(largest))
    return sorted(kept)


def _pairs_of(paths: Sequence[Path]) -> Iterator[Pair]:
    with ExitStack() as stack:
        texts = [stack.enter_context(open(path, encoding="utf-8", newline="\n")) for path in paths]
        yield from progress_bar(zip(*texts), unit=" pairs", unit_scale=True)
