"""The invariant that a training that is stopped and resumed gives the same parameters as one without a stop."""

import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, List, Mapping, Optional, Union

import torch
from fairseq import checkpoint_utils

from fairseq_capsule.testing.small_models import build_small, criterion_of, small_options

PLUGIN = Path(__file__).resolve().parents[1]
UPDATES = (15, 26)  # the run stops after the first number, within an epoch
STEPS = "--optimizer adam --lr 2e-3 --max-tokens 200".split()
LETTERS = "abcdefghijkl"


def check_resuming(arch: str, options: Mapping[str, Any] = {}, *, user_dir: Optional[Union[str, Path]] = None) -> None:
    """Check that fairseq-train with a stop and without one gives bit-identical parameters on a CPU.

    `options` are those of the architecture, in addition to small sizes. `user_dir` is the plugin that registers it, by
    default this package.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _write_data(folder / "text")
        words = [*options_of_training(arch, options), *options_of_losses(arch, options)]
        for name, stops in (("stopped", UPDATES), ("straight", UPDATES[1:])):
            for updates in stops:
                stop = ("--max-update", updates, "--save-dir", folder / name, "--user-dir", user_dir or PLUGIN)
                _run("train", folder / "text" / "bin", *words, *STEPS, *stop)
        files = (folder / name / "checkpoint_last.pt" for name in ("stopped", "straight"))
        stopped, straight = (checkpoint_utils.load_checkpoint_to_cpu(str(file))["model"] for file in files)
        assert stopped.keys() == straight.keys()
        different = [name for name in stopped if not torch.equal(stopped[name], straight[name])]
        assert not different, f"after resuming these parameters differ: {different}"


def options_of_training(arch: str, options: Mapping[str, Any]) -> List[str]:
    """Return the words of fairseq-train for a small model of an architecture, without a criterion."""
    settings = small_options(arch, options)
    return [
        *("--arch", arch, "--task", "capsule_translation"),
        *(f"--{name.replace('_', '-')}" for name, value in settings.items() if value is True),
        *(f"--{name.replace('_', '-')}={value}" for name, value in settings.items() if not isinstance(value, bool)),
        *"--cpu --seed 1 --num-workers 0 --no-epoch-checkpoints --no-progress-bar --log-format none".split(),
    ]


def options_of_losses(arch: str, options: Mapping[str, Any]) -> List[str]:
    """Return the words of fairseq-train for the criterion with the losses of a model's mechanisms."""
    criterion, losses = criterion_of(build_small(arch, options))
    weights = [f"--{name.replace('_', '-')}={value}" for name, value in losses.items()]
    return ["--criterion", criterion, "--label-smoothing", "0.1", *weights]


def _write_data(folder: Path) -> None:
    """Write a binarised corpus; the translation of a sentence is the reversed sentence."""
    folder.mkdir()
    rng = random.Random(1)
    for split, number in (("train", 300), ("valid", 8)):
        with open(folder / f"{split}.en", "w") as source, open(folder / f"{split}.de", "w") as target:
            for _ in range(number):
                words = [rng.choice(LETTERS) for _ in range(rng.randint(2, 7))]
                print(*words, file=source)
                print(*reversed(words), file=target)
    prefixes = [word for split in ("train", "valid") for word in (f"--{split}pref", folder / split)]
    _run("preprocess", *prefixes, *"-s en -t de --joined-dictionary --destdir".split(), folder / "bin")


def _run(command: str, *arguments: Any) -> None:
    words = [sys.executable, "-m", f"fairseq_cli.{command}", *map(str, arguments)]
    finished = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert finished.returncode == 0, finished.stdout
