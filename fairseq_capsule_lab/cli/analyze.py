"""`fairseq-capsule analyze`: analyses of translations, and of the models that made them, beyond a score."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Dict, List, Tuple

from capsule_routing.text.files import read_lines
from fairseq_capsule.hub import load
from fairseq_capsule.options import MOST_ITERATIONS
from fairseq_capsule_lab.analysis import assignment, cases, coverage, iterations, lengths, overlap, routing
from fairseq_capsule_lab.analysis.alignment import read_alignments
from fairseq_capsule_lab.analysis.reports import Report
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.cli.arguments import input_file, whole_number, whole_numbers
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.evaluation.scores import Measure, measures
from fairseq_capsule_lab.evaluation.translations import TOKENISED, Translations, read_outputs, require_own_reference
from fairseq_capsule_lab.pages.inspection import inspect_sources
from fairseq_capsule_lab.pages.sentences import sentences_of_data


def add_arguments(parser: ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)

    def add(name: str, summary: str, analyse: Callable[[Namespace], Report]) -> ArgumentParser:
        kind = kinds.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        kind.set_defaults(analyse=analyse)
        text = f"folder for {name}.md, .csv, .png and .svg"
        kind.add_argument("--out", type=arguments.output_folder, required=True, metavar="DIR", help=text)
        text = "names of the systems (default: the file names)"
        kind.add_argument("--names", nargs="+", type=arguments.label, metavar="NAME", help=text)
        arguments.add_json(kind)
        return kind

    _add_lengths(add("lengths", "BLEU and length ratio by the length of the source", _lengths))
    summary = "CDR, under- and over-translation, from word alignments by eflomal"
    _add_coverage(add("coverage", summary, _coverage))
    summary = "how many words of their bags PAST and FUTURE predict"
    overlaps = add("overlap", summary, lambda args: overlap.overlap_report(*_of_checkpoints(args)))
    arguments.add_checkpoints(overlaps, split="test")
    summary = "which source words PAST and FUTURE hold, compared with word alignments"
    _add_assignment(add("assignment", summary, _assignment))
    _add_routing(add("routing", "how decided the routing and the attention of models are", _routing))
    summary = "translation quality by number of routing iterations at inference"
    _add_iterations(add("iterations", summary, _iterations))
    _add_cases(add("cases", "sentences that two systems translate most differently, side by side", _cases))


def run(args: Namespace) -> Dict[str, Any]:
    report = args.analyse(args)
    paths = report.write(args.out)
    print(report.markdown)
    print("wrote " + ", ".join(map(str, paths)))
    return {"kind": report.kind, "rows": [asdict(row) for row in report.rows]}


def _add_outputs(parser: ArgumentParser) -> None:
    text = "outputs of fairseq-generate for the same text"
    parser.add_argument("outputs", nargs="+", type=input_file, metavar="OUT", help=text)
    arguments.add_text(parser)


def _of_outputs(args: Namespace) -> Tuple[List[str], List[Translations]]:
    outputs = read_outputs(args.outputs, args.remove_bpe, TOKENISED[args.tokenized])
    return arguments.system_names(args.names, args.outputs), outputs


def _of_checkpoints(args: Namespace) -> Tuple[List[str], List[Path], Path, str]:
    return arguments.system_names(args.names, args.checkpoints, parts=2), args.checkpoints, args.data, args.split


def _add_lengths(parser: ArgumentParser) -> None:
    _add_outputs(parser)
    groups = parser.add_mutually_exclusive_group()
    bounds = whole_numbers(0, arguments.MOST)
    text = "upper bounds of the groups, in words, inclusive (default: 10,20,30,40,50)"
    groups.add_argument("--intervals", type=bounds, default=lengths.EDGES, metavar="N,N,…", help=text)
    text = "one group for each N: more than N words"
    groups.add_argument("--longer-than", type=bounds, metavar="N,N,…", help=text)
    groups.add_argument("--groups", type=whole_number(1, 1000), metavar="N", help="N groups of about equal size")
    text = "the reference, untokenised: detokenised sacreBLEU (default: tokenised BLEU against the T- lines)"
    parser.add_argument("--reference", type=input_file, metavar="REF", help=text)
    text = "accept a REF that is another text than the T- lines of OUT"
    parser.add_argument("--other-reference", action="store_true", help=text)
    text = "language of the translations, for Moses; required if they are not tokenised (default: the suffix of REF)"
    parser.add_argument("--lang", type=arguments.language_code, help=text)
    parser.add_argument("--lowercase", action="store_true", help="ignore case")


def _lengths(args: Namespace) -> Report:
    names, outputs = _of_outputs(args)
    counts = lengths.word_counts(outputs[0].sources)
    if args.groups:
        groups = lengths.equal_groups(counts, args.groups)
    elif args.longer_than:
        groups = lengths.longer_than(counts, args.longer_than)
    else:
        groups = lengths.intervals(counts, args.intervals)
    if not groups:
        raise LabError(f"--longer-than: no source has more than {min(args.longer_than)} words")
    return lengths.length_report(names, _bleu(outputs, args), groups)


def _bleu(outputs: List[Translations], args: Namespace) -> Measure:
    """The measure that `score` reports under the same name."""
    name, reference = "tokenised_bleu", outputs[0].targets
    if args.reference:
        name, reference = "detokenised_bleu", read_lines(args.reference)
        if len(reference) != len(outputs[0].sentences):
            raise LabError(
                f"{args.reference}: {len(reference)} sentences, but {outputs[0].path} has {len(outputs[0].sentences)}"
            )
        if not args.other_reference:
            require_own_reference(outputs, [(args.reference, reference)])
    elif args.other_reference:
        raise LabError("--other-reference: there is no --reference; give one, or omit the option")
    elif not args.lang:
        for output in (output for output in outputs if not output.tokenised):
            raise LabError(f"{output.path}: not tokenised, and its language is unknown; give --lang, or --reference")
    language = args.lang or (arguments.language_of(args.reference) if args.reference else "en")
    return next(m for m in measures(outputs, [reference], language, args.lowercase) if m.name == name)


def _add_coverage(parser: ArgumentParser) -> None:
    _add_outputs(parser)
    text = "more text to learn the alignment from, tokenised as the outputs are: the tokenised training set"
    parser.add_argument("--train", nargs=2, type=input_file, metavar=("SOURCE", "TARGET"), help=text)
    text = "number of alignments to average (default: %(default)s)"
    parser.add_argument("--runs", type=whole_number(1, 1000), default=3, help=text)


def _coverage(args: Namespace) -> Report:
    names, outputs = _of_outputs(args)
    for output in outputs:
        if not output.tokenised:
            raise LabError(f"{output.path}: words and punctuation are not separated; generate it without --tokenizer")
    source, target = map(read_lines, args.train) if args.train else ([], [])
    if len(source) != len(target):
        raise LabError(f"--train: {args.train[0]} has {len(source)} lines, but {args.train[1]} has {len(target)}")
    return coverage.coverage_report(names, outputs, (source, target), args.runs)


def _add_assignment(parser: ArgumentParser) -> None:
    arguments.add_checkpoints(parser, split="test")
    text = "the links of each sentence of the split, such as 0-0 1-2: source word-target word, from 0"
    parser.add_argument("--alignments", type=input_file, required=True, metavar="FILE", help=text)
    text = "routing iterations (as in training)"
    parser.add_argument("--iterations", type=whole_number(1, MOST_ITERATIONS), metavar="N", help=text)


def _assignment(args: Namespace) -> Report:
    models, links = _of_checkpoints(args), read_alignments(args.alignments)
    return assignment.assignment_report(*models, links, args.iterations)


def _add_routing(parser: ArgumentParser) -> None:
    arguments.add_checkpoints(parser, split="test")
    text = "also draw this view of inspect, for a sentence of the split, with the first checkpoint"
    parser.add_argument("--show", type=arguments.label, metavar="VIEW", help=text)
    text = "the number of that sentence, as in fairseq-generate (default: %(default)s)"
    parser.add_argument("--id", type=whole_number(0, arguments.MOST), default=0, metavar="N", help=text)


def _routing(args: Namespace) -> Report:
    report = routing.routing_report(*_of_checkpoints(args))
    if args.show is None:
        return report
    hub = load(args.checkpoints[0], args.data)
    (inspection,) = inspect_sources(hub, sentences_of_data(hub, args.split, [args.id]))
    return replace(report, kind=f"routing-{args.show}", figure=inspection.plot(args.show))


def _add_iterations(parser: ArgumentParser) -> None:
    arguments.add_checkpoints(parser, split="valid")
    numbers = whole_numbers(1, MOST_ITERATIONS)
    text = "numbers of iterations, such as 1-5 (the default) or 1,3"
    parser.add_argument("--iterations", type=numbers, default=[1, 2, 3, 4, 5], metavar="SET", help=text)
    options = [name.replace("_", "-") for name in iterations.iteration_options()]
    text = "the option that sets them, for a model with several routings"
    parser.add_argument("--option", choices=options, help=text)
    parser.add_argument("--beam", type=arguments.beam_size, default=5, help="beam size (default: %(default)s)")
    text = "length penalty (default: %(default)s)"
    parser.add_argument("--lenpen", type=arguments.number(-100, 100), default=1.0, help=text)
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    text = "whether the text of the data is tokenised; auto (the default): yes, unless it has SentencePiece pieces"
    parser.add_argument("--tokenized", choices=TOKENISED, default="auto", help=text)


def _iterations(args: Namespace) -> Report:
    option, tokenised = args.option and args.option.replace("-", "_"), TOKENISED[args.tokenized]
    decoding = {"beam": args.beam, "lenpen": args.lenpen, "lowercase": args.lowercase, "tokenised": tokenised}
    return iterations.iteration_report(*_of_checkpoints(args), args.iterations, option, **decoding)


def _add_cases(parser: ArgumentParser) -> None:
    parser.add_argument("first", type=input_file, metavar="OUT", help="an output of fairseq-generate")
    parser.add_argument("second", type=input_file, metavar="OTHER", help="another output for the same text")
    arguments.add_text(parser)
    text = "sentences to show in each direction (default: %(default)s)"
    parser.add_argument("--count", type=arguments.positive_int, default=5, help=text)
    text = "score of each sentence (default: %(default)s)"
    parser.add_argument("--metric", choices=cases.METRICS, default="chrf", help=text)
    parser.add_argument("--lowercase", action="store_true", help="ignore case")


def _cases(args: Namespace) -> Report:
    args.outputs = [args.first, args.second]
    names, (first, second) = _of_outputs(args)
    return cases.case_report(names, cases.compare(first, second, args.metric, args.lowercase), args.metric, args.count)
