"""Command-line arguments of the commands that inspect a trained model."""

import argparse
import sys
from pathlib import Path
from typing import Collection, Sequence

from fairseq_capsule.data.merges import bpe_options
from fairseq_capsule.errors import one_line
from fairseq_capsule.hub import CapsuleHub, load
from fairseq_capsule_lab.cli.arguments import input_file, input_folder
from fairseq_capsule_lab.pages.sentences import SourceSentence

MOST_LISTED = 10  # characters without a font


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a trained model and the preprocessing of raw text. `load_model` reads them."""
    parser.add_argument("checkpoint", type=input_file, help="a trained model")
    parser.add_argument("data", type=input_folder, help="binarised data with the dictionaries of its training")
    parser.add_argument(
        "--codes", type=input_file, help="subword-nmt codes, or a SentencePiece model, to apply to raw text"
    )
    parser.add_argument("--tokenizer", choices=["moses", "space"], default="space", help="tokeniser of raw text")


def load_model(args: argparse.Namespace, checkpoint: Path) -> CapsuleHub:
    """Load a checkpoint with the dictionaries and the preprocessing that the arguments name.

    Raises:
        LabError: a file is broken, or the files do not fit together.
    """
    bpe = bpe_options(args.codes) if args.codes else {}
    return load(checkpoint, args.data, tokenizer=args.tokenizer, **bpe)


def note_unknown_words(args: argparse.Namespace, hub: CapsuleHub, sources: Sequence[SourceSentence]) -> None:
    """Print a note if the text has words that are not in the dictionary, which the model reads as `<unk>`."""
    words = sum(len(source.tokens) - 1 for source in sources)  # without the end of the sentence
    unknown = sum(int(source.tokens.eq(hub.src_dict.unk()).sum()) for source in sources)
    advice = "" if args.codes else "; was the data prepared with --codes and --tokenizer?"
    if unknown:
        _note(args, f"{unknown} of {words} words are unknown{advice}")


def note_missing_characters(args: argparse.Namespace, missing: Collection[str]) -> None:
    """Print a note if the pictures have characters that no font has."""
    if missing:
        more = ", ..." if len(missing) > MOST_LISTED else ""
        listed = ", ".join(list(missing)[:MOST_LISTED])
        _note(args, f"no font for {listed}{more}: install one (for Chinese in Debian: apt install fonts-noto-cjk)")


def _note(args: argparse.Namespace, text: str) -> None:
    print(f"fairseq-capsule {args.command}: note: {one_line(text)}", file=sys.stderr)
