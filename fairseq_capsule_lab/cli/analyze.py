"""`fairseq-capsule analyze`: analyses of translations, and of the models that made them, beyond a score."""

import json
from argparse import Namespace
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capsule_routing.text.files import read_lines
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
    whole_numbers,
)
from fairseq_capsule_lab.cli.commands import Group, argument, command, one_of, option, together
from fairseq_capsule_lab.errors import LabError

if TYPE_CHECKING:
    from fairseq_capsule_lab.analysis.reports import Report
    from fairseq_capsule_lab.evaluation.scores import Measure
    from fairseq_capsule_lab.evaluation.translations import Translations

TRAIN = "More text to learn the alignment from, tokenised as the outputs are: the tokenised training set."
ALIGNMENTS = "The links of each sentence of the split, such as 0-0 1-2: source word-target word, from 0."
SHOW = "Also draw this view of inspect, for a sentence of the split, with the first checkpoint."
TOKENISED = "Whether the text of the data is tokenised. auto: yes, unless it has SentencePiece pieces."
OUTPUTS = together(
    argument("outputs", input_file, "Outputs of fairseq-generate for the same text.", "OUT", many=True), TEXT
)
# The options of every kind.
REPORT = together(
    option("--out", arguments.output_path, "DIR", "Folder for KIND.md, .csv, .png and .svg.", required=True),
    arguments.NAMES,
    arguments.JSON,
)

analyze = Group(
    "analyze",
    help="Write tables and plots of translations, and of the models that made them.",
    example="lengths transformer.out capsule.out --out analysis",
)


@command("lengths", "transformer.out capsule.out --names Transformer Capsules --out analysis", group=analyze)
@OUTPUTS
@arguments.INTERVALS
@option("--longer-than", whole_numbers(0, MOST), "N,N,…", "One group for each N: more than N words.")
@option("--groups", click.IntRange(1, 1000), "N", "N groups of about equal size.")
@option("--lang", arguments.language_code, "LANG", "Language of the translations, for text that is not tokenised.")
@LOWERCASE
@REPORT
def lengths(args: Namespace) -> None:
    """Tokenised BLEU and length ratio by the length of the source."""
    one_of(args, "intervals", "longer_than", "groups")
    from fairseq_capsule_lab.analysis import lengths

    names, outputs = _of_outputs(args)
    counts = lengths.word_counts(outputs[0].sources)
    if args.groups:
        groups = lengths.equal_groups(counts, args.groups)
    elif args.longer_than:
        groups = lengths.longer_than(counts, args.longer_than)
    else:
        groups = lengths.intervals(counts, args.intervals or lengths.EDGES)
    if not groups:
        raise LabError(f"--longer-than: no source has more than {min(args.longer_than)} words")
    _write(args, lengths.length_report(names, _bleu(outputs, args), groups))


def _bleu(outputs: list["Translations"], args: Namespace) -> "Measure":
    """The measure that `score` reports under the same name."""
    from fairseq_capsule_lab.evaluation.scores import measures

    for output in outputs:
        if not output.tokenised and not args.lang:
            raise LabError(f"{output.path}: not tokenised, and its language is unknown; give --lang")
    of_outputs = measures(outputs, [outputs[0].targets], args.lang or "en", args.lowercase)
    return next(measure for measure in of_outputs if measure.name == "tokenised_bleu")


@command("coverage", "transformer.out capsule.out --train train.en train.de --out analysis", group=analyze)
@OUTPUTS
@option("--train", input_file, "SOURCE TARGET", TRAIN, nargs=2)
@option("--runs", click.IntRange(1, 1000), "N", "Number of alignments to average.", default=3)
@REPORT
def coverage(args: Namespace) -> None:
    """CDR, under- and over-translation, from word alignments by eflomal."""
    from fairseq_capsule_lab.analysis.coverage import coverage_report

    names, outputs = _of_outputs(args)
    for output in outputs:
        if not output.tokenised:
            raise LabError(f"{output.path}: words and punctuation are not separated; generate it without --tokenizer")
    source, target = map(read_lines, args.train) if args.train else ([], [])
    if len(source) != len(target):
        raise LabError(f"--train: {args.train[0]} has {len(source)} lines, but {args.train[1]} has {len(target)}")
    _write(args, coverage_report(names, outputs, (source, target), args.runs))


@command("overlap", "gdr.pt --data data/multi30k --out analysis", group=analyze)
@CHECKPOINTS
@split_option("test")
@REPORT
def overlap(args: Namespace) -> None:
    """How many words of their bags PAST and FUTURE predict."""
    from fairseq_capsule_lab.analysis.overlap import overlap_report

    _write(args, overlap_report(*_of_checkpoints(args)))


@command("assignment", "gdr.pt --data data/toy --alignments raw/alignments/test.align --out analysis", group=analyze)
@CHECKPOINTS
@split_option("test")
@option("--alignments", input_file, "FILE", ALIGNMENTS, required=True)
@REPORT
def assignment(args: Namespace) -> None:
    """Which source words PAST and FUTURE hold, compared with word alignments."""
    from fairseq_capsule_lab.analysis.alignment import read_alignments
    from fairseq_capsule_lab.analysis.assignment import assignment_report

    models, links = _of_checkpoints(args), read_alignments(args.alignments)
    _write(args, assignment_report(*models, links))


@command("routing", "capsule.pt gdr.pt --data data/multi30k --out analysis", group=analyze)
@CHECKPOINTS
@split_option("test")
@option("--show", given, "VIEW", SHOW)
@option("--id", click.IntRange(0), "N", "The number of that sentence, as in fairseq-generate.", default=0)
@REPORT
def routing(args: Namespace) -> None:
    """The entropy of what models route and attend to: 0 is a decision, 1 no preference."""
    from fairseq_capsule.hub import load
    from fairseq_capsule_lab.analysis.routing import routing_report
    from fairseq_capsule_lab.pages.inspection import inspect_sources
    from fairseq_capsule_lab.pages.sentences import sentences_of_data

    report = routing_report(*_of_checkpoints(args))
    if args.show is not None:
        hub = load(args.checkpoints[0], args.data)
        (inspection,) = inspect_sources(hub, sentences_of_data(hub, args.split, [args.id]))
        report = replace(report, kind=f"routing-{args.show}", figure=inspection.plot(args.show))
    _write(args, report)


@command("iterations", "gret.pt --data data/multi30k --iterations 1-5 --out analysis", group=analyze)
@CHECKPOINTS
@split_option("valid")
@option("--iterations", whole_numbers(1, 100), "SET", "Numbers of iterations, such as 1-5 or 1,3.", default="1-5")
@option("--option", given, "NAME", "The option that sets them, for a model with several routings.")
@arguments.BEAM
@option("--lenpen", arguments.LENGTH_PENALTY, "X", "Length penalty.", default=1)
@LOWERCASE
@option("--tokenized", click.Choice(["auto", "yes", "no"]), "", TOKENISED, default="auto")
@REPORT
def iterations(args: Namespace) -> None:
    """Translation quality by number of routing iterations at inference."""
    from fairseq_capsule_lab.analysis.iterations import iteration_report
    from fairseq_capsule_lab.evaluation.translations import TOKENISED

    option, tokenised = args.option and args.option.replace("-", "_"), TOKENISED[args.tokenized]
    decoding = {"beam": args.beam, "lenpen": args.lenpen, "lowercase": args.lowercase, "tokenised": tokenised}
    _write(args, iteration_report(*_of_checkpoints(args), args.iterations, option, **decoding))


@command("cases", "transformer.out capsule.out --count 3 --out analysis", group=analyze)
@argument("first", input_file, "An output of fairseq-generate.", "OUT")
@argument("second", input_file, "Another output for the same text.", "OTHER")
@TEXT
@option("--count", positive_int, "N", "Sentences to show in each direction.", default=5)
@LOWERCASE
@REPORT
def cases(args: Namespace) -> None:
    """Sentences that two systems translate most differently by chrF, side by side."""
    from fairseq_capsule_lab.analysis.cases import case_report, compare

    args.outputs = [args.first, args.second]
    names, (first, second) = _of_outputs(args)
    _write(args, case_report(names, compare(first, second, args.lowercase), args.count))


def _of_outputs(args: Namespace) -> tuple[list[str], list["Translations"]]:
    from fairseq_capsule_lab.evaluation.translations import TOKENISED, read_outputs

    outputs = read_outputs(args.outputs, args.remove_bpe, TOKENISED[args.tokenized])
    return arguments.system_names(args.names, args.outputs), outputs


def _of_checkpoints(args: Namespace) -> tuple[list[str], list[Path], Path, str]:
    return arguments.system_names(args.names, args.checkpoints), args.checkpoints, args.data, args.split


def _write(args: Namespace, report: "Report") -> None:
    print(report.markdown)
    paths = report.write(args.out)
    print("wrote " + ", ".join(map(str, paths)))
    if args.json:
        print(json.dumps({"kind": report.kind, "rows": [asdict(row) for row in report.rows]}))
