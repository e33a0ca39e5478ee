"""The plan of a training: the checks before it, and the command to run. This module starts nothing."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from capsule_routing.errors import UserError
from capsule_routing.text.folders import binarised_folder
from fairseq_capsule_lab.errors import LabError, place, quoted, whole
from fairseq_capsule_lab.runs import plugins, prepared
from fairseq_capsule_lab.runs.configuration import OWN, blamed, read_configuration, refuse_unknown_additions
from fairseq_capsule_lab.runs.folder import LAST
from fairseq_capsule_lab.runs.machine import Machines, choose_machines, device_settings
from fairseq_capsule_lab.runs.settings import Settings
from fairseq_capsule_lab.stages import fingerprint

TOLERANCE = 0.05  # relative error of the effective batch: the accumulation is a whole number
PRECISIONS = ("fp32", "fp16", "bf16")


@dataclass(frozen=True)
class TrainingPlan:
    """The plan of a training. `command` starts it; `where` and `batch` describe it in the log and the manifest.

    `resumes` is True if the run folder has a checkpoint from which the command continues.
    """

    machines: Machines
    data: Path
    command: list[str]
    settings: Settings
    where: str
    batch: str
    max_update: int
    seed: int
    resumes: bool


def plan(arguments: Mapping[str, str], overrides: Sequence[str], environment: Mapping[str, str]) -> TrainingPlan:
    """Check the paths and options of train.sh, empty for the default, and its Hydra settings; plan the training."""
    paths = {name: arguments[name] and os.path.realpath(arguments[name]) for name in ("config", "data")}
    config, data = (place(name.upper(), path) for name, path in paths.items())
    data = binarised_folder(data)
    out = place("OUT", arguments["out"])
    resumes = (out / LAST).exists()
    _require_files(config, data, arguments)
    precision = arguments["precision"] or "fp32"
    if precision not in PRECISIONS:
        raise LabError(f"--precision must be fp32, fp16 or bf16, not '{precision}'")
    machines = choose_machines(arguments, environment)
    if not machines.gpus and precision != "fp32":
        raise LabError(f"--precision {precision}: fairseq supports it only on GPUs; leave it out on the CPU")
    tokens = whole("--effective-tokens", arguments["effective-tokens"]) if arguments["effective-tokens"] else 0

    refuse_unknown_additions(overrides)
    overrides = [*overrides, *_like_baseline(arguments["like-baseline"], overrides)]
    own = {**OWN, "optimization.update_freq": "--effective-tokens"} if tokens else OWN
    settings = Settings(read_configuration(config, overrides, own))
    try:
        plugin = plugins.plugin(plugins.KEY, settings.get(plugins.KEY))
        if settings.get(plugins.KEY) is not None:
            settings.config["common"]["user_dir"] = None if plugin == plugins.OWN else str(plugin)
        times, batch = accumulation(settings, machines.world, tokens)
        _require_languages(data, settings)
        _require_start("task.init_from_baseline", settings)
        if not resumes:
            _require_start("checkpoint.restore_file", settings)
        max_update = settings.whole("optimization.max_update", 0, low=0)
        seed = settings.whole("common.seed", 1, low=0)
    except UserError as error:
        raise LabError(blamed(config, overrides, str(error))) from error

    places = {"common.user_dir": plugin, "task.data": data, "checkpoint.save_dir": out, "hydra.run.dir": out}
    command = [
        *(*machines.launcher, "fairseq-hydra-train", "--config-dir", str(config.parent), "--config-name", config.stem),
        *("common.log_format=simple", *overrides, *device_settings(machines, precision)),
        *([f"optimization.update_freq={times}"] if tokens else []),
        *(_own_checkpoint(settings) if resumes else []),
        *(f"{key}={quoted(path)}" for key, path in places.items()),
        *("hydra.output_subdir=null", "hydra.job_logging.root.handlers=[console]", "~hydra.job_logging.handlers.file"),
    ]
    patterns = ("dict.*.txt", "train*.bin", "valid*.bin")
    files = sorted({path for pattern in patterns for path in data.glob(pattern)})
    origin = {"data": fingerprint(*files) if machines.node == 0 else "", "precision": precision}
    if tokens:
        # max_tokens may differ between starts: with --effective-tokens the batch stays the same.
        dataset = {key: value for key, value in settings.config["dataset"].items() if key != "max_tokens"}
        bound = Settings({**settings.config, "dataset": dataset}, {**origin, "effective-tokens": tokens})
    else:
        bound = Settings(settings.config, {**origin, "batch": batch.partition(" = ")[2]})
    device = "GPU" if machines.gpus else "CPU"
    where = f"nodes: {machines.nodes}, processes a node: {machines.processes}, each on a {device}, {precision}"
    return TrainingPlan(machines, data, command, bound, where, batch, max_update, seed, resumes)


def _require_files(config: Path, data: Path, arguments: Mapping[str, str]) -> None:
    if config.suffix != ".yaml" or not config.is_file():
        known = "configs/ of the repository, which an installed wheel does not have, such as configs/toy/combined.yaml"
        raise LabError(f"{arguments['config']}: no such YAML file; name one of {known}")
    if not data.is_dir():
        raise LabError(f"{arguments['data']}: no such data folder; prepare the data first")
    if not any(data.glob("train.*.bin")):
        remedy = "name the output folder of fairseq-preprocess, OUT/bin of a prepare script"
        raise LabError(f"{arguments['data']}: no binarised training set; {remedy}")


def _like_baseline(baseline: str, overrides: Sequence[str]) -> list[str]:
    """The overrides that start a model from a baseline. The model reads the baseline's sizes when it is built."""
    if not baseline:
        return []
    path = place("--like-baseline", os.path.realpath(baseline))
    if not path.is_file():
        raise LabError(f"--like-baseline {baseline}: no such checkpoint; name a trained baseline")
    if any(word.lstrip("+~").startswith("task.init_from_baseline=") for word in overrides):
        raise LabError("--like-baseline already sets task.init_from_baseline; leave it out")
    return [f"++task.init_from_baseline={quoted(path)}", "++task.like_baseline=true"]


def _require_languages(data: Path, settings: Settings) -> None:
    """Require the pair of the data, and one dictionary for both languages if they share their embeddings."""
    source, target = (settings.name(f"task.{side}_lang", "") for side in ("source", "target"))
    other = prepared.other_pair(data, source, target) if source and target else None  # fairseq reads them from the data
    if other:
        pairs = zip(("source", "target"), (source, target), other, strict=True)
        words = [f"task.{side}_lang={binarised}" for side, configured, binarised in pairs if configured != binarised]
        remedy = f"give {' '.join(words)} after OUT, or name other data"
        raise LabError(f"it translates {source}-{target}, but {data} has {'-'.join(other)}; {remedy}")
    pairs_of_data = prepared.pairs(data)
    # With like_baseline, the baseline decides what is shared.
    shares = settings.get("model.share_all_embeddings") is True and not settings.get("task.like_baseline")
    if shares and len(pairs_of_data) == 1 and prepared.dictionaries_differ(data, *pairs_of_data[0]):
        problem = f"model.share_all_embeddings: the two dictionaries of {data} differ"
        remedy = "give model.share_all_embeddings=false after OUT, or prepare the data with a joined dictionary"
        raise LabError(f"{problem}; {remedy}")


def _require_start(name: str, settings: Settings) -> None:
    """Require that the checkpoint exists from which a training starts. fairseq ignores a missing `restore_file`."""
    checkpoint = settings.get(name)
    if isinstance(checkpoint, str) and checkpoint != LAST and not os.path.isfile(checkpoint):
        raise LabError(f"{name}={checkpoint}: no such checkpoint; name that of a finished training")


def _own_checkpoint(settings: Settings) -> list[str]:
    """Overrides with which a training continues from its own last checkpoint, not from the one that it started from."""
    parts = ("optimizer", "lr_scheduler", "meters", "dataloader")
    own = {"restore_file": LAST, **{f"reset_{part}": "false" for part in parts}}
    return [f"checkpoint.{name}={value}" for name, value in own.items() if settings.get(f"checkpoint.{name}")]


def accumulation(settings: Settings, processes: int, tokens: int) -> tuple[list[int], str]:
    """The accumulation for `tokens` target tokens per update, or for 0 the configured one; and the batch in words.

    It is a LabError if `tokens` cannot be reached, or a size is not a number.
    """
    size, unit = settings.whole("dataset.max_tokens", 0, low=0), "tokens"
    if not size:
        size, unit = settings.whole("dataset.batch_size", 0, low=0), "sentences"
    if not size:
        raise LabError("no batch size; give dataset.max_tokens=N")
    times = settings.get("optimization.update_freq") or [1]
    if not isinstance(times, list) or len(times) > 1000:
        raise LabError(f"optimization.update_freq must be a list such as [{times}]")
    times = [whole("optimization.update_freq", number) for number in times]
    step = size * processes
    if tokens:
        if unit != "tokens":
            problem = f"the batch is dataset.batch_size={size} sentences; set max_tokens"
            raise LabError(f"--effective-tokens {tokens}: {problem}")
        times = [max(1, int(tokens / step + 0.5))]
        if abs(times[0] * step - tokens) > TOLERANCE * tokens:
            fitting = round(tokens / processes / -(-tokens // step))
            problem = f"{processes} × dataset.max_tokens={size} is {step} tokens, and no multiple of it is near"
            remedy = f"give dataset.max_tokens={fitting}"
            raise LabError(f"--effective-tokens {tokens} cannot be met: {problem}; {remedy}")
    total = ", ".join(str(step * number) for number in times)
    batch = f"{size} {unit} × {processes} × accumulation {', '.join(map(str, times))} = {total} {unit}"
    if tokens and times[0] * step != tokens:
        batch += f" (rounded from {tokens})"
    return times, batch
