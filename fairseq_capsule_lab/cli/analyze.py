"""`fairseq-capsule analyze`: analyses of translations, and of the models that made them, beyond a score."""

import argparse
import json
from dataclasses import asdict, replace
from typing import List

from fairseq_capsule.data.files import read_lines
from fairseq_capsule.hub import load
from fairseq_capsule.mechanisms.past_future import PAST_FUTURE
from fairseq_capsule.options import MOST_ITERATIONS
from fairseq_capsule_lab.analysis.alignment import read_alignments
from fairseq_capsule_lab.analysis.assignment import assignment_report
from fairseq_capsule_lab.analysis.cases import METRICS, case_report, compare
from fairseq_capsule_lab.analysis.coverage import coverage_report
from fairseq_capsule_lab.analysis.iterations import iteration_options, iteration_report
from fairseq_capsule_lab.analysis.lengths import EDGES, equal_groups, intervals, length_report, longer_than, word_counts
from fairseq_capsule_lab.analysis.overlap import overlap_report
from fairseq_capsule_lab.analysis.reports import Report
from fairseq_capsule_lab.analysis.routing import routing_report
from fairseq_capsule_lab.cli.arguments import (
    MOST,
    add_text,
    beam_size,
    input_file,
    input_folder,
    label,
    language_code,
    language_of,
    number,
    output_folder,
    positive_int,
    system_names,
    whole_number,
    whole_numbers,
)
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.evaluation.scores import Measure, measures
from fairseq_capsule_lab.evaluation.translations import TOKENISED, Outputs, read_outputs, require_own_reference
from fairseq_capsule_lab.pages.inspection import inspect_sources
from fairseq_capsule_lab.pages.sentences import sentences_of_data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)

    lengths = _kind(kinds, "lengths", "BLEU and length ratio by the length of the source", _lengths)
    _outputs(lengths)
    groups = lengths.add_mutually_exclusive_group()
    groups.add_argument(
        "--intervals",
        type=whole_numbers(0, MOST),
        default=EDGES,
        metavar="N,N,…",
        help="upper bounds of the groups, in words, inclusive (default: 10,20,30,40,50)",
    )
    groups.add_argument(
        "--longer-than", type=whole_numbers(0, MOST), metavar="N,N,…", help="one group for each N: more than N words"
    )
    groups.add_argument("--groups", type=whole_number(1, 1000), metavar="N", help="N groups of about equal size")
    lengths.add_argument(
        "--reference",
        type=input_file,
        metavar="REF",
        help="the reference, untokenised: detokenised sacreBLEU (default: tokenised BLEU against the T- lines)",
    )
    lengths.add_argument(
        "--other-reference",
        action="store_true",
        help="accept a REF that is another text than the T- lines of OUT",
    )
    lengths.add_argument(
        "--lang",
        type=language_code,
        help="language of the translations, for Moses; required if they are not tokenised (default: the suffix of REF)",
    )
    lengths.add_argument("--lowercase", action="store_true", help="ignore case")

    coverage = _kind(kinds, "coverage", "CDR, under- and over-translation, from word alignments by eflomal", _coverage)
    _outputs(coverage)
    coverage.add_argument(
        "--train",
        nargs=2,
        type=input_file,
        metavar=("SOURCE", "TARGET"),
        help="more text to learn the alignment from, tokenised as the outputs are: the tokenised training set",
    )
    coverage.add_argument(
        "--runs", type=whole_number(1, 1000), default=3, help="number of alignments to average (default: %(default)s)"
    )

    overlap = _kind(kinds, "overlap", "how many words of their bags PAST and FUTURE predict", _overlap)
    _checkpoints(overlap, split="test")

    assignment = _kind(
        kinds, "assignment", "which source words PAST and FUTURE hold, compared with word alignments", _assignment
    )
    _checkpoints(assignment, split="test")
    assignment.add_argument(
        "--alignments",
        type=input_file,
        required=True,
        metavar="FILE",
        help="the links of each sentence of the split, such as 0-0 1-2: source word-target word, from 0",
    )
    assignment.add_argument(
        "--iterations", type=whole_number(1, MOST_ITERATIONS), metavar="N", help="routing iterations (as in training)"
    )

    routing = _kind(kinds, "routing", "how decided the routing and the attention of models are", _routing)
    _checkpoints(routing, split="test")
    text = "also draw this view of inspect, for a sentence of the split, with the first checkpoint"
    routing.add_argument("--show", type=label, metavar="VIEW", help=text)
    text = "the number of that sentence, as in fairseq-generate (default: %(default)s)"
    routing.add_argument("--id", type=whole_number(0, MOST), default=0, metavar="N", help=text)

    iterations = _kind(
        kinds, "iterations", "translation quality by number of routing iterations at inference", _iterations
    )
    _checkpoints(iterations, split="valid")
    iterations.add_argument(
        "--iterations",
        type=whole_numbers(1, MOST_ITERATIONS),
        default=[1, 2, 3, 4, 5],
        metavar="SET",
        help="numbers of iterations, such as 1-5 (the default) or 1,3",
    )
    iterations.add_argument(
        "--option",
        choices=[name.replace("_", "-") for name in iteration_options()],
        help="the option that sets them, for a model with several routings",
    )
    iterations.add_argument("--beam", type=beam_size, default=5, help="beam size (default: %(default)s)")
    iterations.add_argument(
        "--lenpen", type=number(-100, 100), default=1.0, help="length penalty (default: %(default)s)"
    )
    iterations.add_argument("--lowercase", action="store_true", help="ignore case")
    iterations.add_argument(
        "--tokenized",
        choices=TOKENISED,
        default="auto",
        help="whether the text of the data is tokenised; auto (the default): yes, unless it has SentencePiece pieces",
    )

    cases = _kind(kinds, "cases", "sentences that two systems translate most differently, side by side", _cases)
    cases.add_argument("first", type=input_file, metavar="OUT", help="an output of fairseq-generate")
    cases.add_argument("second", type=input_file, metavar="OTHER", help="another output for the same text")
    add_text(cases)
    cases.add_argument(
        "--count", type=positive_int, default=5, help="sentences to show in each direction (default: %(default)s)"
    )
    cases.add_argument(
        "--metric", choices=METRICS, default="chrf", help="score of each sentence (default: %(default)s)"
    )
    cases.add_argument("--lowercase", action="store_true", help="ignore case")


def run(args: argparse.Namespace) -> None:
    report = args.analyse(args)
    paths = report.write(args.out)
    print(report.markdown)
    print("wrote " + ", ".join(map(str, paths)))
    if args.json:
        print(json.dumps({"kind": report.kind, "rows": [asdict(row) for row in report.rows]}))


def _lengths(args: argparse.Namespace) -> Report:
    outputs = read_outputs(args.outputs, args.remove_bpe, TOKENISED[args.tokenized])
    lengths = word_counts(outputs[0].sources)
    if args.groups:
        groups = equal_groups(lengths, args.groups)
    elif args.longer_than:
        groups = longer_than(lengths, args.longer_than)
    else:
        groups = intervals(lengths, args.intervals)
    if not groups:
        raise LabError(f"--longer-than: no source has more than {min(args.longer_than)} words")
    return length_report(system_names(args.names, args.outputs), outputs[0].sources, _bleu(outputs, args), groups)


def _bleu(outputs: List[Outputs], args: argparse.Namespace) -> Measure:
    """The measure that `score` reports under the same name."""
    if not args.reference:
        if args.other_reference:
            raise LabError("--other-reference: there is no --reference; give one, or omit the option")
        untokenised = next((output.path for output in outputs if not output.tokenised), None)
        if untokenised and not args.lang:
            raise LabError(f"{untokenised}: not tokenised, and its language is unknown; give --lang, or --reference")
    name, reference = "tokenised_bleu", outputs[0].targets
    if args.reference:
        name, reference = "detokenised_bleu", read_lines(args.reference)
        if len(reference) != len(outputs[0].sentences):
            raise LabError(
                f"{args.reference}: {len(reference)} sentences, but {outputs[0].path} has {len(outputs[0].sentences)}"
            )
        if not args.other_reference:
            require_own_reference(outputs, [(args.reference, reference)])
    language = args.lang or (language_of(args.reference) if args.reference else "en")
    return next(m for m in measures(outputs, [reference], language, args.lowercase) if m.name == name)


def _coverage(args: argparse.Namespace) -> Report:
    outputs = read_outputs(args.outputs, args.remove_bpe, TOKENISED[args.tokenized])
    for output in outputs:
        if not output.tokenised:
            raise LabError(f"{output.path}: words and punctuation are not separated; generate it without --tokenizer")
    source, target = map(read_lines, args.train) if args.train else ([], [])
    if len(source) != len(target):
        raise LabError(f"--train: {args.train[0]} has {len(source)} lines, but {args.train[1]} has {len(target)}")
    return coverage_report(system_names(args.names, args.outputs), outputs, (source, target), args.runs)


def _overlap(args: argparse.Namespace) -> Report:
    return overlap_report(system_names(args.names, args.checkpoints, parts=2), args.checkpoints, args.data, args.split)


def _assignment(args: argparse.Namespace) -> Report:
    return assignment_report(
        system_names(args.names, args.checkpoints, parts=2),
        args.checkpoints,
        args.data,
        args.split,
        read_alignments(args.alignments),
        {PAST_FUTURE.iterations: args.iterations} if args.iterations else None,
    )


def _routing(args: argparse.Namespace) -> Report:
    names = system_names(args.names, args.checkpoints, parts=2)
    report = routing_report(names, args.checkpoints, args.data, args.split)
    if args.show is None:
        return report
    hub = load(args.checkpoints[0], args.data)
    (inspection,) = inspect_sources(hub, sentences_of_data(hub, args.split, [args.id]))
    return replace(report, kind=f"routing-{args.show}", figure=inspection.plot(args.show))


def _iterations(args: argparse.Namespace) -> Report:
    return iteration_report(
        system_names(args.names, args.checkpoints, parts=2),
        args.checkpoints,
        args.data,
        args.split,
        args.iterations,
        args.option and args.option.replace("-", "_"),
        beam=args.beam,
        lenpen=args.lenpen,
        lowercase=args.lowercase,
        tokenised=TOKENISED[args.tokenized],
    )


def _cases(args: argparse.Namespace) -> Report:
    paths = [args.first, args.second]
    of_first, of_second = system_names(args.names, paths)
    first, second = read_outputs(paths, args.remove_bpe, TOKENISED[args.tokenized])
    return case_report(
        (of_first, of_second), compare(first, second, args.metric, args.lowercase), args.metric, args.count
    )


def _kind(kinds, name: str, summary: str, analyse) -> argparse.ArgumentParser:
    parser = kinds.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    parser.set_defaults(analyse=analyse)
    parser.add_argument(
        "--out", type=output_folder, required=True, metavar="DIR", help=f"folder for {name}.md, .csv, .png and .svg"
    )
    parser.add_argument(
        "--names", nargs="+", type=label, metavar="NAME", help="names of the systems (default: the file names)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    return parser


def _outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "outputs", nargs="+", type=input_file, metavar="OUT", help="outputs of fairseq-generate for the same text"
    )
    add_text(parser)


def _checkpoints(parser: argparse.ArgumentParser, split: str) -> None:
    parser.add_argument("checkpoints", nargs="+", type=input_file, metavar="CHECKPOINT", help="trained models")
    parser.add_argument("--data", type=input_folder, required=True, help="the binarised data")
    parser.add_argument("--split", type=label, default=split, help="the split of the data (default: %(default)s)")
