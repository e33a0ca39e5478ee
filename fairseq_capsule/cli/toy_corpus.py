"""`fairseq-capsule toy-corpus`: the embedded corpus as parallel text files."""

import argparse
from pathlib import Path

from fairseq_capsule.corpora.english_german.corpus import corpus
from fairseq_capsule.corpora.parallel_text import write_parallel

LANGUAGES = ("en", "de")
SIZES = {"train": 30_000, "valid": 500, "test": 500}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder for train.en, train.de, valid.en, …")
    for split, size in SIZES.items():
        parser.add_argument(f"--{split}", type=int, default=size, metavar="N", help="sentences (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the sampler (default: %(default)s)")


def run(args: argparse.Namespace) -> None:
    splits = corpus({split: getattr(args, split) for split in SIZES}, args.seed)
    write_parallel(args.out, LANGUAGES, splits)
    for split in SIZES:
        print(f"wrote {len(splits[split])} pairs: {args.out}/{split}.en, {args.out}/{split}.de")
