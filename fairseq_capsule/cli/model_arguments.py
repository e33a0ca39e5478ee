"""The arguments of commands that look into a trained model."""

import argparse
from pathlib import Path
from typing import Dict

from sentencepiece import SentencePieceProcessor

from fairseq_capsule.errors import UserError
from fairseq_capsule.hub import CapsuleHub, load


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """A trained model, and how raw text becomes what it reads; `load_model` takes them."""
    parser.add_argument("checkpoint", type=Path, help="a trained model")
    parser.add_argument("data", type=Path, help="the binarised data whose dictionaries it was trained with")
    parser.add_argument("--codes", type=Path, help="subword-nmt codes, or a SentencePiece model, to apply to raw text")
    parser.add_argument("--tokenizer", choices=["moses", "space"], default="space", help="tokeniser of raw text")


def load_model(args: argparse.Namespace, checkpoint: Path) -> CapsuleHub:
    """The model of a checkpoint with the dictionaries and the text's preparation that the arguments name.

    Raises:
        UserError: a file is missing, or the codes are of no kind that is known.
    """
    for path in filter(None, (checkpoint, args.data, args.codes)):
        if not path.exists():
            raise UserError(f"{path}: no such file or folder")
    return load(checkpoint, args.data, tokenizer=args.tokenizer, **(_bpe(args.codes) if args.codes else {}))


def _bpe(codes: Path) -> Dict[str, str]:
    """fairseq's options for a file of codes, whose first line says whose they are.

    Raises:
        UserError: it holds neither kind.
    """
    with open(codes, "rb") as file:
        if file.read(9) == b"#version:":
            return {"bpe": "subword_nmt", "bpe_codes": str(codes)}
    try:
        SentencePieceProcessor(model_file=str(codes))
    except RuntimeError as error:
        raise UserError(
            f"--codes {codes}: neither codes of subword-nmt, which begin with '#version:', nor a model of SentencePiece"
        ) from error
    return {"bpe": "sentencepiece", "sentencepiece_model": str(codes)}
