"""The arguments of commands that look into a trained model."""

import argparse
from pathlib import Path
from typing import Dict

from sentencepiece import SentencePieceProcessor

from fairseq_capsule.cli.arguments import input_file, input_folder
from fairseq_capsule.hub import CapsuleHub, load


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
    return load(checkpoint, args.data, tokenizer=args.tokenizer, **(_bpe(args.codes) if args.codes else {}))


def _bpe(codes: Path) -> Dict[str, str]:
    """fairseq's options for a model of SentencePiece, or else for codes of subword-nmt, which `load` checks."""
    try:
        SentencePieceProcessor(model_file=str(codes))
    except RuntimeError:
        return {"bpe": "subword_nmt", "bpe_codes": str(codes)}
    return {"bpe": "sentencepiece", "sentencepiece_model": str(codes)}
