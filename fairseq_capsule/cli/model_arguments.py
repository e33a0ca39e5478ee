"""Command-line arguments of the commands that inspect a trained model."""

import argparse
from pathlib import Path

from fairseq_capsule.checkpoints.hub import CapsuleHub, load
from fairseq_capsule.cli.arguments import input_file, input_folder
from fairseq_capsule.data.merges import bpe_options


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
        UserError: a file is broken, or the files do not fit together.
    """
    bpe = bpe_options(args.codes) if args.codes else {}
    return load(checkpoint, args.data, tokenizer=args.tokenizer, **bpe)
