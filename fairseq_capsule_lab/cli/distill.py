"""`fairseq-capsule distill`, which scripts/distill.sh calls: sequence-level distillation (Kim and Rush 2016)."""

from pathlib import Path

import click

from fairseq_capsule_lab import defaults
from fairseq_capsule_lab.cli.arguments import DRY_RUN, LENGTH_PENALTY, data_folder, given, input_file, positive_int
from fairseq_capsule_lab.cli.commands import argument, command, option

LENPEN = "Length penalty of the teacher, as in Wang et al. 2019."


@command("distill", "runs/teacher/checkpoint_best.pt data/multi30k data/distilled")
@argument("teacher", input_file, "A checkpoint of any translation model that fairseq and this package load.")
@argument("data", data_folder, "OUT of a prepare script or its bin, with the teacher's languages and dictionaries.")
@argument("out", given, "The folder to make.")
@option("--beam", positive_int, "N", "Beam size of the teacher.", default=defaults.TEACHER_BEAM)
@option("--lenpen", LENGTH_PENALTY, "X", LENPEN, default=defaults.TEACHER_LENGTH_PENALTY)
@option("--shards", positive_int, "N", "Pieces of the training set. Finished ones survive an interruption.", default=32)
@option("--processes", positive_int, "N", "Pieces to translate at the same time.  [default: one a GPU, or one a core]")
@option("--max-tokens", positive_int, "N", "Tokens in a batch of a process.", default=4096)
@option("--user-dir", given, "DIR", "The plugin that defines the teacher, if it is your own (docs/extending.md).")
@DRY_RUN
def distill(
    teacher: Path,
    data: Path,
    out: str,
    beam: int,
    lenpen: float,
    shards: int,
    processes: int | None,
    max_tokens: int,
    user_dir: str | None,
    dry_run: bool,
) -> None:
    """Translate the training set with a teacher, as the data of students.

    OUT/bin is then DATA with the translations as the targets of the training set. OUT has the settings and codes
    of DATA.

    A sentence keeps its own target if its translation is empty or reaches the maximum length (twice the source plus
    10), or if the teacher skips it because it is too long. The command prints how many do.

    The same command resumes an interrupted run. It does nothing after a finished run.
    """
    from fairseq_capsule_lab.runs import distill as runs

    arguments = runs.DistillationArguments(
        teacher=teacher,
        data=data,
        out=out,
        beam=beam,
        lenpen=lenpen,
        shards=shards,
        processes=processes,
        max_tokens=max_tokens,
        user_dir=user_dir,
    )
    context = click.get_current_context()
    runs.distill(context.command_path, context.meta["words"], arguments, dry_run)
