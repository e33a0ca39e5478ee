"""`scripts/reproduce.sh`: run the missing steps of a paper's table, and print our figures beside the paper's."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capsule_routing.errors import UserError
from experiments.tables import definitions
from experiments.tables.definitions import REPOSITORY
from experiments.tables.scales import SCALES, Scale, load_scale
from fairseq_capsule_lab import processes
from fairseq_capsule_lab.cli.arguments import (
    MOST_SEED,
    USER_DIR,
    given,
    input_file,
    output_path,
    positive_int,
    whole_numbers,
)
from fairseq_capsule_lab.cli.commands import command, flag, one_of, option, run_command
from fairseq_capsule_lab.stages import Folder

if TYPE_CHECKING:
    from experiments.tables.jobs import Step
    from experiments.tables.steps import Work

NAME = "reproduce.sh"
MAX_TOKENS = (
    "Tokens that a GPU takes at once, at most; the paper's batch stays.  [default: the paper's, of smaller GPUs]"
)
CORES = 8  # of a training on a cluster, unless its profile says otherwise
H100 = "by the speeds of docs/speed.md, with --precision bf16 --max-tokens 32768; without these options it takes longer"
SEEDS = whole_numbers(1, MOST_SEED)
BASELINE = (
    "Use it in place of the Transformer that rows start from or learn from. Prepare the data with its codes and "
    "dictionary."
)


@command(NAME, "duan-table2 --scale small --seeds 1-3")
@click.argument("table", type=given, required=False, help="Such as duan-table2, or a YAML file.  [default: list all]")
@option("--scale", given, "SCALE", f"The size of models and trainings: {', '.join(SCALES)}.", default="paper")
@option("--runs", output_path, "DIR", "Folder of all runs.", default="runs")
@option("--data", output_path, "DIR", "Folder of prepared corpora.", default="data")
@option("--seeds", SEEDS, "N,N,…", "Seeds of the trainings: 1,2,3 or 1-3.", default="1")
@option("--rows", given, "ROW", "Only this row. May be repeated.  [default: all]", multiple=True)
@option("--baseline", input_file, "CHECKPOINT", BASELINE)
@option(
    "--launcher", given, "local|slurm|PROFILE", "This machine, or the folder of a Snakemake profile.", default="local"
)
@option("--cores", positive_int, "N", "Cores of this machine.  [default: all]")
@option("--precision", click.Choice(["fp16", "bf16"]), "fp16|bf16", "Of trainings on GPUs.  [default: float32]")
@option("--max-tokens", positive_int, "N", MAX_TOKENS)
@USER_DIR
@flag("--dry-run", "Print every command with its GPUs, memory and limit of minutes, and their cost; run nothing.")
@click.option("--print", "only_print", is_flag=True, help="Print the table from its results so far, and run nothing.")
@flag("--figure", "Also draw the table, if its definition says how.")
@flag("--curves", "Also write the learning curves of its rows, with bands over seeds.")
@option("--out", output_path, "DIR", "Folder for the table's files.  [default: RUNS/SCALE/tables]")
def reproduce(
    table: str | None,
    scale: str,
    runs: Path,
    data: Path,
    seeds: list[int],
    rows: Sequence[str],
    baseline: Path | None,
    launcher: str,
    cores: int | None,
    precision: str | None,
    max_tokens: int | None,
    dry_run: bool,
    only_print: bool,
    figure: bool,
    curves: bool,
    out: Path | None,
) -> None:
    """Run the missing steps of a paper's table, then print the table. The same command resumes an interrupted run."""
    if table is None:
        _list_tables()
        return
    one_of({"--print": only_print or None, "--dry-run": dry_run or None})
    if only_print:
        _refuse_options_of_steps()
    definition = definitions.load_table(table)
    if figure and not definition.figure:
        raise UserError(f"--figure: the definition of {definition.name} does not say what to draw; omit the option")
    sizes = load_scale(scale)
    failed = False
    if not only_print:
        import torch

        from experiments.tables import jobs
        from experiments.tables.runs import Workspace
        from experiments.tables.steps import work_of

        user_dir = click.get_current_context().meta.get("user_dir")
        plugin = Path(os.path.abspath(user_dir)) if user_dir else None
        profile = None if launcher == "local" else jobs.cluster_profile(launcher)
        here = REPOSITORY if table in definitions.table_names() else Path.cwd()
        workspace = Workspace(runs.absolute(), data.absolute(), here, plugin)
        gpus = None if profile else torch.cuda.device_count()
        threads = cores or (CORES if profile else processes.cores())
        training = (precision or "", max_tokens or 0)
        work = work_of(definition, sizes, workspace, seeds, rows, baseline, gpus, threads, *training)
        work.refuse_wrong_plugins()
        if dry_run:
            if gpus == 0 and any(training):
                print("# this machine has no GPU: commands for its CPUs, without --precision and --max-tokens")
            _print_steps(jobs.missing(work.steps(), work.cells, workspace.runs))
            return
        work.refuse_missing_corpora()
        failed = _run(work, runs, baseline, profile, runs.absolute() / scale / f"tables/{definition.name}.steps.json")
    _show(definition, sizes, runs.resolve(), figure, curves, out)
    if failed:
        raise UserError("some steps failed: see the notes under the table, and the logs in the folder of each run")


def _list_tables() -> None:
    if click.get_current_context().meta["words"]:  # options of a table
        raise click.UsageError("Missing argument 'TABLE'.")
    for name in definitions.table_names():
        print(f"{name:16} {definitions.load_table(name).title}")


def _refuse_options_of_steps() -> None:
    """Raise a UsageError if the command line has an option that only running the steps reads."""
    source = click.get_current_context().get_parameter_source
    for name in ("rows", "seeds", "baseline", "launcher", "cores", "precision", "max_tokens"):
        if source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')}: --print prints all results so far; leave it out")


def _print_steps(steps: Sequence["Step"]) -> None:
    from experiments.tables.jobs import total

    for step in steps:
        print(step)
    print(f"# {total(steps)}, without evaluation")
    if any(step.gpu_hours for step in steps):
        print(f"# {H100}")


def _run(work: "Work", runs: Path, baseline: Path | None, profile: Path | None, listed: Path) -> bool:
    """Run the missing steps, on a cluster if there is a `profile`, and return whether one failed."""
    from experiments.tables import jobs

    folder = Folder(str(runs))
    try:
        with folder.locked():
            if baseline:
                work.adopt(baseline)
            steps = jobs.missing(work.steps(), work.cells, runs.absolute())
            for step in steps:
                (runs / step.output).unlink(missing_ok=True)  # of a measurement of something else
            if not steps:
                print("nothing to be done: all steps were done before")
                return False
            if profile:
                return jobs.run_on_cluster(steps, listed, profile, folder)
            stages = (step.stage(folder, f"{n} of {len(steps)}") for n, step in enumerate(steps, start=1))
            return bool(folder.run(*stages, keep_going=True))
    except SystemExit as ended:  # a signal to end
        raise KeyboardInterrupt from ended


def _show(table: definitions.Table, scale: Scale, runs: Path, figure: bool, curves: bool, out: Path | None) -> None:
    """Print a table from its results so far, and write it."""
    from experiments.tables import plots, printing, results
    from experiments.tables.runs import Workspace

    workspace = Workspace(runs, Path())
    figures = results.gather(table, scale, workspace)
    folder = out or runs / scale.name / "tables"
    made = printing.analysis(figures, figure)
    paths = made.write(folder)
    if curves:
        paths += plots.curves(table, scale, workspace).write(folder)
    print(made.markdown)
    print("wrote " + ", ".join(map(str, paths)))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status, as `fairseq_capsule_lab.cli.main` does."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run_command(NAME, lambda: reproduce.make_context(NAME, words))


if __name__ == "__main__":
    sys.exit(main())
