"""`fairseq-capsule report`: compare evaluated runs on one page."""

from collections.abc import Sequence
from pathlib import Path

from capsule_routing.errors import UserError
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.cli.arguments import given, input_folder, output_path
from fairseq_capsule_lab.cli.commands import argument, command, option
from fairseq_capsule_lab.files import write_whole

RUNS = "Run folders that scripts/evaluate.sh has evaluated. Each is compared with the first."
DATA = "OUT of the prepare script, or its bin. OUT/raw has the references."


@command("report", "runs/transformer runs/capsule --data data/multi30k --out comparison")
@argument("runs", input_folder, RUNS, "RUN", many=True)
@option("--data", arguments.prepared_data, "DATA", DATA, required=True)
@option("--out", output_path, "DIR", "Folder for report.html.", required=True)
@option("--split", given, "NAME", "The evaluated split.", default="test")
@option("--results", given, "NAME", "The --results of evaluate.sh.", default="evaluation")
@arguments.NAMES
@arguments.INTERVALS
@arguments.EXTERNAL
@arguments.BOOTSTRAP
def report(
    runs: Sequence[Path],
    data: Path,
    out: Path,
    split: str,
    results: str,
    names: Sequence[str],
    intervals: list[int] | None,
    external: Sequence[str],
    samples: int,
    seed: int,
) -> None:
    """Compare evaluated runs on one page: scores, lengths, curves, sentences."""
    different = {path.resolve() for path in runs}
    if len(different) < len(runs) or len(different) < 2:
        raise UserError("a comparison needs two different runs or more; name another run folder")
    labels = arguments.system_names(names, runs)
    from fairseq_capsule_lab.evaluation.external import external_measures
    from fairseq_capsule_lab.pages.report import comparison
    from fairseq_capsule_lab.pages.report.page import write_page
    from fairseq_capsule_lab.pages.report.systems import read_systems

    test_set, systems = read_systems(runs, labels, data, split, results)
    further = external_measures(external, [system.translations for system in systems])
    bootstrap = (samples, seed)
    scores = comparison.scores(test_set, systems, *bootstrap, further)
    groups, unit = comparison.by_length(systems, scores[0].measure, *bootstrap, intervals or ())
    sentences = comparison.by_sentence(test_set, systems)
    compared = comparison.ComparedSystems(test_set, systems, scores, groups, unit, sentences, *bootstrap)
    content = write_page(compared)
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "report.html", content)
    print(f"{out / 'report.html'}: runs: {len(systems)}; sentences: {len(test_set.sources)}")
