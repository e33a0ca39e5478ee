"""fairseq's `--tokenizer prepared`: raw text is read as the prepared data was made, subwords included."""

from dataclasses import dataclass, field, replace
from typing import Optional

from fairseq.data.data_utils import infer_language_pair
from fairseq.data.encoders import register_tokenizer
from fairseq.dataclass import FairseqDataclass
from fairseq.utils import split_paths
from omegaconf import II

from capsule_routing.errors import UserError
from capsule_routing.text.folders import binarised_folder, preparations
from capsule_routing.text.preparation import TextPreparation, lower


@dataclass
class PreparedTextConfig(FairseqDataclass):
    """The options of `--tokenizer prepared`. Those without a help text are the task's."""

    prepared: Optional[str] = field(
        default=None,
        metadata={"help": "for --tokenizer prepared: OUT of the prepare script (default: the folder of the data)"},
    )
    constraints: Optional[str] = II("generation.constraints")
    data: str = II("task.data")
    source_lang: Optional[str] = II("task.source_lang")
    target_lang: Optional[str] = II("task.target_lang")


@register_tokenizer("prepared", dataclass=PreparedTextConfig)
class PreparedText:
    """Makes subwords of a raw line of the source language, and raw text of subwords of the target language."""

    def __init__(self, source: TextPreparation, target: TextPreparation):
        self.source, self.target = source, target

    @classmethod
    def build_tokenizer(cls, cfg: PreparedTextConfig) -> "PreparedText":
        """Read the settings of the prepared folder. Raises a UserError if no prepare script made it."""
        data = cfg.prepared or split_paths(cfg.data)[0]
        source, target = cfg.source_lang, cfg.target_lang
        if not source or not target:  # as the task does
            source, target = infer_language_pair(str(binarised_folder(data)))
        sides = preparations(data, source, target)
        if sides is None:
            remedy = "name one by --prepared, or give the tokeniser and BPE of your own preparation"
            raise UserError(f"--tokenizer prepared: {data} is not the OUT of a prepare script; {remedy}")
        if cfg.constraints and not _read_alike(*sides):
            remedy = "leave --tokenizer out, and give subwords of the source and of the constraints, as in OUT/bpe"
            raise UserError(f"--constraints: fairseq would prepare them as {source}, but they are {target}; {remedy}")
        return cls(*sides)

    def encode(self, line: str) -> str:
        """Return the subwords of a raw line, separated by spaces."""
        return self.source.encode(line)

    def decode(self, line: str) -> str:
        """Return the raw text of a line of subwords."""
        return self.target.decode(line)


def _read_alike(source: TextPreparation, target: TextPreparation) -> bool:
    """Return whether a text of the target language becomes the same subwords when it is read as the source language.

    fairseq has one function for sources and for constraints. Moses has rules for each language.
    """
    lowers_alike = not source.lower or lower(source.language, "Iİ") == lower(target.language, "Iİ")
    same = replace(source, language="") == replace(target, language="")
    return source.tokenizer != "moses" and lowers_alike and same
