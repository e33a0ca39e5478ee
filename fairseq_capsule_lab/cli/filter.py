"""`fairseq-capsule filter`: the steps of scripts/prepare-wmt*.sh.

A filter of lines reads standard input and writes standard output. It uses all cores, keeps the order of the lines, and
holds only a few blocks of them in memory. Other steps do what the preparations in Python do, by the same functions.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from capsule_routing.errors import UserError
from capsule_routing.text.languages import bleu, bleu_tokeniser, has_spaces
from capsule_routing.text.preparation import cut_chinese, moses, split_into_subwords
from fairseq_capsule_lab.cli.arguments import MOST, given, input_file, input_folder, language_code, number, positive_int
from fairseq_capsule_lab.cli.commands import Group, argument, command, flag, option, together
from fairseq_capsule_lab.corpora.archives import local_archive
from fairseq_capsule_lab.corpora.parallel import Filter, filter_stream
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import DEFAULTS, TOOLS, require_earlier_files, settings_of_options
from fairseq_capsule_lab.corpora.subwords import learn_subwords
from fairseq_capsule_lab.corpora.texts import copy_similar_pairs
from fairseq_capsule_lab.corpora.unknown import MOST as MOST_UNKNOWN
from fairseq_capsule_lab.corpora.unknown import require_known
from fairseq_capsule_lab.files import as_json
from fairseq_capsule_lab.manifests import manifest_of, warnings

LOG = "/dev/stderr"  # what worker processes print
LANGUAGES = click.argument("languages", type=language_code, nargs=2, metavar="LANG LANG", help="Source and target.")
DOWNLOADS = Path("download")
FROM = "The folder of the archives; without it they are in download/, or are fetched."
SIDES = "Two members of an archive, or two files: plain, .gz, .sgm or .xml."
ADDRESS = "That of the archive, or of each of its pieces."
# Two texts to append to a split in the folder `raw`, and where they come from.
TEXTS = together(
    click.option("--from", "archives", type=input_folder, metavar="DIR", help=FROM),
    argument("raw", Path, "The folder of the texts SPLIT.LANG."),
    LANGUAGES,
    click.argument("texts", type=given, nargs=2, metavar="TEXT TEXT", help=SIDES),
    argument("addresses", given, ADDRESS, "ADDRESS", many=True, required=False),
)

filter = Group(
    "filter",
    help="The steps of scripts/prepare-wmt*.sh.",
    example="chinese-words <train.zh >words.zh",
)


@command("moses-words", "--drop-controls --split-hyphens de <train.de >words.de", group=filter)
@flag("--drop-controls", "Drop control and format characters.")
@flag("--split-hyphens", "Split words at hyphens.")
@argument("language", str, "Its name in Moses.")
def moses_words(language: str, drop_controls: bool, split_hyphens: bool) -> None:
    """Normalise punctuation and tokenise, as sacremoses does, with XML escapes."""
    _filter_lines(partial(_words_of_moses, options=(language, True, drop_controls, split_hyphens)))


def _words_of_moses(_: str, line: str, options: tuple[str, bool, bool, bool]) -> str:
    return moses(*options).words(line)


@command("chinese-words", "<train.zh >words.zh", group=filter)
def chinese_words() -> None:
    """Drop the control characters of Chinese text, and cut it into words by jieba."""
    _filter_lines(cut_chinese)


@command("subwords", "codes <train.en >subwords.en", group=filter)
@argument("codes", input_file, "Merges of subword-nmt, or the model of SentencePiece.")
def cut_into_subwords(codes: Path) -> None:
    """Cut text into subwords by the merges of subword-nmt or a model of SentencePiece."""
    with open(codes, "rb") as file:
        tool = "subword-nmt" if file.read(9) == b"#version:" else "sentencepiece"
    _filter_lines(partial(split_into_subwords, subwords=tool, codes={"": str(codes)}))


@command("bleu-tokenizer", "de", group=filter)
@argument("language", language_code, "The language of the translations.", "LANG")
def print_bleu_tokenizer(language: str) -> None:
    """Print sacreBLEU's tokeniser of a language whose words spaces separate. Others need evaluate.sh."""
    if not has_spaces(language):
        problem = f"no spaces separate the words of {language}, so Moses makes no words of it"
        raise UserError(f"{problem}; take scripts/evaluate.sh")
    bleu(language)
    print(bleu_tokeniser(language))


def _filter_lines(change: Filter) -> None:
    with (
        open(0, encoding="utf-8", newline="\n", closefd=False) as source,
        open(1, "w", encoding="utf-8", newline="\n", closefd=False) as target,
        open(LOG, "ab") as log,
    ):
        filter_stream(change, source, target, log)


@command("learn-subwords", "--bpe subword-nmt --merges 32000 codes train.en train.de", group=filter)
@option("--bpe", click.Choice(TOOLS), "", "The tool; sentencepiece is its unigram model.", required=True)
@option("--merges", positive_int, "N", "Merges of subword-nmt, or pieces of SentencePiece.", required=True)
@argument("codes", Path, "The file to write.")
@argument("texts", input_file, "The training texts.", "TEXT", many=True)
def learn_from_texts(bpe: str, merges: int, codes: Path, texts: Sequence[Path]) -> None:
    """Learn the merges of subword-nmt or a model of SentencePiece from texts."""
    with open(LOG, "ab") as log:
        learn_subwords(texts, codes, bpe, merges, log)


@command("settings", "en de script=mine.sh from= limit=1000 merges=32000 codes= dict=", group=filter)
@LANGUAGES
@argument("settings", given, "An option with its value; without a value it is not given.", "NAME=VALUE", many=True)
def print_settings(languages: tuple[str, str], settings: Sequence[str]) -> None:
    """Refuse files of an earlier run that are none, and print what a prepared folder remembers of the options."""
    pairs = (line.partition("=") for line in settings)
    options = {name: value or None for name, _, value in pairs}
    choices = {**DEFAULTS, **options}
    sides = languages if choices["share"] == "separate" else ("",)
    require_earlier_files(choices, sides, sides)
    _print_record(settings_of_options(options, {"codes": sides, "dict": sides}))


def _print_record(record: Mapping[str, Any]) -> None:
    """Print what a folder remembers as the content of its file, also where the terminal has another encoding."""
    sys.stdout.buffer.write(as_json(record))


@command("training-pairs", "raw en de europarl.en europarl.de https://example.org/europarl.tgz", group=filter)
@option("--limit", click.IntRange(0, MOST), "N", "No more than N pairs in the training text; 0: all.", default=0)
@TEXTS
def training_pairs(
    limit: int,
    archives: Path | None,
    raw: Path,
    languages: tuple[str, str],
    texts: tuple[str, str],
    addresses: Sequence[str],
) -> None:
    """Append the pairs that are not broken and not empty to the training text, and print the counts."""
    folder = RawTexts(raw, languages, partial(local_archive, folder=archives, downloads=DOWNLOADS), limit)
    if not addresses:
        files = [input_file(text) for text in texts]
        folder.note(*files)
        counted = folder.append(*files)
    elif folder.is_full:
        return
    else:
        with folder.members(*addresses, names=texts) as files:
            counted = folder.append(*files)
    if counted:
        print(f"{files[0].name}\t{counted.partition(chr(9))[0]}")


@command("held-out-pairs", "valid raw en de tune.en tune.de https://example.org/dev.tgz", group=filter)
@argument("split", given, "The split to append to.")
@TEXTS
def held_out_pairs(
    split: str,
    archives: Path | None,
    raw: Path,
    languages: tuple[str, str],
    texts: tuple[str, str],
    addresses: Sequence[str],
) -> None:
    """Append the pairs of a validation or test set. A broken pair is an error."""
    folder = RawTexts(raw, languages, partial(local_archive, folder=archives, downloads=DOWNLOADS), limit=0)
    with folder.members(*addresses, names=texts) as files:
        folder.append_held_out(split, files)


@command("similar-pairs", "--max-length 250 --ratio 9 train.en train.de clean.en clean.de", group=filter)
@option("--max-length", positive_int, "N", "The largest number of words of a sentence.  [default: any]")
@option("--ratio", number(0, MOST), "X", "The largest ratio of the numbers of words; 0: any.", default=0)
@option("--instead", input_file, "TEXT TEXT", "Write the lines of two other texts, parallel to these.", nargs=2)
@argument("source", input_file, "The text of the source language.")
@argument("target", input_file, "The parallel text of the other language.")
@click.argument("outputs", type=Path, nargs=2, metavar="OUTPUT OUTPUT", help="The two files to write.")
def similar_pairs(
    max_length: int | None,
    ratio: float,
    instead: tuple[Path, Path] | None,
    source: Path,
    target: Path,
    outputs: tuple[Path, Path],
) -> None:
    """Write the pairs that are not empty, not too long and of similar length."""
    copy_similar_pairs((source, target), outputs, max_length, ratio, instead or ())


@command("offsets", "data/wmt14-en-fr/bin", group=filter)
@argument("folder", input_folder, "The folder with the files .idx and .bin.")
def offsets(folder: Path) -> None:
    """Correct the offsets of binarised text, which fairseq-preprocess --workers writes wrong above 2 GiB (numpy 2)."""
    from fairseq_capsule.data.binarised import recompute_offsets

    recompute_offsets(folder)


@command("known-words", "--up-to 5 data/my/bin bpe/train.en bpe/train.de", group=filter)
@option("--up-to", number(0, 100), "PERCENT", "The largest share that is accepted.", default=MOST_UNKNOWN)
@argument("binarised", input_folder, "The folder of fairseq-preprocess.")
@argument("texts", input_file, "The texts that were binarised.", "TEXT", many=True)
def known_words(up_to: float, binarised: Path, texts: Sequence[Path]) -> None:
    """Refuse binarised data of which much is unknown to its dictionary, and name the characters."""
    require_known(binarised, texts, up_to)


@command("manifest", "--command 'prepare.sh data/my' data/my raw bpe bin", group=filter)
@option("--command", given, "LINE", "The command that prepared it.", required=True)
@argument("folder", Path, "The prepared folder.")
@argument("stages", str, "A file or a folder that was made.", "STAGE", many=True)
def print_manifest(command: str, folder: Path, stages: Sequence[str]) -> None:
    """Print the manifest of a prepared folder."""
    _print_record(manifest_of(folder, stages, command))


@command("warnings", "data/my bpe", group=filter)
@argument("folder", input_folder, "The prepared folder.")
@argument("texts", given, "Its folder with the texts that were binarised.")
def print_warnings(folder: Path, texts: str) -> None:
    """Print what a user should know of a prepared folder, to standard error."""
    for warning in warnings(folder.absolute(), texts):
        print(f"{click.get_current_context().command_path}: warning: {warning}", file=sys.stderr)
