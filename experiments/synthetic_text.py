"""Parallel text without meaning that strains a preparation as a corpus of WMT does, and archives of it.

Ranks of words are drawn by Zipf's law, with the steeper tail of rare words, whose number grows without end (Heaps'
law). A word is spelled from its rank in syllables: frequent words are short, and rare ones share pieces, which merges
find. The German word of a rank has other syllables, and German also has compounds.
"""

import html
import itertools
import tarfile
from functools import lru_cache
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import numpy as np

Pair = Tuple[str, str]

HEAD = 5000  # ranks by Zipf's law with exponent 1
TAIL_SHARE, TAIL_EXPONENT = 0.05, 1.65  # the share of the other words, and their exponent
LOG_LENGTH, LOG_DEVIATION = 3.05, 0.6  # of the words of a sentence: 25 on average
SYLLABLES = {
    "en": [onset + rest for onset in "b c d f g l m n p r s t th w st tr".split() for rest in "a e i o ea er".split()],
    "de": [onset + rest for onset in "b d f g h k l m n r s t w z sch pf".split() for rest in "a ä e ei ü en".split()],
}
# The shares of pairs, by what is unusual about them.
UNUSUAL = {"empty": 0.002, "over-long": 0.001, "repeated": 0.01, "unequal": 0.002}
# Parts of the training set of WMT14 English-German: the archive, its member without the language, its share of pairs.
PARTS = (
    ("training-parallel-europarl-v7.tgz", "training/europarl-v7.de-en", 0.43),
    ("training-parallel-commoncrawl.tgz", "commoncrawl.de-en", 0.53),
    ("training-parallel-nc-v9.tgz", "training/news-commentary-v9.de-en", 0.04),
)
BLOCK = 10_000  # pairs drawn at once


@lru_cache(maxsize=200_000)
def spelled(rank: int, language: str) -> str:
    """The word of a rank."""
    syllables, word = SYLLABLES[language], ""
    while True:
        rank, last = divmod(rank, len(syllables))
        word += syllables[last]
        if not rank:
            return word
        rank -= 1


def draw_ranks(random: np.random.Generator, number: int) -> np.ndarray:
    """Draw ranks of words, `(number,)`."""
    share = random.random(number)
    head = HEAD**share - 1
    tail = HEAD * (1 - share) ** (-1 / (TAIL_EXPONENT - 1))
    return np.where(random.random(number) < TAIL_SHARE, np.minimum(tail, 1e12), head).astype(np.int64)


def sentence(ranks: List[int], language: str, random: np.random.Generator, numbers: Dict[int, str]) -> str:
    """Spell words; `numbers` replace those at their places."""
    words = [spelled(rank, language) for rank in ranks]
    chances = random.random(len(words))
    for place, chance in enumerate(chances):
        if place in numbers:
            words[place] = numbers[place]
        elif chance < 0.05:
            words[place] += ","
        elif chance < 0.06:
            words[place] = f'"{words[place]}"'
        elif chance < 0.062:
            words[place] += " &"
        elif chance < 0.08 and language == "de":
            words[place] += spelled(ranks[place - 1], language)  # a compound
        elif chance < 0.085:
            words[place] += f"-{words[place - 1]}"
    words[0] = words[0].capitalize()
    return " ".join(words) + ("?" if chances[0] < 0.1 else ".")


def usual_pairs(random: np.random.Generator) -> Iterator[Pair]:
    """Yield pairs without end. A translation has the same words, with some left out."""
    while True:
        lengths = random.lognormal(LOG_LENGTH, LOG_DEVIATION, BLOCK).clip(2, 200).astype(int)
        ranks = draw_ranks(random, lengths.sum())
        numbers = random.random(len(ranks)) < 0.02
        kept = random.random(len(ranks)) < 0.95
        for end, length in zip(np.cumsum(lengths), lengths):
            own = slice(end - length, end)
            source = ranks[own].tolist()
            target = ranks[own][kept[own]].tolist() or source
            places = np.flatnonzero(numbers[own][: len(target)]).tolist()
            values = {place: str(source[place] % 3000) for place in places}
            yield sentence(source, "en", random, values), sentence(target, "de", random, values)


def pairs(number: int, seed: int) -> Iterator[Pair]:
    """Yield pairs of English and German, some of them unusual."""
    random = np.random.default_rng(seed)
    kinds = random.choice(["", *UNUSUAL], number, p=[1 - sum(UNUSUAL.values()), *UNUSUAL.values()])
    last = ("One.", "Eins.")
    for kind, (source, target) in zip(kinds, usual_pairs(random)):
        if kind == "empty":
            target = ""
        elif kind == "over-long":
            source, target = (" ".join([text] * 130) for text in (source, target))
        elif kind == "repeated":
            source, target = last
        elif kind == "unequal":
            target = " ".join([target] * 12)
        last = source, target
        yield source, target


def write_archives(folder: Path, number: int, valid: int, test: int) -> None:
    """Write archives with the names and members of WMT14 English-German, with `number` training pairs."""
    folder.mkdir(parents=True)
    for seed, (archive, member, share) in enumerate(PARTS):
        _pack(folder / archive, {f"{member}.en": "", f"{member}.de": ""}, pairs(round(share * number), seed))
    members = {"dev/newstest2013.en": "", "dev/newstest2013.de": ""}
    _pack(folder / "dev.tgz", members, itertools.islice(usual_pairs(np.random.default_rng(11)), valid))
    members = {"test-full/newstest2014-deen-src.en.sgm": "srcset", "test-full/newstest2014-deen-ref.de.sgm": "refset"}
    _pack(folder / "test-full.tgz", members, itertools.islice(usual_pairs(np.random.default_rng(12)), test))


def _pack(archive: Path, members: Dict[str, str], text: Iterator[Pair]) -> None:
    """Write the two members of an archive; each is plain, or SGML whose outermost element is given."""
    paths = [archive.with_suffix(f".{side}") for side in ("source", "target")]
    with paths[0].open("w", encoding="utf-8") as source, paths[1].open("w", encoding="utf-8") as target:
        for number, lines in enumerate(text, start=1):
            for stream, line, root in zip((source, target), lines, members.values()):
                stream.write(f'<seg id="{number}">{html.escape(line)}</seg>\n' if root else f"{line}\n")
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        for path, (name, root) in zip(paths, members.items()):
            if root:
                text_of_segments = path.read_text(encoding="utf-8")
                document = f'<doc sysid="ref" docid="d">\n<p>\n{text_of_segments}</p>\n</doc>'
                path.write_text(f'<{root} setid="s">{document}</{root}>\n', encoding="utf-8")
            packed.add(path, name)
            path.unlink()
