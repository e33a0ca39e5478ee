"""Splits without common sources."""

from itertools import islice
from typing import Dict, Iterable, Iterator, List, Mapping, Set, Tuple

from fairseq_capsule_lab.errors import LabError

MOST = 1_000_000  # sentences of one corpus; up to here new sentences are found quickly
PATIENCE = 10_000  # consecutive repetitions after which the search ends

Pairs = List[Tuple[str, str]]


def draw_splits(pairs: Iterable[Tuple[str, str]], sizes: Mapping[str, int]) -> Dict[str, Pairs]:
    """Draw splits of the given sizes from (source, target) pairs.

    No source occurs twice in all splits. No split has a target of a later split, so the training set has no target of
    the test set. The splits are drawn from the last to the first. If `train` is first, its size does not change the
    other splits.

    Raises:
        LabError: a size is below 1, or there are fewer sentences than requested.
    """
    for split, size in sizes.items():
        if size < 1:
            raise LabError(f"{split}: {size} sentences; ask for at least 1")
    total = sum(sizes.values())
    if total > MOST:
        raise LabError(f"{total} sentences, but the grammar makes only {MOST} without repetition; ask for fewer")
    new = distinct(pairs)
    drawn: Dict[str, Pairs] = {}
    known: Set[str] = set()
    for split, size in reversed(list(sizes.items())):
        drawn[split] = _draw(split, (pair for pair in new if pair[1] not in known), size)
        known.update(target for _, target in drawn[split])
    return drawn


def distinct(pairs: Iterable[Tuple[str, str]]) -> Iterator[Tuple[str, str]]:
    """The pairs with a new source. The iteration ends after `PATIENCE` consecutive repetitions."""
    seen, repetitions = set(), 0
    for source, target in pairs:
        if source not in seen:
            seen.add(source)
            repetitions = 0
            yield source, target
        elif repetitions == PATIENCE:
            return
        else:
            repetitions += 1


def _draw(split: str, pairs: Iterator[Tuple[str, str]], size: int) -> Pairs:
    drawn = list(islice(pairs, size))
    if len(drawn) < size:
        raise LabError(f"{split}: {size} sentences, but the grammar has only {len(drawn)} left; ask for fewer")
    return drawn
