"""fairseq's real command lines, each in a process of its own: fairseq keeps state in its modules."""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent.parent
PLUGIN = REPOSITORY / "fairseq_capsule"

SMALL = (
    "--encoder-embed-dim 32 --encoder-ffn-embed-dim 48 --encoder-attention-heads 4 --encoder-layers 2 "
    "--decoder-embed-dim 32 --decoder-ffn-embed-dim 48 --decoder-attention-heads 4 --decoder-layers 2"
).split()
TRAINING = (
    "--optimizer adam --lr 2e-3 --max-tokens 400 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 "
    "--cpu --seed 1 --no-progress-bar"
).split()


def run(command, *arguments, user_dir=PLUGIN, succeeds=True, cwd=None, env=None, stdin=None):
    """Run `fairseq-<command>`; its output, standard error included."""
    plugin = ["--user-dir", str(user_dir)] if user_dir else []
    # A command's name is its module's: fairseq-train is fairseq_cli.train.
    finished = subprocess.run(
        [sys.executable, "-m", f"fairseq_cli.{command}", *map(str, arguments), *plugin],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd or REPOSITORY,
        env={**os.environ, **(env or {})},
        input=stdin,
    )
    assert (finished.returncode == 0) == succeeds, finished.stdout
    return finished.stdout


def train(data, save_dir, *arguments, arch="capsule_transformer_tiny", **options):
    small = SMALL if arch.startswith("capsule_transformer") else []
    return run("train", data, "--arch", arch, *small, *TRAINING, "--save-dir", save_dir, *arguments, **options)


def last_line(output):
    return [line for line in output.splitlines() if line.strip()][-1]
