"""`fairseq-capsule filter`: the steps of scripts/prepare-wmt*.sh that no other tool does.

A filter of lines reads standard input and writes standard output. It uses all cores, keeps the order of the lines, and
holds only a few blocks of them in memory. A filter of pairs reads two parallel files and writes two.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from capsule_routing.text.preparation import cut_chinese, split_by_pieces
from fairseq_capsule_lab.cli.arguments import input_file, label, positive_int, whole_number
from fairseq_capsule_lab.corpora import subwords, texts
from fairseq_capsule_lab.corpora.parallel import Filter, filter_stream
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.stages import manifest_lines

LOG = "/dev/stderr"  # what worker processes print
MODELS = {"sentencepiece": "unigram", "sentencepiece-bpe": "bpe"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="filter", metavar="NAME", required=True)

    def add(name: str, function: Callable[[argparse.Namespace], None], text: str) -> argparse.ArgumentParser:
        kind = kinds.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        kind.set_defaults(filter_run=function)
        return kind

    add("chinese-words", chinese_words, "drop the control characters of Chinese text, and cut it into words by jieba")

    pieces = add("pieces", cut_into_pieces, "cut text into the pieces of a SentencePiece model")
    pieces.add_argument("model", type=input_file, metavar="MODEL")

    learn = add("learn-pieces", learn_pieces, "learn a SentencePiece model from texts")
    learn.add_argument("--kind", choices=MODELS, required=True, help="its unigram model, or its BPE")
    learn.add_argument("--size", type=positive_int, required=True, metavar="N", help="the largest number of pieces")
    learn.add_argument("model", type=Path, metavar="MODEL", help="the file to write")
    learn.add_argument("texts", type=input_file, nargs="+", metavar="TEXT")

    text = "append the pairs that are not broken and not empty to two files, and print the counts"
    training = add("training-pairs", training_pairs, text)
    text = "append no more than N pairs (0: all)"
    training.add_argument("--limit", type=whole_number(0, 10**9), default=0, metavar="N", help=text)
    _add_pairs(training)

    text = "append the pairs of a validation or test set to two files; a broken pair is an error"
    _add_pairs(add("held-out-pairs", held_out_pairs, text))

    text = "write the pairs that are not empty, not too long and of similar length"
    similar = add("similar-pairs", similar_pairs, text)
    text = "the largest number of words of a sentence (any)"
    similar.add_argument("--max-length", type=positive_int, default=sys.maxsize, metavar="N", help=text)
    text = "the largest ratio of the numbers of words (0: any)"
    similar.add_argument("--ratio", type=float, default=0, metavar="X", help=text)
    text = "write the lines of two other texts, parallel to SOURCE and TARGET"
    similar.add_argument("--instead", type=input_file, nargs=2, default=(), metavar="TEXT", help=text)
    _add_pairs(similar)

    manifest = add("manifest", print_manifest, "print the manifest of a prepared folder")
    manifest.add_argument("--command", dest="line", type=label, required=True, help="the command that prepared it")
    manifest.add_argument("folder", type=Path, metavar="FOLDER")
    manifest.add_argument("stages", nargs="+", metavar="STAGE", help="a file or a folder that was made")


def _add_pairs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=input_file, metavar="SOURCE", help="plain, .gz, .sgm or .xml")
    parser.add_argument("target", type=input_file, metavar="TARGET")
    parser.add_argument("outputs", type=Path, nargs=2, metavar="OUTPUT")


def run(args: argparse.Namespace) -> None:
    args.filter_run(args)


def chinese_words(args: argparse.Namespace) -> None:
    _filter_lines(cut_chinese)


def cut_into_pieces(args: argparse.Namespace) -> None:
    _filter_lines(partial(split_by_pieces, codes={"": str(args.model)}))


def _filter_lines(change: Filter) -> None:
    with (
        open(0, encoding="utf-8", newline="\n", closefd=False) as source,
        open(1, "w", encoding="utf-8", newline="\n", closefd=False) as target,
        open(LOG, "ab") as log,
    ):
        filter_stream(change, source, target, log)


def learn_pieces(args: argparse.Namespace) -> None:
    with open(LOG, "ab") as log:
        subwords.learn_pieces(args.texts, args.model, MODELS[args.kind], args.size, log)


def training_pairs(args: argparse.Namespace) -> None:
    _, counted = texts.append_training_pairs((args.source, args.target), args.outputs, args.limit)
    print(f"{args.source.name}\t{counted}")


def held_out_pairs(args: argparse.Namespace) -> None:
    texts.append_good_pairs((args.source, args.target), args.outputs)


def similar_pairs(args: argparse.Namespace) -> None:
    texts.copy_similar_pairs(
        (args.source, args.target), args.outputs, args.max_length, args.ratio, instead=args.instead
    )
    if not args.outputs[0].stat().st_size:
        limits = f"--max-length {args.max_length} and --ratio {args.ratio:g}"
        raise LabError(f"no pair passes {limits}: give larger ones")


def print_manifest(args: argparse.Namespace) -> None:
    for line in manifest_lines(args.folder, args.stages, args.line):
        print(line)
