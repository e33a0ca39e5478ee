"""`fairseq-capsule analyze`: analyses of translations, and of the models that made them, beyond a score."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capsule_routing.errors import UserError
from capsule_routing.text.files import read_lines
from fairseq_capsule_lab import defaults
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.cli.arguments import (
    CHECKPOINTS,
    LOWERCASE,
    MOST,
    TEXT,
    given,
    input_file,
    positive_int,
    split_option,
    system_names,
    text_file,
    whole_numbers,
)
from fairseq_capsule_lab.cli.commands import Group, argument, command, one_of, option, together

if TYPE_CHECKING:
    from fairseq_capsule_lab.analysis.output import Analysis
    from fairseq_capsule_lab.evaluation.scores import Measure
    from fairseq_capsule_lab.evaluation.translations import Translations

TRAIN = "More text to learn the alignment from, tokenised as the outputs are: the tokenised training set."
ALIGN = "Text to align the split with, by eflomal: the tokenised training set."
ALIGNMENTS = "The links of each sentence of the split, such as 0-0 1-2: source word-target word, from 0."
SHOW = "Also draw this view of inspect, for a sentence of the split, with the first checkpoint."
TOKENISED = "Whether the text of the data is tokenised. auto: yes, unless it has SentencePiece pieces."
OUTPUTS = together(
    argument("outputs", input_file, "Outputs of fairseq-generate for the same text.", "OUT", many=True), TEXT
)
# The options of every kind of analysis.
EVERY_KIND = together(
    option("--out", arguments.output_path, "DIR", "Folder for KIND.md, .csv, .png and .svg.", required=True),
    arguments.NAMES,
    arguments.JSON,
)

analyze = Group(
    "analyze",
    help="Write tables and plots of translations, and of the models that made them.",
    example="lengths transformer.out capsule.out --out analysis",
)


@command("lengths", "transformer.out capsule.out --names Transformer --names Capsules --out analysis", group=analyze)
@OUTPUTS
@arguments.INTERVALS
@option("--longer-than", whole_numbers(0, MOST), "N,N,…", "One group for each N: more than N words, or characters.")
@option("--groups", click.IntRange(1, 1000), "N", "N groups of about equal size.")
@option("--lang", arguments.language_code, "LANG", "Language of the translations, for text that is not tokenised.")
@LOWERCASE
@arguments.BLEU_TOKENIZER
@EVERY_KIND
def lengths(
    outputs: Sequence[Path],
    tokenized: str,
    remove_bpe: str | None,
    intervals: list[int] | None,
    longer_than: list[int] | None,
    groups: int | None,
    lang: str | None,
    lowercase: bool,
    bleu_tokenizer: str | None,
    out: Path,
    names: Sequence[str],
) -> dict[str, Any]:
    """Tokenised BLEU and length ratio by the length of the source."""
    one_of({"--intervals": intervals, "--longer-than": longer_than, "--groups": groups})
    from fairseq_capsule_lab.analysis import lengths

    translations = _read(outputs, tokenized, remove_bpe)
    counts, unit = lengths.source_lengths(translations[0].sources)
    if groups:
        of_lengths = lengths.equal_groups(counts, groups)
    elif longer_than:
        of_lengths = lengths.longer_than(counts, longer_than)
        if not of_lengths:
            raise UserError(f"--longer-than: no source has more than {min(longer_than)} {unit}")
    elif intervals:
        of_lengths = lengths.intervals(counts, intervals)
    else:
        of_lengths = lengths.default_groups(counts, unit)
    measure = _bleu(translations, lang, lowercase, bleu_tokenizer)
    return _write(lengths.analyze_lengths(system_names(names, outputs), measure, of_lengths, unit), out)


def _bleu(outputs: list["Translations"], lang: str | None, lowercase: bool, tokeniser: str | None) -> "Measure":
    """The measure that `score` reports under the same name."""
    from capsule_routing.text.languages import has_words
    from fairseq_capsule_lab.evaluation.scores import measures

    for output in outputs:
        if not lang and not (output.tokenised and has_words(output.targets)):
            raise UserError(f"{output.path}: not tokenised, and its language is unknown; give --lang")
    of_outputs = measures(outputs, [outputs[0].targets], lang or "en", lowercase, tokeniser=tokeniser)
    return next(measure for measure in of_outputs if measure.name == "tokenised_bleu")


@command("coverage", "transformer.out capsule.out --train train.en train.de --out analysis", group=analyze)
@OUTPUTS
@option("--train", text_file, "SOURCE TARGET", TRAIN, nargs=2)
@option("--runs", click.IntRange(1, 1000), "N", "Number of alignments to average.", default=3)
@EVERY_KIND
def coverage(
    outputs: Sequence[Path],
    tokenized: str,
    remove_bpe: str | None,
    train: tuple[Path, Path] | None,
    runs: int,
    out: Path,
    names: Sequence[str],
) -> dict[str, Any]:
    """CDR, under- and over-translation, from word alignments by eflomal."""
    from fairseq_capsule_lab.analysis.coverage import analyze_coverage

    labels, translations = system_names(names, outputs), _read(outputs, tokenized, remove_bpe)
    for output in translations:
        if not output.tokenised:
            raise UserError(f"{output.path}: words and punctuation are not separated; generate it without --tokenizer")
    return _write(analyze_coverage(labels, translations, _pairs(train), runs), out)


@command("overlap", "gdr.pt --data data/multi30k --out analysis", group=analyze)
@CHECKPOINTS
@split_option("test")
@EVERY_KIND
def overlap(checkpoints: Sequence[Path], data: Path, split: str, out: Path, names: Sequence[str]) -> dict[str, Any]:
    """How many words of their bags PAST and FUTURE predict."""
    from fairseq_capsule_lab.analysis.overlap import analyze_overlap

    return _write(analyze_overlap(system_names(names, checkpoints), checkpoints, data, split), out)


@command("assignment", "gdr.pt --data data/toy --alignments raw/alignments/test.align --out analysis", group=analyze)
@CHECKPOINTS
@split_option("test")
@option("--alignments", input_file, "FILE", ALIGNMENTS)
@option("--train", text_file, "SOURCE TARGET", ALIGN, nargs=2)
@EVERY_KIND
def assignment(
    checkpoints: Sequence[Path],
    data: Path,
    split: str,
    alignments: Path | None,
    train: tuple[Path, Path] | None,
    out: Path,
    names: Sequence[str],
) -> dict[str, Any]:
    """Which source words PAST and FUTURE hold, compared with word alignments."""
    one_of({"--alignments": alignments, "--train": train}, required=True)
    from fairseq_capsule_lab.analysis.alignment import read_alignments
    from fairseq_capsule_lab.analysis.assignment import align_split, analyze_assignment

    labels = system_names(names, checkpoints)
    links = read_alignments(alignments) if alignments else align_split(checkpoints[0], data, split, _pairs(train))
    return _write(analyze_assignment(labels, checkpoints, data, split, links), out)


def _pairs(train: tuple[Path, Path] | None) -> tuple[list[str], list[str]]:
    """The lines of --train."""
    source, target = map(read_lines, train) if train else ([], [])
    if train and len(source) != len(target):
        raise UserError(f"--train: {train[0]} has {len(source)} lines, but {train[1]} has {len(target)}")
    return source, target


@command("routing", "capsule.pt gdr.pt --data data/multi30k --out analysis", group=analyze)
@CHECKPOINTS
@split_option("test")
@option("--show", given, "VIEW", SHOW)
@option("--id", click.IntRange(0), "N", "The number of that sentence, as in fairseq-generate.", default=0)
@EVERY_KIND
def routing(
    checkpoints: Sequence[Path],
    data: Path,
    split: str,
    show: str | None,
    id: int,
    out: Path,
    names: Sequence[str],
) -> dict[str, Any]:
    """The entropy of what models route and attend to: 0 is a decision, 1 no preference."""
    from fairseq_capsule.hub import load
    from fairseq_capsule_lab.analysis.routing import analyze_routing
    from fairseq_capsule_lab.pages.inspected import inspect_sources
    from fairseq_capsule_lab.pages.sentences import sentences_of_data

    analysis = analyze_routing(system_names(names, checkpoints), checkpoints, data, split)
    if show is not None:
        hub = load(checkpoints[0], data)
        (inspection,) = inspect_sources(hub, sentences_of_data(hub, split, [id]))
        analysis = replace(analysis, kind=f"routing-{show}", figure=inspection.plot(show))
    return _write(analysis, out)


@command("iterations", "gret.pt --data data/multi30k --iterations 1-5 --out analysis", group=analyze)
@CHECKPOINTS
@split_option("valid")
@option("--iterations", whole_numbers(1, 100), "SET", "Numbers of iterations, such as 1-5 or 1,3.", default="1-5")
@option("--option", given, "NAME", "The option that sets them, for a model with several routings.")
@arguments.BEAM
@option("--lenpen", arguments.LENGTH_PENALTY, "X", "Length penalty.", default=defaults.LENGTH_PENALTY)
@LOWERCASE
@arguments.BLEU_TOKENIZER
@option("--tokenized", click.Choice(["auto", "yes", "no"]), "", TOKENISED, default="auto")
@EVERY_KIND
def iterations(
    checkpoints: Sequence[Path],
    data: Path,
    split: str,
    iterations: list[int],
    option: str | None,
    beam: int,
    lenpen: float,
    lowercase: bool,
    bleu_tokenizer: str | None,
    tokenized: str,
    out: Path,
    names: Sequence[str],
) -> dict[str, Any]:
    """Translation quality by number of routing iterations at inference."""
    from fairseq_capsule_lab.analysis.iterations import analyze_iterations
    from fairseq_capsule_lab.evaluation.translations import TOKENISED

    analysis = analyze_iterations(
        system_names(names, checkpoints),
        checkpoints,
        data,
        split,
        numbers=iterations,
        choice=option and option.replace("-", "_"),
        beam=beam,
        lenpen=lenpen,
        lowercase=lowercase,
        tokenised=TOKENISED[tokenized],
        tokeniser=bleu_tokenizer,
    )
    return _write(analysis, out)


@command("cases", "transformer.out capsule.out --count 3 --out analysis", group=analyze)
@argument("first", input_file, "An output of fairseq-generate.", "OUT")
@argument("second", input_file, "Another output for the same text.", "OTHER")
@TEXT
@option("--count", positive_int, "N", "Sentences to show in each direction.", default=5)
@LOWERCASE
@EVERY_KIND
def cases(
    first: Path,
    second: Path,
    tokenized: str,
    remove_bpe: str | None,
    count: int,
    lowercase: bool,
    out: Path,
    names: Sequence[str],
) -> dict[str, Any]:
    """Sentences that two systems translate most differently by chrF, side by side."""
    from fairseq_capsule_lab.analysis.cases import analyze_cases, compare

    labels = system_names(names, [first, second])
    one, other = _read([first, second], tokenized, remove_bpe)
    return _write(analyze_cases(labels, compare(one, other, lowercase), count), out)


def _read(outputs: Sequence[Path], tokenized: str, remove_bpe: str | None) -> list["Translations"]:
    from fairseq_capsule_lab.evaluation.translations import TOKENISED, read_outputs

    return read_outputs(outputs, remove_bpe, TOKENISED[tokenized])


def _write(analysis: "Analysis", out: Path) -> dict[str, Any]:
    print(analysis.markdown)
    paths = analysis.write(out)
    print("wrote " + ", ".join(map(str, paths)))
    return {"kind": analysis.kind, "rows": [asdict(row) for row in analysis.rows]}
