"""The merges of `subword_nmt.learn_bpe`, found faster: the most frequent pair is not searched among all pairs."""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import TextIO

Pair = tuple[str, str]
Symbols = tuple[str, ...]
Word = tuple[Symbols, int]  # with its count


class _Frequencies(defaultdict[Pair, int]):
    """The frequencies of pairs, and the pairs whose frequency was set since `changed` was emptied."""

    def __init__(self, frequencies: Mapping[Pair, int]):
        super().__init__(int, frequencies)
        self.changed: set[Pair] = set()

    def __setitem__(self, pair: Pair, frequency: int) -> None:
        super().__setitem__(pair, frequency)
        self.changed.add(pair)


class _Ranking:
    """Pairs in lists of equal frequency, to find the most frequent one. Of equal ones the last by its text counts.

    A pair stays in the list of an earlier frequency; `best` drops it there.
    """

    def __init__(self, frequencies: Mapping[Pair, int], least: float):
        self._frequencies, self._least = frequencies, least
        self._lists: dict[int, list[Pair]] = {}
        for pair in sorted(pair for pair, frequency in frequencies.items() if frequency >= least):
            self._lists.setdefault(frequencies[pair], []).append(pair)
        self._order = [-frequency for frequency in self._lists]
        heapify(self._order)

    def add(self, pairs: Iterable[Pair]) -> None:
        """Add pairs with a new frequency."""
        for pair in pairs:
            frequency = self._frequencies[pair]
            if frequency >= self._least:
                if frequency not in self._lists:
                    self._lists[frequency] = []
                    heappush(self._order, -frequency)
                insort(self._lists[frequency], pair)

    def best(self) -> Pair | None:
        """Return the most frequent pair, or None if no pair has at least the least frequency."""
        while self._order:
            frequency = -self._order[0]
            pairs = self._lists[frequency]
            while pairs:
                if self._frequencies.get(pairs[-1]) == frequency:
                    return pairs[-1]
                pairs.pop()
            del self._lists[frequency]
            heappop(self._order)
        return None


def _merge(pair: Pair, words: list[Word], places: Mapping[int, int]) -> list[tuple[int, Symbols, Symbols, int]]:
    """Merge a pair in the words at some places, and return what update_pair_statistics needs: place, new, old, count.

    subword-nmt's own function compiles a regular expression for each pair.
    """
    changes = []
    for place in [place for place, number in places.items() if number > 0]:
        word, count = words[place]
        merged = []
        position = 0
        while position < len(word):
            found = word[position : position + 2] == pair
            merged.append("".join(pair) if found else word[position])
            position += 2 if found else 1
        words[place] = tuple(merged), count
        changes.append((place, words[place][0], word, count))
    return changes


def learn_merges(words: Mapping[str, int], number: int, stream: TextIO) -> int:
    """Write the merges that subword-nmt learns from words and their counts, and return how many there are.

    As in subword-nmt, pairs rarer than a threshold are kept apart until none above it is left; the threshold decides
    between equal frequencies, so it has the same values here.
    """
    from subword_nmt.learn_bpe import get_pair_statistics, prune_stats, update_pair_statistics

    stream.write("#version: 0.2\n")
    spelt: list[Word] = [((*word[:-1], word[-1] + "</w>"), count) for word, count in words.items()]
    frequencies, places = get_pair_statistics(spelt)
    everything = defaultdict(int, frequencies)
    frequencies = _Frequencies(frequencies)
    threshold = max(frequencies.values(), default=0) / 10
    ranking = _Ranking(frequencies, threshold)
    for done in range(number):
        pair = ranking.best()
        if pair is None:
            prune_stats(frequencies, everything, threshold)
            frequencies = _Frequencies(everything)
            pair = max(frequencies, key=lambda pair: (frequencies[pair], pair))
            threshold = frequencies[pair] * done / (done + 10000)
            prune_stats(frequencies, everything, threshold)
            ranking = _Ranking(frequencies, threshold)
        if frequencies[pair] < 2:
            return done
        stream.write(f"{pair[0]} {pair[1]}\n")
        frequencies.changed.clear()
        update_pair_statistics(pair, _merge(pair, spelt, places[pair]), frequencies, places)
        frequencies[pair] = 0
        ranking.add(frequencies.changed)
        if done % 100 == 0:
            prune_stats(frequencies, everything, threshold)
    return number
