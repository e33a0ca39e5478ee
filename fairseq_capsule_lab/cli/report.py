"""`fairseq-capsule report`: compare evaluated runs on one page."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Dict, List

from capsule_routing.text.files import read_lines
from fairseq_capsule_lab.analysis.coverage import CoverageRow, coverage_report
from fairseq_capsule_lab.analysis.lengths import EDGES
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.cli.arguments import input_folder, label, output_folder, prepared_data, system_names
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.evaluation.external import external_measures
from fairseq_capsule_lab.evaluation.translations import read_outputs
from fairseq_capsule_lab.files import write_whole
from fairseq_capsule_lab.pages.report import comparison
from fairseq_capsule_lab.pages.report.page import write_page
from fairseq_capsule_lab.pages.report.systems import System, TestSet, read_systems

MOST_SENTENCES = 20_000  # a browser still sorts them without delay


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    text = "run folders that scripts/evaluate.sh has evaluated; each is compared with the first"
    add("runs", nargs="+", type=input_folder, metavar="RUN", help=text)
    text = "OUT of the prepare script, or its bin: OUT/raw has the references"
    add("--data", type=prepared_data, required=True, help=text)
    add("--out", type=output_folder, required=True, metavar="DIR", help="folder for report.html")
    add("--split", type=label, default="test", help="the evaluated split (default: %(default)s)")
    add("--results", type=label, default="evaluation", help="the --results of evaluate.sh (default: %(default)s)")
    add("--names", nargs="+", type=label, metavar="NAME", help="names of the runs (default: the folder names)")
    text = "link a run's sentences to its pages of fairseq-capsule inspect --ids; may be repeated"
    add("--pages", action="append", default=[], type=label, metavar="NAME=DIR", help=text)
    bounds = arguments.whole_numbers(0, arguments.MOST)
    text = "upper bounds of the length groups, in source words, inclusive (default: 10,20,30,40,50)"
    add("--intervals", type=bounds, default=EDGES, metavar="N,N,…", help=text)
    arguments.add_external(parser)
    arguments.add_bootstrap(parser)
    text = "also report coverage, averaged over N word alignments by eflomal; minutes with a large training set"
    add("--coverage", type=arguments.whole_number(1, 1000), metavar="N", help=text)


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
    coverage = _coverage(args, test_set, systems) if args.coverage else []
    bootstrap = (args.samples, args.seed)
    scores = comparison.scores(test_set, systems, *bootstrap, external)
    groups = comparison.by_length(test_set, systems, scores[0].measure, *bootstrap, args.intervals)
    sentences = comparison.by_sentence(test_set, systems)
    compared = comparison.ComparedSystems(
        test_set, systems, scores, groups, sentences, coverage, args.coverage or 0, *bootstrap
    )
    content = write_page(compared, args.out)
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
            problem = f"words and punctuation of {output.path} are not separated"
            raise LabError(f"--coverage: {problem}; leave it out, or train on tokenised data")
    texts = [args.data / "tokenised" / f"train.{name}" for name in (test_set.source_language, test_set.language)]
    # More text gives a better alignment, but a data folder may lack it.
    source, target = map(read_lines, texts) if all(text.is_file() for text in texts) else ([], [])
    return list(coverage_report([system.name for system in systems], outputs, (source, target), args.coverage).rows)
