"""`fairseq-capsule table`: a table with our figures beside the paper's. `reproduce` first runs its missing steps."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from capsule_routing.errors import UserError
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
from fairseq_capsule_lab.cli.commands import argument, command, flag, option, together
from fairseq_capsule_lab.stages import Folder
from fairseq_capsule_lab.tables import definitions
from fairseq_capsule_lab.tables.scales import SCALES, load_scale

CORES = 8  # of a training on a cluster, unless its profile says otherwise
SEEDS = whole_numbers(1, MOST_SEED)
BASELINE = (
    "Use it in place of the Transformer that rows start from or learn from. Prepare the data with its codes and "
    "dictionary."
)
WORKSPACE = together(
    option("--scale", given, "SCALE", f"The size of models and trainings: {', '.join(SCALES)}.", default="paper"),
    option("--runs", output_path, "DIR", "Folder of all runs.", default="runs"),
    flag("--figure", "Also draw the table, if its definition says how."),
    USER_DIR,
)


@command("table", "duan-table2 --scale small")
@click.argument("table", type=given, required=False, help="Such as duan-table2, or a YAML file.  [default: list all]")
@WORKSPACE
@flag("--curves", "Also write the learning curves of its rows, with bands over seeds.")
@option("--out", output_path, "DIR", "Folder for the table's files.  [default: RUNS/SCALE/tables]")
def table(table: str | None, scale: str, runs: Path, figure: bool, curves: bool, out: Path | None) -> None:
    """Print a paper's table with our figures beside the paper's. Without a name, list the tables."""
    if table:
        _show(_load_table(table, figure), scale, runs.resolve(), figure, curves, out)
        return
    if click.get_current_context().meta["words"]:  # options of a table
        raise click.UsageError("Missing argument 'TABLE'.")
    for name in definitions.table_names():
        print(f"{name:16} {definitions.load_table(name).title}")


@command("reproduce", "duan-table2 --scale small --seeds 1-3")
@argument("table", given, "Such as duan-table2, or a YAML file. fairseq-capsule table lists all.")
@WORKSPACE
@option("--seeds", SEEDS, "N,N,…", "Seeds of the trainings: 1,2,3 or 1-3.", default="1")
@option(
    "--launcher", given, "local|slurm|PROFILE", "This machine, or the folder of a Snakemake profile.", default="local"
)
@option("--cores", positive_int, "N", "Cores of this machine.  [default: all]")
@option("--baseline", input_file, "CHECKPOINT", BASELINE)
@option("--data", output_path, "DIR", "Folder of prepared corpora.", default="data")
@option("--rows", given, "ROW", "Only this row. May be repeated.  [default: all]", multiple=True)
@flag("--dry-run", "Print every command with its GPUs, memory and minutes.")
def reproduce(
    table: str,
    scale: str,
    runs: Path,
    figure: bool,
    seeds: list[int],
    launcher: str,
    cores: int | None,
    baseline: Path | None,
    data: Path,
    rows: Sequence[str],
    dry_run: bool,
) -> None:
    """Run the missing steps of a paper's table, then print the table. The same command resumes an interrupted run."""
    import torch

    from fairseq_capsule_lab.tables import commands
    from fairseq_capsule_lab.tables.runs import Workspace
    from fairseq_capsule_lab.tables.steps import work_of

    definition = _load_table(table, figure)  # raises an error where there are no tables
    user_dir = click.get_current_context().meta.get("user_dir")
    plugin = Path(os.path.abspath(user_dir)) if user_dir else None
    profile = None if launcher == "local" else commands.cluster_profile(launcher)
    workspace = Workspace(runs.absolute(), data.absolute(), Path.cwd(), plugin)
    gpus = None if profile else torch.cuda.device_count()
    threads = cores or (CORES if profile else processes.cores())
    work = work_of(definition, load_scale(scale), workspace, seeds, rows, baseline, gpus, threads)
    work.refuse_wrong_plugins()
    steps = work.steps()
    if dry_run:
        for step in commands.missing(steps, work.cells, workspace.runs):
            print(step)
        return
    work.refuse_missing_corpora()
    folder, tables = Folder(str(runs)), workspace.runs / scale / "tables"
    try:
        with folder.locked():
            if baseline:
                work.adopt(baseline)
            steps = commands.missing(steps, work.cells, workspace.runs)
            for step in steps:
                (workspace.runs / step.output).unlink(missing_ok=True)  # of a measurement of something else
            if not steps:
                print("nothing to be done: all steps were done before")
                failed = False
            elif profile:
                failed = commands.run_on_cluster(steps, tables / f"{definition.name}.steps.json", profile, folder)
            else:
                stages = (step.stage(folder, f"{n} of {len(steps)}") for n, step in enumerate(steps, start=1))
                failed = bool(folder.run(*stages, keep_going=True))
    except SystemExit as ended:  # a signal to end
        raise KeyboardInterrupt from ended
    _show(definition, scale, runs.resolve(), figure)
    if failed:
        raise UserError("some steps failed: see the notes under the table, and the logs in the folder of each run")


def _load_table(name: str, figure: bool) -> definitions.Table:
    table = definitions.load_table(name)
    if figure and not table.figure:
        raise UserError(f"--figure: the definition of {table.name} does not say what to draw; omit the option")
    return table


def _show(
    table: definitions.Table, scale_name: str, runs: Path, figure: bool, curves: bool = False, out: Path | None = None
) -> None:
    """Print a table from its results so far, and write it."""
    from fairseq_capsule_lab.tables import printing, results
    from fairseq_capsule_lab.tables.runs import Workspace

    workspace, scale = Workspace(runs, Path()), load_scale(scale_name)
    figures = results.gather(table, scale, workspace)
    folder = out or runs / scale.name / "tables"
    paths = printing.write(figures, folder, figure)
    if curves:
        paths += printing.curves(table, scale, workspace).write(folder)
    print(printing.markdown(figures))
    print("wrote " + ", ".join(map(str, paths)))
