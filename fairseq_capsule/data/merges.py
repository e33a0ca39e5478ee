"""Checks of the files for subwords: codes of subword-nmt and models of SentencePiece."""

import re
from pathlib import Path
from typing import Dict, Union

from capsule_routing.errors import UserError, missing_library
from capsule_routing.text.files import read_lines

VERSION = re.compile(r"#version: \d+(\.\d+)*", re.ASCII)
MERGE = re.compile(r"[^ ]+ [^ ]+")


def require_codes(path: Union[str, Path]) -> None:
    """Refuse codes that subword-nmt cannot read, with a UserError. subword-nmt itself would end the process."""
    lines = read_lines(path)
    remedy = "give the codes of subword-nmt that the data was prepared with"
    if lines[0].startswith("#version:") and len(lines) == 1:
        raise UserError(f"{path}: it has no merges; {remedy}")
    for number, line in enumerate(lines, start=1):
        names_version = number == 1 and line.startswith("#version:")
        if not (VERSION if names_version else MERGE).fullmatch(line):
            raise UserError(f"{path}, line {number}: {line[:40]!r} is not two pieces of a word; {remedy}")


def bpe_options(path: Union[str, Path]) -> Dict[str, str]:
    """Return fairseq's options for a file with codes of subword-nmt or a model of SentencePiece.

    A file that is neither raises a UserError, also a model if SentencePiece is not installed.
    """
    with open(path, "rb") as file:
        first = file.read(1)
    if first != b"\n":  # each model of SentencePiece starts with this byte: the tag of its first field
        require_codes(path)
        return {"bpe": "subword_nmt", "bpe_codes": str(path)}
    try:
        from sentencepiece import SentencePieceProcessor
    except ModuleNotFoundError as error:
        raise missing_library(error) from error
    try:
        SentencePieceProcessor(model_file=str(path))
    except RuntimeError as error:
        problem = "neither codes of subword-nmt nor a model of SentencePiece; name one of them"
        raise UserError(f"{path}: {problem}") from error
    return {"bpe": "sentencepiece", "sentencepiece_model": str(path)}
