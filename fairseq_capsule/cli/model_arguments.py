"""The arguments of commands that look into a trained model."""

import argparse
from pathlib import Path

from fairseq_capsule.checkpoints.hub import CapsuleHub, load
from fairseq_capsule.cli.arguments import input_file, input_folder
from fairseq_capsule.data.merges import bpe_options


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """A trained model, and how raw text becomes what it reads; `load_model` takes them."""
    parser.add_argument("checkpoint", type=input_file, help="a trained model")
    parser.add_argument("data", type=input_folder, help="the binarised data whose dictionaries it was trained with")
    parser.add_argument(
        "--codes", type=input_file, help="subword-nmt codes, or a SentencePiece model, to apply to raw text"
    )
    parser.add_argument("--tokenizer", choices=["moses", "space"], default="space", help="tokeniser of raw text")


def load_model(args: argparse.Namespace, checkpoint: Path) -> CapsuleHub:
    """The model of a checkpoint with the dictionaries and the text's preparation that the arguments name.

    Raises:
        UserError: one of them is broken, or they do not fit together.
    """
    bpe = bpe_options(args.codes) if args.codes else {}
    return load(checkpoint, args.data, tokenizer=args.tokenizer, **bpe)
