"""`fairseq-capsule report`: compare evaluated runs on one page."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Dict, List

from fairseq_capsule.data.files import read_lines
from fairseq_capsule_lab.analysis.coverage import CoverageRow, coverage_report
from fairseq_capsule_lab.analysis.lengths import EDGES
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.cli.arguments import input_folder, label, output_folder, system_names
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.evaluation.external import external_measures
from fairseq_capsule_lab.evaluation.translations import read_outputs
from fairseq_capsule_lab.files import write_whole
from fairseq_capsule_lab.pages.report.comparison import by_length, by_sentence, scores
from fairseq_capsule_lab.pages.report.page import write_page
from fairseq_capsule_lab.pages.report.systems import System, TestSet, read_systems

MOST_SENTENCES = 20_000  # a browser still sorts them without delay


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="+",
        type=input_folder,
        metavar="RUN",
        help="run folders that scripts/evaluate.sh has evaluated; each is compared with the first",
    )
    parser.add_argument(
        "--data", type=input_folder, required=True, help="the prepared data folder; its raw/ has the references"
    )
    parser.add_argument("--out", type=output_folder, required=True, metavar="DIR", help="folder for report.html")
    parser.add_argument("--split", type=label, default="test", help="the evaluated split (default: %(default)s)")
    parser.add_argument(
        "--results", type=label, default="evaluation", help="the --results of evaluate.sh (default: %(default)s)"
    )
    parser.add_argument(
        "--names", nargs="+", type=label, metavar="NAME", help="names of the runs (default: the folder names)"
    )
    parser.add_argument(
        "--pages",
        action="append",
        default=[],
        type=label,
        metavar="NAME=DIR",
        help="link a run's sentences to its pages of fairseq-capsule inspect --ids; may be repeated",
    )
    parser.add_argument(
        "--intervals",
        type=arguments.whole_numbers(0, arguments.MOST),
        default=EDGES,
        metavar="N,N,…",
        help="upper bounds of the length groups, in source words, inclusive (default: 10,20,30,40,50)",
    )
    arguments.add_external(parser)
    arguments.add_bootstrap(parser)
    parser.add_argument(
        "--coverage",
        type=arguments.whole_number(1, 1000),
        metavar="N",
        help="also report coverage, averaged over N word alignments by eflomal; minutes with a large training set",
    )


def run(args: Namespace) -> None:
    resolved = [path.resolve() for path in args.runs]
    if len(set(resolved)) < len(resolved) or len(resolved) < 2:
        raise LabError("a comparison needs two different runs or more; name another run folder")
    names, pages = system_names(args.names, resolved), _pages(args)
    unknown = sorted(pages.keys() - set(names))
    if unknown:
        raise LabError(f"--pages {unknown[0]}=…: no run has that name; choose one of {', '.join(names)}")
    test_set, systems = read_systems(args.runs, names, args.data, args.split, args.results, pages)
    if len(test_set.sources) > MOST_SENTENCES:
        raise LabError(f"--split {args.split}: more than {MOST_SENTENCES} sentences; evaluate on a smaller test set")
    external = external_measures(args.external, [system.translations for system in systems])
    coverage = _coverage(args, test_set, systems) if args.coverage else None
    comparisons = scores(test_set, systems, args.samples, args.seed, external)
    groups = by_length(test_set, systems[0].sources, comparisons[0].measure, args.samples, args.seed, args.intervals)
    content = write_page(
        test_set,
        systems,
        comparisons,
        groups,
        by_sentence(test_set, systems),
        coverage,
        alignments=args.coverage or 0,
        samples=args.samples,
        seed=args.seed,
        folder=args.out,
    )
    args.out.mkdir(parents=True, exist_ok=True)
    write_whole(args.out / "report.html", content)
    print(f"{args.out / 'report.html'}: runs: {len(systems)}; sentences: {len(test_set.sources)}")


def _pages(args: Namespace) -> Dict[str, Path]:
    """The folder of --pages for each run's name."""
    pages = {}
    for text in args.pages:
        name, equals, folder = text.partition("=")
        if not equals:
            raise LabError(f"--pages {text[:40]!r}: not NAME=DIR; give the name of a run and the folder of its pages")
        pages[name] = input_folder(folder)
    return pages


def _coverage(args: Namespace, test_set: TestSet, systems: List[System]) -> List[CoverageRow]:
    outputs = read_outputs([system.translations.path for system in systems])
    for output in outputs:
        if not output.tokenised:
            raise LabError(
                f"--coverage: words and punctuation of {output.path} are not separated; leave it out, or train on "
                "tokenised data"
            )
    texts = [args.data / "tokenised" / f"train.{name}" for name in (test_set.source_language, test_set.language)]
    # More text gives a better alignment, but a data folder may lack it.
    source, target = map(read_lines, texts) if all(text.is_file() for text in texts) else ([], [])
    return list(coverage_report([system.name for system in systems], outputs, (source, target), args.coverage).rows)
