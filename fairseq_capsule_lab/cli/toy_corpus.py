"""`fairseq-capsule toy-corpus`: write an embedded corpus as parallel text files."""

from pathlib import Path

import click

from capsule_routing.errors import UserError
from fairseq_capsule_lab.cli.arguments import output_path, positive_int
from fairseq_capsule_lab.cli.commands import argument, command, flag, option
from fairseq_capsule_lab.corpora.embedded import SIZES, draw_splits, write_parallel

SUFFIXES: dict[str, tuple[str, ...]] = {"english-german": ("en", "de"), "headlines": ("text", "summary")}
OUT = "Folder for train.en, train.de, valid.en, …; of headlines train.text, train.summary, valid.text, …"
CORPUS = "Sentences with their translations, or short Chinese news with their headlines."
ALIGNMENTS = "Also write train.align, …: which words of the tokenised sentences translate each other, as 0-0 1-2."


@command("toy-corpus", "toy --train 1000")
@argument("out", output_path, OUT)
@option("--corpus", click.Choice(list(SUFFIXES)), "", CORPUS, default="english-german")
@option("--train", positive_int, "N", "Training pairs.", default=SIZES["train"])
@option("--valid", positive_int, "N", "Validation pairs.", default=SIZES["valid"])
@option("--test", positive_int, "N", "Test pairs.", default=SIZES["test"])
@flag("--alignments", ALIGNMENTS)
def toy_corpus(out: Path, corpus: str, train: int, valid: int, test: int, alignments: bool) -> None:
    """Write an embedded corpus as parallel text, at most 31,000 pairs."""
    suffixes = SUFFIXES[corpus]
    if alignments:
        if corpus == "headlines":
            raise UserError("--alignments: headlines has none; omit the option, or take --corpus english-german")
        suffixes = (*suffixes, "align")
    splits = draw_splits(corpus, {"train": train, "valid": valid, "test": test})
    write_parallel(out, suffixes, splits)
    for split in SIZES:
        files = ", ".join(f"{out}/{split}.{suffix}" for suffix in suffixes)
        print(f"wrote {len(splits[split])} pairs: {files}")
