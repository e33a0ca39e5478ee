"""Options that several commands have: how texts are read, and by what they are scored and tested."""

import argparse
from itertools import chain
from pathlib import Path
from typing import Iterable, List, Sequence, Tuple

from fairseq_capsule_lab.cli.arguments import MOST_SEED, label, language_code, language_of, whole_number
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.evaluation import scores, translations
from fairseq_capsule_lab.evaluation.external import external_measures
from fairseq_capsule_lab.evaluation.scores import rouge_measures
from fairseq_capsule_lab.evaluation.translations import SUBWORDS, TOKENISED, Translations, read_translations

MOST_SAMPLES = 100_000


def add_text(parser: argparse.ArgumentParser) -> None:
    """Add the options that state how the text of outputs is written."""
    parser.add_argument(
        "--tokenized",
        choices=TOKENISED,
        default="auto",
        help="whether an output is tokenised; auto (the default): yes for an output of fairseq-generate, unless it was "
        "generated with --tokenizer or consists of SentencePiece pieces or of characters; no for plain text",
    )
    parser.add_argument(
        "--remove-bpe",
        choices=SUBWORDS,
        help="how to join subwords (default: none for plain text; for an output of fairseq-generate sentencepiece if "
        "it has such pieces or characters, otherwise subword_nmt)",
    )


def add_scoring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lang", type=language_code, help="language of the translations, for Moses (default: the suffix of REF)"
    )
    parser.add_argument(
        "--rouge",
        action="store_true",
        help="the texts are summaries, separate characters are joined: ROUGE-1, ROUGE-2 and ROUGE-L F1 over characters "
        "instead of BLEU and chrF",
    )
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    parser.add_argument(
        "--other-reference",
        action="store_true",
        help="accept a REF that is another text than the T- lines of an output",
    )
    add_external(parser)
    add_text(parser)


def add_external(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--external",
        type=label,
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="also compare by another metric's scores of the sentences: JSON, as comet-score --to_json writes it, or "
        "TSV with a column for each output; may be repeated",
    )


def add_bootstrap(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--samples",
        type=whole_number(1, MOST_SAMPLES),
        default=1000,
        help="samples of the paired bootstrap (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=whole_number(1, MOST_SEED),
        default=12345,
        help="seed of the paired bootstrap (default: %(default)s, as in sacrebleu)",
    )


def read_scored(args: argparse.Namespace, paths: Iterable[Path]) -> List[Translations]:
    """Read translations, or with `--rouge` summaries.

    Raises:
        LabError: the errors of `read_translations`; `--tokenized` together with `--rouge`.
    """
    if args.rouge and args.tokenized != "auto":
        raise LabError("--tokenized applies to BLEU, and ROUGE counts characters; leave it out with --rouge")
    if args.rouge:
        return [read_translations(path, args.remove_bpe, False, "characters") for path in paths]
    return [read_translations(path, args.remove_bpe, TOKENISED[args.tokenized]) for path in paths]


def require_own_reference(
    args: argparse.Namespace, systems: Sequence[Translations], references: Sequence[Tuple[Path, Sequence[str]]]
) -> None:
    """Refuse references of another text, unless `--other-reference` is given.

    Raises:
        LabError: the errors of `translations.require_own_reference`.
    """
    if not args.other_reference:
        translations.require_own_reference(systems, references)


def measures_of(
    args: argparse.Namespace, systems: Sequence[Translations], references: Sequence[Sequence[str]]
) -> Iterable[scores.Measure]:
    """BLEU and chrF, or with `--rouge` ROUGE; then the external measures.

    Raises:
        LabError: the errors of `external_measures`.
    """
    external = external_measures(args.external, systems)
    if args.rouge:
        return chain(rouge_measures(systems, references, args.lowercase), external)
    return chain(scores.measures(systems, references, language(args), args.lowercase), external)


def language(args: argparse.Namespace) -> str:
    return args.lang or language_of(args.references[0])
