"""`fairseq-capsule toy-corpus`: write an embedded corpus as parallel text files."""

import argparse

from fairseq_capsule_lab.cli.arguments import output_folder, positive_int
from fairseq_capsule_lab.corpora.embedded import SIZES, draw_splits, write_parallel
from fairseq_capsule_lab.errors import LabError

SUFFIXES: dict[str, tuple[str, ...]] = {"english-german": ("en", "de"), "headlines": ("text", "summary")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = "folder for train.en, train.de, valid.en, …; of headlines train.text, train.summary, valid.text, …"
    add("out", type=output_folder, metavar="OUT", help=text)
    text = "sentences with their translations, or short Chinese news with their headlines (default: %(default)s)"
    add("--corpus", choices=SUFFIXES, default="english-german", help=text)
    for split, size in SIZES.items():
        text = f"pairs in {split} (default: %(default)s)"
        add(f"--{split}", type=positive_int, default=size, metavar="N", help=text)
    text = "also write train.align, …: which words of the tokenised sentences translate each other, as 0-0 1-2"
    add("--alignments", action="store_true", help=text)


def run(args: argparse.Namespace) -> None:
    suffixes = SUFFIXES[args.corpus]
    if args.alignments:
        if args.corpus == "headlines":
            raise LabError("--alignments: headlines has none; omit the option, or take --corpus english-german")
        suffixes = (*suffixes, "align")
    splits = draw_splits(args.corpus, {split: getattr(args, split) for split in SIZES})
    write_parallel(args.out, suffixes, splits)
    for split in SIZES:
        files = ", ".join(f"{args.out}/{split}.{suffix}" for suffix in suffixes)
        print(f"wrote {len(splits[split])} pairs: {files}")
