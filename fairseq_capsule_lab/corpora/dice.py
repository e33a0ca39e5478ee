"""Random choices that are the same on every machine and with every Python.

Only `random.Random.random()` is used: Python guarantees its sequence, but not the sequences of `choice` and `shuffle`.
"""

import random
from typing import Mapping, Sequence, TypeVar

Item = TypeVar("Item")


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
