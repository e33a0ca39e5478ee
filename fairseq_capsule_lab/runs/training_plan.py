"""The plan of a training: the checks before it, and the command to run. This module starts nothing."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_capsule.errors import UserError
from fairseq_capsule_lab.errors import LabError, place, quoted, whole
from fairseq_capsule_lab.runs import data_folder, plugins
from fairseq_capsule_lab.runs.configuration import OWN, configured
from fairseq_capsule_lab.runs.folder import LAST
from fairseq_capsule_lab.runs.machine import Machines, choose_machines, device_settings
from fairseq_capsule_lab.runs.settings import Settings

TOLERANCE = 0.05  # relative error of the effective batch: the accumulation is a whole number
PRECISIONS = ("fp32", "fp16", "bf16")


@dataclass(frozen=True)
class Plan:
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


def plan(given: Mapping[str, str], overrides: Sequence[str], environment: Mapping[str, str]) -> Plan:
    """Check the arguments of train.sh and plan the training.

    Args:
        given: the paths config, data, out and plugin, the one beside the scripts; the options gpus, processes, nodes,
            effective-tokens, precision and like-baseline, each empty if it is not given; visible, the names of the
            visible GPUs, separated by commas.

    Raises:
        LabError: a value is wrong; the message is one line.
    """
    config, data, beside = (
        place(name, given[key] and os.path.realpath(given[key]))
        for name, key in (("CONFIG", "config"), ("DATA", "data"), ("the plugin", "plugin"))
    )
    out = place("OUT", given["out"])
    resumes = (out / LAST).exists()
    _require_files(config, data, given)
    if given["precision"] not in PRECISIONS:
        raise LabError(f"--precision must be fp32, fp16 or bf16, not '{given['precision']}'")
    machines = choose_machines(given, environment)
    if not machines.gpus and given["precision"] != "fp32":
        raise LabError(f"--precision {given['precision']}: fairseq supports it only on GPUs; leave it out on the CPU")
    tokens = whole("--effective-tokens", given["effective-tokens"]) if given["effective-tokens"] else 0

    overrides = [*overrides, *_like_baseline(given["like-baseline"], overrides)]
    own = {**OWN, "optimization.update_freq": "--effective-tokens"} if tokens else OWN
    settings = Settings(configured(config, overrides, own))
    try:
        plugin = plugins.plugin(plugins.KEY, settings.get(plugins.KEY), beside)
        if settings.get(plugins.KEY) is not None:
            settings.config["common"]["user_dir"] = None if plugin == beside else str(plugin)
        times, batch = accumulation(settings, machines.world, tokens)
        _require_languages(data, settings)
        _require_one_dictionary(data, settings, config)
        _require_start("task.init_from_baseline", settings)
        if not resumes:
            _require_start("checkpoint.restore_file", settings)
        max_update = settings.whole("optimization.max_update", 0, low=0)
        seed = settings.whole("common.seed", 1, low=0)
    except UserError as error:
        raise LabError(f"{config}: {error}") from error

    device = "GPU" if machines.gpus else "CPU"
    options = device_settings(machines, given["precision"])
    options += [f"optimization.update_freq={times}"] if tokens else []
    options += _own_checkpoint(settings) if resumes else []
    return Plan(
        machines,
        data,
        _command(config, data, out, plugin, [*overrides, *options], machines),
        _bound(settings, data, given["precision"], tokens, batch, machines),
        f"nodes: {machines.nodes}, processes a node: {machines.processes}, each on a {device}, {given['precision']}",
        batch,
        max_update,
        seed,
        resumes,
    )


def _require_files(config: Path, data: Path, given: Mapping[str, str]) -> None:
    if config.suffix != ".yaml" or not config.is_file():
        raise LabError(f"{given['config']}: no such YAML file; name one such as configs/toy/combined.yaml")
    if not data.is_dir():
        raise LabError(f"{given['data']}: no such data folder; prepare the data first")
    if not any(data.glob("train.*.bin")):
        raise LabError(
            f"{given['data']}: no binarised training set; name the output folder of fairseq-preprocess, "
            "OUT/bin of a prepare script"
        )


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
    source, target = (settings.name(f"task.{side}_lang", "") for side in ("source", "target"))
    if not source or not target:
        return  # fairseq reads them from the folder
    other = data_folder.other_pair(data, source, target)
    if other:
        changes = zip(("source", "target"), (source, target), other, strict=True)
        words = [f"task.{side}_lang={there}" for side, here, there in changes if here != there]
        raise LabError(
            f"it translates {source}-{target}, but {data} has {'-'.join(other)}; give {' '.join(words)} after OUT, "
            "or name other data"
        )


def _require_one_dictionary(data: Path, settings: Settings, config: Path) -> None:
    """Require that the languages have the same dictionary if the configuration shares all embeddings."""
    pairs = data_folder.pairs(data)
    # With like_baseline, the baseline decides what is shared.
    if settings.get("model.share_all_embeddings") is not True or settings.get("task.like_baseline") or len(pairs) != 1:
        return
    if data_folder.dictionaries_differ(data, *pairs[0]):
        separate = (
            "share=separate"
            if (config.parent / "share/separate.yaml").is_file()
            else "model.share_all_embeddings=false"
        )
        raise LabError(
            f"model.share_all_embeddings: the two dictionaries of {data} differ; give {separate} after OUT, or prepare "
            "the data with a joined dictionary"
        )


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


def accumulation(settings: Settings, processes: int, wanted: int) -> tuple[list[int], str]:
    """The accumulation for an effective batch of `wanted` tokens, or the configured one; and the batch in words.

    Args:
        wanted: target tokens per update; 0 keeps the accumulation of the configuration.

    Raises:
        LabError: `wanted` cannot be reached, or a size is not a number.
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
    if wanted:
        if unit != "tokens":
            raise LabError(
                f"--effective-tokens {wanted}: the batch is dataset.batch_size={size} sentences; set max_tokens"
            )
        times = [max(1, int(wanted / step + 0.5))]
        if abs(times[0] * step - wanted) > TOLERANCE * wanted:
            fitting = round(wanted / processes / -(-wanted // step))
            raise LabError(
                f"--effective-tokens {wanted} cannot be met: {processes} × dataset.max_tokens={size} is {step} tokens, "
                f"and no multiple of it is near; give dataset.max_tokens={fitting}"
            )
    made = ", ".join(str(step * number) for number in times)
    batch = f"{size} {unit} × {processes} × accumulation {', '.join(map(str, times))} = {made} {unit}"
    if wanted and times[0] * step != wanted:
        batch += f" (rounded from {wanted})"
    return times, batch


def _bound(settings: Settings, data: Path, precision: str, tokens: int, batch: str, machines: Machines) -> Settings:
    """The settings that the run folder is bound to."""
    config = dict(settings.config)
    origin = {"data": data_folder.fingerprint(data) if machines.node == 0 else "", "precision": precision}
    if not tokens:
        return Settings(config, {**origin, "batch": batch.partition(" = ")[2]})
    # max_tokens may differ between starts: with --effective-tokens the batch stays the same.
    config["dataset"] = {key: value for key, value in config["dataset"].items() if key != "max_tokens"}
    return Settings(config, {**origin, "effective-tokens": tokens})


def _command(config: Path, data: Path, out: Path, plugin: Path, words: Sequence[str], machines: Machines) -> list[str]:
    chosen = ["--config-dir", str(config.parent), "--config-name", config.stem]
    places = {"common.user_dir": plugin, "task.data": data, "checkpoint.save_dir": out, "hydra.run.dir": out}
    return [
        *machines.launcher,
        *("fairseq-hydra-train", *chosen, "common.log_format=simple", *words),
        *(f"{key}={quoted(path)}" for key, path in places.items()),
        *("hydra.output_subdir=null", "hydra.job_logging.root.handlers=[console]"),
        "~hydra.job_logging.handlers.file",
    ]
