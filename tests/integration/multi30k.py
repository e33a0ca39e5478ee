"""Tiny archives of Multi30k with the names of the real ones."""

import gzip
import random

ARCHIVES = {
    "train": "train",
    "valid": "val",
    "test": "test_2016_flickr",
    "test1": "test_2017_flickr",
    "test2": "test_2017_mscoco",
}
STAGES = ["raw", "tokenised", "codes", "bpe", "bin", "dict.txt", "manifest.json"]
FIRST_PAIR = ("Don't  touch “Tom & Jerry”!", "Über 1.000 Männer (u.a. Tom & Jerry) laufen.")


def sentence_pairs(count, seed):
    rng = random.Random(seed)
    adjectives = [("small", "kleiner"), ("old", "alter"), ("Happy", "glücklicher")]
    nouns = [("man", "Mann"), ("dog", "Hund"), ("boy", "Junge")]
    verbs = [("runs", "läuft"), ("sleeps", "schläft"), ("jumps", "springt")]
    for _ in range(count):
        (a, ein), (n, wort), (v, tut) = rng.choice(adjectives), rng.choice(nouns), rng.choice(verbs)
        yield f"A {a} {n} {v}, today.", f"Ein {ein} {wort} {tut}, heute."


def write_archive(folder, name, lines):
    (folder / name).write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


def make_archives(folder):
    for seed, (split, stem) in enumerate(ARCHIVES.items()):
        pairs = [FIRST_PAIR, *sentence_pairs(29 if split == "train" else 4, seed)]
        for lang, lines in zip(("en", "de"), zip(*pairs)):
            write_archive(folder, f"{stem}.{lang}.gz", lines)


def finished(out):
    return [stage for stage in STAGES if (out / stage).exists()]
