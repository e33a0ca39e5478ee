"""`fairseq-capsule toy-corpus`: write an embedded corpus as parallel text files."""

import argparse

from fairseq_capsule_lab.cli.arguments import MOST, MOST_SEED, output_folder, whole_number
from fairseq_capsule_lab.corpora.headlines import article_pairs
from fairseq_capsule_lab.corpora.splits import draw_splits, write_parallel
from fairseq_capsule_lab.corpora.toy.recipe import SIZES
from fairseq_capsule_lab.corpora.toy.sampler import sentence_pairs
from fairseq_capsule_lab.errors import LabError

CORPORA = {"english-german": (("en", "de", "align"), sentence_pairs), "headlines": (("text", "summary"), article_pairs)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = "folder for train.en, train.de, valid.en, …; of headlines train.text, train.summary, valid.text, …"
    add("out", type=output_folder, metavar="OUT", help=text)
    text = "sentences with their translations, or short Chinese news with their headlines (default: %(default)s)"
    add("--corpus", choices=CORPORA, default="english-german", help=text)
    for split, size in SIZES.items():
        text = f"pairs in {split} (default: %(default)s)"
        add(f"--{split}", type=whole_number(0, MOST), default=size, metavar="N", help=text)
    add("--seed", type=whole_number(0, MOST_SEED), default=1, help="seed of the sampler (default: %(default)s)")
    text = "also write train.align, …: which words of the tokenised sentences translate each other, as 0-0 1-2"
    add("--alignments", action="store_true", help=text)


def run(args: argparse.Namespace) -> None:
    (source, target, *align), pairs = CORPORA[args.corpus]
    if args.alignments and not align:
        raise LabError(f"--alignments: {args.corpus} has none; omit the option, or take --corpus english-german")
    splits = draw_splits(pairs(args.seed), {split: getattr(args, split) for split in SIZES})
    suffixes = (source, target, *align) if args.alignments else (source, target)
    write_parallel(args.out, suffixes, splits)
    for split in SIZES:
        files = ", ".join(f"{args.out}/{split}.{suffix}" for suffix in suffixes)
        print(f"wrote {len(splits[split])} pairs: {files}")
