"""`fairseq-capsule train`, which scripts/train.sh calls: train a model with fairseq-hydra-train."""

import re
from collections.abc import Sequence
from pathlib import Path

import click

from fairseq_capsule_lab.cli.arguments import DRY_RUN, MOST, data_folder, given, input_file, positive_int
from fairseq_capsule_lab.cli.commands import command, option

PRECISIONS = ["fp32", "fp16", "bf16"]
EXAMPLE = "configs/multi30k/capsule_transformer.yaml data/multi30k runs/capsule optimization.max_epoch=20"
OVERRIDE = re.compile(r"[+~]*[A-Za-z0-9_.]+=", re.ASCII)
WORDS = (
    "CONFIG: a YAML file such as configs/multi30k/gdr_transformer.yaml. DATA: OUT of a prepare script or its bin, or a "
    "folder of fairseq-preprocess. OUT: the run folder. KEY=VALUE: further settings in Hydra's syntax, such as "
    "model.dropout=0.1, at any place; common.user_dir=DIR, here or in CONFIG, names a plugin of your own "
    "(docs/extending.md)."
)
NODES = (
    "Train on M nodes. In a Slurm step (srun --ntasks-per-node=1 train.sh …), or on each node with MASTER_ADDR, the "
    "name of the first node, and NODE_RANK, 0 to M-1, in the environment (and MASTER_PORT, if 29500 is in use)."
)
TOKENS = "Tokens in an update, on all processes together. It sets the accumulation (optimization.update_freq)."
BASELINE = (
    "Start from this Transformer or LSTM (task.init_from_baseline), with its layer sizes and shared embeddings, "
    "whatever CONFIG says."
)


@command("train", EXAMPLE)
@click.argument("words", type=given, nargs=-1, metavar="CONFIG DATA OUT [KEY=VALUE]...", help=WORDS)
@option("--gpus", click.IntRange(0, MOST), "N", "GPUs of each node; 0 trains on the CPU.  [default: all visible ones]")
@option("--processes", positive_int, "N", "Processes of each node on the CPU.  [default: 1]")
@option("--nodes", positive_int, "M", NODES, default=1)
@option("--effective-tokens", positive_int, "N", TOKENS)
@option("--precision", click.Choice(PRECISIONS), "", "Whatever CONFIG says; the last two need GPUs.", default="fp32")
@option("--like-baseline", given, "CHECKPOINT", BASELINE)
@DRY_RUN
def train(
    words: Sequence[str],
    gpus: int | None,
    processes: int | None,
    nodes: int,
    effective_tokens: int | None,
    precision: str,
    like_baseline: str | None,
    dry_run: bool,
) -> int:
    """Train a model with fairseq-hydra-train on a CPU, or on the GPUs of one or several nodes.

    The same command resumes an interrupted training from OUT/checkpoint_last.pt. It does nothing after a finished
    training. After SIGTERM, SIGUSR1, SIGHUP or Ctrl-C it saves after the next update, and its status is 75; a second
    signal ends it at once.
    """
    overrides = [word for word in words if OVERRIDE.match(word)]
    places = [word for word in words if not OVERRIDE.match(word)]
    if len(places) != 3:
        raise click.UsageError(f"Name CONFIG, DATA and OUT, not {len(places)} places.")
    config, data, out = places
    from fairseq_capsule_lab.runs import train as runs
    from fairseq_capsule_lab.runs.training_plan import TrainingArguments

    arguments = TrainingArguments(
        config=input_file(config),
        data=data_folder(data),
        out=out,
        overrides=overrides,
        gpus=gpus,
        processes=processes,
        nodes=nodes,
        effective_tokens=effective_tokens,
        precision=precision,
        like_baseline=Path(like_baseline) if like_baseline else None,
    )
    context = click.get_current_context()
    return runs.train(context.command_path, context.meta["words"], arguments, dry_run)
