"""Splits of different sources."""

from itertools import islice
from typing import Dict, Iterable, Iterator, List, Mapping, Set, Tuple

from fairseq_capsule.errors import UserError

MOST = 1_000_000  # sentences of one corpus, so far without a long search for new ones
PATIENCE = 10_000  # repetitions in a row after which there is nothing new

Pairs = List[Tuple[str, str]]


def draw_splits(pairs: Iterable[Tuple[str, str]], sizes: Mapping[str, int]) -> Dict[str, Pairs]:
    """Draw splits of the given sizes from (source, target) pairs; no two sources of all splits are the same, and no
    split has a target of a later one, so that nothing that is asked in a test was said in training.

    The splits are drawn from the last to the first, so that with `train` named first the size of the training set
    changes nothing in the others.

    Raises:
        UserError: a size below 1, or more sentences than there are.
    """
    for split, size in sizes.items():
        if size < 1:
            raise UserError(f"{split}: {size} sentences; ask for at least 1")
    total = sum(sizes.values())
    if total > MOST:
        raise UserError(f"{total} sentences; the grammar is good for {MOST} without repetition: ask for fewer")
    new = distinct(pairs)
    drawn: Dict[str, Pairs] = {}
    known: Set[str] = set()
    for split, size in reversed(list(sizes.items())):
        drawn[split] = _draw(split, (pair for pair in new if pair[1] not in known), size)
        known.update(target for _, target in drawn[split])
    return drawn


def distinct(pairs: Iterable[Tuple[str, str]]) -> Iterator[Tuple[str, str]]:
    """The pairs whose source has not been seen before; it ends when only repetitions come."""
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
        raise UserError(f"{split}: {size} sentences; the grammar has only {len(drawn)} left: ask for fewer")
    return drawn
