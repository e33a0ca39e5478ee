"""`fairseq-capsule report`: compare evaluated runs on one page."""

from argparse import ArgumentParser, Namespace

from fairseq_capsule_lab.analysis.lengths import EDGES
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.cli.arguments import input_folder, label, output_folder, prepared_data, system_names
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.evaluation.external import external_measures
from fairseq_capsule_lab.files import write_whole
from fairseq_capsule_lab.pages.report import comparison
from fairseq_capsule_lab.pages.report.page import write_page
from fairseq_capsule_lab.pages.report.systems import read_systems

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
    bounds = arguments.whole_numbers(0, arguments.MOST)
    text = "upper bounds of the length groups, in source words, inclusive (default: 10,20,30,40,50)"
    add("--intervals", type=bounds, default=EDGES, metavar="N,N,…", help=text)
    arguments.add_external(parser)
    arguments.add_bootstrap(parser)


def run(args: Namespace) -> None:
    resolved = [path.resolve() for path in args.runs]
    if len(set(resolved)) < len(resolved) or len(resolved) < 2:
        raise LabError("a comparison needs two different runs or more; name another run folder")
    names = system_names(args.names, resolved)
    test_set, systems = read_systems(args.runs, names, args.data, args.split, args.results)
    if len(test_set.sources) > MOST_SENTENCES:
        raise LabError(f"--split {args.split}: more than {MOST_SENTENCES} sentences; evaluate on a smaller test set")
    external = external_measures(args.external, [system.translations for system in systems])
    bootstrap = (args.samples, args.seed)
    scores = comparison.scores(test_set, systems, *bootstrap, external)
    groups = comparison.by_length(test_set, systems, scores[0].measure, *bootstrap, args.intervals)
    sentences = comparison.by_sentence(test_set, systems)
    compared = comparison.ComparedSystems(test_set, systems, scores, groups, sentences, *bootstrap)
    content = write_page(compared)
    args.out.mkdir(parents=True, exist_ok=True)
    write_whole(args.out / "report.html", content)
    print(f"{args.out / 'report.html'}: runs: {len(systems)}; sentences: {len(test_set.sources)}")
