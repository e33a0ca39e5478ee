"""`fairseq-capsule filter`: the steps of scripts/prepare-wmt*.sh that no other tool does.

A filter of lines reads standard input and writes standard output. It uses all cores, keeps the order of the lines, and
holds only a few blocks of them in memory. A filter of pairs reads two parallel files and writes two.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from capsule_routing.text.preparation import cut_chinese, split_into_subwords
from fairseq_capsule_lab.cli.arguments import MOST, given, input_file, input_folder, number, positive_int
from fairseq_capsule_lab.cli.commands import Group, argument, command, option, together
from fairseq_capsule_lab.corpora import subwords
from fairseq_capsule_lab.corpora.parallel import Filter, filter_stream
from fairseq_capsule_lab.corpora.texts import append_good_pairs, append_training_pairs, copy_similar_pairs
from fairseq_capsule_lab.manifests import manifest_lines

LOG = "/dev/stderr"  # what worker processes print
MODELS = {"sentencepiece": "unigram", "sentencepiece-bpe": "bpe"}
PAIRS = together(
    argument("source", input_file, "Plain, .gz, .sgm or .xml."),
    argument("target", input_file, "The parallel text of the other language."),
    click.argument("outputs", type=Path, nargs=2, metavar="OUTPUT OUTPUT", help="The two files to write."),
)

filter = Group(
    "filter",
    help="The steps of scripts/prepare-wmt*.sh that no other tool does.",
    example="chinese-words <train.zh >words.zh",
)


@command("chinese-words", "<train.zh >words.zh", group=filter)
def chinese_words() -> None:
    """Drop the control characters of Chinese text, and cut it into words by jieba."""
    _filter_lines(cut_chinese)


@command("pieces", "sentencepiece.model <train.en >pieces.en", group=filter)
@argument("model", input_file, "The model of SentencePiece.")
def cut_into_pieces(model: Path) -> None:
    """Cut text into the pieces of a SentencePiece model."""
    _filter_lines(partial(split_into_subwords, subwords="sentencepiece", codes={"": str(model)}))


def _filter_lines(change: Filter) -> None:
    with (
        open(0, encoding="utf-8", newline="\n", closefd=False) as source,
        open(1, "w", encoding="utf-8", newline="\n", closefd=False) as target,
        open(LOG, "ab") as log,
    ):
        filter_stream(change, source, target, log)


@command("learn-pieces", "--kind sentencepiece --size 32000 joint.model train.en train.de", group=filter)
@option("--kind", click.Choice(list(MODELS)), "", "Its unigram model, or its BPE.", required=True)
@option("--size", positive_int, "N", "The largest number of pieces.", required=True)
@argument("model", Path, "The file to write.")
@argument("texts", input_file, "The training texts.", "TEXT", many=True)
def learn_pieces(kind: str, size: int, model: Path, texts: Sequence[Path]) -> None:
    """Learn a SentencePiece model from texts."""
    with open(LOG, "ab") as log:
        subwords.learn_pieces(texts, model, MODELS[kind], size, log)


@command("training-pairs", "europarl.en europarl.de train.en train.de", group=filter)
@option("--limit", click.IntRange(0, MOST), "N", "Append no more than N pairs; 0: all.", default=0)
@PAIRS
def training_pairs(limit: int, source: Path, target: Path, outputs: tuple[Path, Path]) -> None:
    """Append the pairs that are not broken and not empty to two files, and print the counts."""
    _, counted = append_training_pairs((source, target), outputs, limit)
    print(f"{source.name}\t{counted}")


@command("held-out-pairs", "newstest2013-src.en.sgm newstest2013-ref.de.sgm valid.en valid.de", group=filter)
@PAIRS
def held_out_pairs(source: Path, target: Path, outputs: tuple[Path, Path]) -> None:
    """Append the pairs of a validation or test set to two files. A broken pair is an error."""
    append_good_pairs((source, target), outputs)


@command("similar-pairs", "--max-length 250 --ratio 9 train.en train.de clean.en clean.de", group=filter)
@option("--max-length", positive_int, "N", "The largest number of words of a sentence.  [default: any]")
@option("--ratio", number(0, MOST), "X", "The largest ratio of the numbers of words; 0: any.", default=0)
@option("--instead", input_file, "TEXT TEXT", "Write the lines of two other texts, parallel to these.", nargs=2)
@PAIRS
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


@command("manifest", "--command 'prepare.sh data/my' data/my raw bpe bin", group=filter)
@option("--command", given, "LINE", "The command that prepared it.", required=True)
@argument("folder", Path, "The prepared folder.")
@argument("stages", str, "A file or a folder that was made.", "STAGE", many=True)
def print_manifest(command: str, folder: Path, stages: Sequence[str]) -> None:
    """Print the manifest of a prepared folder."""
    for line in manifest_lines(folder, stages, command):
        print(line)
