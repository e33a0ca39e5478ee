"""fairseq's command lines, each in its own process, because fairseq keeps state in its modules."""

import os
import sys
import time
from pathlib import Path

from tests.processes import run_forked

REPOSITORY = Path(__file__).parent.parent.parent
PLUGIN = REPOSITORY / "fairseq_capsule"
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # fairseq's commands are next to this Python

SMALL_LSTM = "--encoder-embed-dim 32 --decoder-embed-dim 32 --decoder-out-embed-dim 32".split()
SMALL_CAPSNMT = "--encoder-embed-dim 32 --decoder-embed-dim 32 --encoder-layers 2 --decoder-layers 2".split()
SMALL = (
    "--encoder-embed-dim 32 --encoder-ffn-embed-dim 48 --encoder-attention-heads 4 --encoder-layers 2 "
    "--decoder-embed-dim 32 --decoder-ffn-embed-dim 48 --decoder-attention-heads 4 --decoder-layers 2"
).split()
# Without a separate process for data: it may not end in time, and torch then waits for 5 seconds in every epoch.
TRAINING = [
    *"--optimizer adam --lr 2e-3 --max-tokens 400 --label-smoothing 0.1 --cpu --seed 1 --no-progress-bar".split(),
    *"--num-workers 0".split(),
]
CRITERION = "label_smoothed_cross_entropy"
# A training by scripts/train.sh. It has no dropout, because two processes draw it differently.
SCRIPTED = [
    REPOSITORY / "configs/toy/capsule_transformer.yaml",
    *"--gpus 0 --effective-tokens 800 dataset.max_tokens=400 task._name=capsule_translation".split(),
    *"optimization.max_epoch=3 optimization.max_update=0 lr_scheduler.warmup_updates=2".split(),
    *"model.encoder_layers=1 model.decoder_layers=1".split(),
]
GUIDED = ["--task", "capsule_translation", "--criterion", CRITERION + "_with_routing_losses"]


def run(command, *arguments, user_dir=PLUGIN, succeeds=True, cwd=None, env=None, stdin=None):
    """Run `fairseq-<command>`. Return its output and standard error."""
    plugin = ["--user-dir", str(user_dir)] if user_dir else []
    # fairseq-train is the module fairseq_cli.train.
    finished = run_forked(
        f"fairseq_cli.{command}", "cli_main", [*arguments, *plugin], cwd or REPOSITORY, env, stdin, one_output=True
    )
    assert (finished.returncode == 0) == succeeds, finished.stdout
    return finished.stdout


def train(data, save_dir, *arguments, arch="capsule_transformer_tiny", **options):
    """Train an architecture of fairseq, or a small one of ours. If it supports guided losses, they are used."""
    small = SMALL if arch.startswith(("capsule_", "gdr_", "gret_")) else []
    if arch.startswith(("capsnmt", "simple_")):
        small = SMALL_CAPSNMT
    elif small and arch.endswith("_lstm"):
        small = SMALL_LSTM
    criterion = GUIDED if arch.startswith("gdr_") else ["--criterion", CRITERION]
    settings = ["--arch", arch, *small, *TRAINING, *criterion, "--save-dir", save_dir]
    return run("train", data, *settings, *arguments, **options)


def wait_for(path, process=None, seconds=300):
    """Wait for a file. If `process` is given, it must create the file."""
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"no {path}"
        assert process is None or process.poll() is None, f"{process.args} ended without {path}"
        time.sleep(0.02)


def last_line(output):
    return [line for line in output.splitlines() if line.strip()][-1]
