"""Splits without common sources."""

from itertools import islice
from typing import Dict, Iterable, Iterator, List, Mapping, Set, Tuple

from fairseq_capsule_lab.errors import LabError

MOST = 1_000_000  # sentences of one corpus; up to here new sentences are found quickly
PATIENCE = 10_000  # consecutive repetitions after which the search ends

Pair = Tuple[str, ...]  # source, target, and what else belongs to them


def draw_splits(pairs: Iterable[Pair], sizes: Mapping[str, int]) -> Dict[str, List[Pair]]:
    """Draw splits of the given sizes from pairs of a source and a target.

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
    drawn: Dict[str, List[Pair]] = {}
    known: Set[str] = set()
    for split, size in reversed(list(sizes.items())):
        drawn[split] = _draw(split, (pair for pair in new if pair[1] not in known), size)
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


def _draw(split: str, pairs: Iterator[Pair], size: int) -> List[Pair]:
    drawn = list(islice(pairs, size))
    if len(drawn) < size:
        raise LabError(f"{split}: {size} sentences, but the grammar has only {len(drawn)} left; ask for fewer")
    return drawn
