"""The plan of a training: the checks before it, and the command to run. This module starts nothing."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from capsule_routing.errors import UserError
from capsule_routing.text.folders import language_pairs
from fairseq_capsule_lab.manifests import fingerprint
from fairseq_capsule_lab.runs import plugins
from fairseq_capsule_lab.runs.configuration import OWN, read_configuration, refuse_unknown_additions
from fairseq_capsule_lab.runs.folder import LAST
from fairseq_capsule_lab.runs.machine import Machines, choose_machines, device_settings
from fairseq_capsule_lab.runs.settings import Settings
from fairseq_capsule_lab.values import checked_integer, checked_path, quoted

TOLERANCE = 0.05  # relative error of the effective batch: the accumulation is a whole number


@dataclass(frozen=True, kw_only=True)
class TrainingArguments:
    """The arguments of train.sh: CONFIG, DATA and OUT, KEY=VALUE as `overrides`, and the options of the same names."""

    config: Path
    data: Path
    out: str
    overrides: Sequence[str] = ()
    gpus: int | None = None
    processes: int | None = None
    nodes: int = 1
    effective_tokens: int | None = None
    precision: str = "fp32"
    like_baseline: Path | None = None


@dataclass(frozen=True)
class TrainingPlan:
    """The plan of a training. `command` starts it; `where` and `batch` describe it in the log and the manifest.

    `resuming` are overrides for a start in a run folder that has a checkpoint.
    """

    machines: Machines
    data: Path
    command: list[str]
    resuming: list[str]
    settings: Settings
    where: str
    batch: str
    max_update: int
    max_epoch: int
    warmup: int
    seed: int


def plan(args: TrainingArguments, environment: Mapping[str, str], dry_run: bool = False) -> TrainingPlan:
    """Check the places and options of train.sh and its Hydra settings, and plan the training.

    With `dry_run` the GPUs that `args` asks for need not be here: the login node of a cluster has none.
    """
    config, data, out = _places(args)
    machines = choose_machines(args.gpus, args.processes, args.nodes, environment, dry_run)
    if not machines.gpus and args.precision != "fp32":
        raise UserError(f"--precision {args.precision}: fairseq supports it only on GPUs; leave it out on the CPU")
    tokens, overrides = args.effective_tokens, _overrides(args)
    own = {**OWN, "optimization.update_freq": "--effective-tokens"} if tokens else OWN
    settings = Settings(read_configuration(config, overrides, own))
    plugin = _plugin(settings)
    times, batch = accumulation(settings, machines.world, tokens)
    _require_languages(data, settings)
    rates = settings.get("optimization.lr", [])
    if not isinstance(rates, list):
        raise UserError(f"optimization.lr must be a list such as [{rates}]")
    _require_joint_dictionary(data, settings)
    _require_checkpoint(out, settings, args.like_baseline)

    words = [*overrides, *device_settings(machines, args.precision)]
    words += [f"optimization.update_freq={times}"] if tokens else []
    places = {"common.user_dir": plugin, "task.data": data, "checkpoint.save_dir": out, "hydra.run.dir": out}
    words += [f"{key}={quoted(path)}" for key, path in places.items()]
    device = "GPU" if machines.gpus else "CPU"
    where = f"nodes: {machines.nodes}, processes a node: {machines.processes}, each on a {device}, {args.precision}"
    max_update, max_epoch, warmup = (
        checked_integer(key, settings.get(key, 0), low=0)
        for key in ("optimization.max_update", "optimization.max_epoch", "lr_scheduler.warmup_updates")
    )
    return TrainingPlan(
        machines=machines,
        data=data,
        command=_command(machines, config, words),
        resuming=_own_checkpoint(settings),
        settings=_binding(settings, args, batch, _hash(data) if machines.node == 0 else ""),
        where=where,
        batch=batch,
        max_update=max_update,
        max_epoch=max_epoch,
        warmup=warmup,
        seed=settings.get("common.seed", 1),
    )


def _places(args: TrainingArguments) -> tuple[Path, Path, Path]:
    """Return CONFIG, DATA and OUT as Hydra can read them."""
    config, data = (
        checked_path(name, Path(path).resolve()) for name, path in (("CONFIG", args.config), ("DATA", args.data))
    )
    out = checked_path("OUT", args.out)
    if config.suffix != ".yaml":
        raise UserError(f"{args.config}: not a YAML file; name one of configs/, such as configs/toy/combined.yaml")
    if not any(data.glob("train.*.bin")):
        remedy = "name the output folder of fairseq-preprocess, OUT/bin of a prepare script"
        raise UserError(f"{args.data}: no binarised training set; {remedy}")
    return config, data, out


def _overrides(args: TrainingArguments) -> list[str]:
    """Return the overrides of the user and those of --like-baseline."""
    overrides = list(args.overrides)
    refuse_unknown_additions(overrides)
    if args.like_baseline:  # the model reads the baseline's sizes when it is built
        if any(word.lstrip("+").startswith("task.init_from_baseline=") for word in overrides):
            raise UserError("--like-baseline already sets task.init_from_baseline; leave it out")
        baseline = checked_path("--like-baseline", args.like_baseline.resolve())
        overrides += [f"++task.init_from_baseline={quoted(baseline)}", "++task.like_baseline=true"]
    return overrides


def _plugin(settings: Settings) -> Path:
    """Return the folder of the plugin, and let the settings name it, but not this package's: a clone may be moved."""
    plugin = plugins.plugin(plugins.KEY, settings.get(plugins.KEY))
    if settings.get(plugins.KEY) is not None:
        settings.config["common"]["user_dir"] = None if plugin == plugins.OWN else str(plugin)
    return plugin


def _command(machines: Machines, config: Path, words: Sequence[str]) -> list[str]:
    """Return the command that trains with overrides. Its log goes to standard output, and Hydra writes no files."""
    return [
        *(*machines.launcher, "fairseq-hydra-train", "--config-dir", str(config.parent), "--config-name", config.stem),
        *("common.log_format=simple", *words),
        *("hydra.output_subdir=null", "hydra.job_logging.root.handlers=[console]", "~hydra.job_logging.handlers.file"),
    ]


def _hash(data: Path) -> str:
    """Return a hash of the dictionaries and of the training and validation sets."""
    patterns = ("dict.*.txt", "train*.bin", "valid*.bin")
    return fingerprint(*sorted({path for pattern in patterns for path in data.glob(pattern)}))


def _binding(settings: Settings, args: TrainingArguments, batch: str, data: str) -> Settings:
    """Return the settings that bind a run folder: those in which all its starts agree. `data` is a hash."""
    origin = {"data": data, "precision": args.precision}
    if not args.effective_tokens:
        return Settings(settings.config, {**origin, "batch": batch.partition(" = ")[2]})
    # max_tokens may differ between starts: with --effective-tokens the batch stays the same.
    dataset = {key: value for key, value in settings.config["dataset"].items() if key != "max_tokens"}
    return Settings({**settings.config, "dataset": dataset}, {**origin, "effective-tokens": args.effective_tokens})


def _require_checkpoint(out: Path, settings: Settings, baseline: Path | None) -> None:
    """Refuse a missing checkpoint to start from, which fairseq ignores. A run that has its own does not need it."""
    restored = settings.get("checkpoint.restore_file", LAST)
    for name, path in (("checkpoint.restore_file=", restored), ("--like-baseline ", baseline or LAST)):
        if path != LAST and not os.path.isfile(path) and not (out / LAST).exists():
            raise UserError(f"{name}{path}: no such checkpoint; name that of a finished training")


def _require_languages(data: Path, settings: Settings) -> None:
    """Require the languages of the data, in one of both directions."""
    source, target = (settings.get(f"task.{side}_lang") for side in ("source", "target"))
    for side, language in (("source", source), ("target", target)):
        if isinstance(language, bool):  # Norwegian
            raise UserError(f'task.{side}_lang: YAML reads an unquoted no as false; write "no" in CONFIG')
    found = language_pairs(data, "train")
    if found and source and target and (source, target) not in found and (target, source) not in found:
        first, second = found[0]
        remedy = f"give task.source_lang={first} task.target_lang={second} after OUT, or name other data"
        raise UserError(f"CONFIG translates {source}-{target}, but {data} has {first}-{second}; {remedy}")


def _require_joint_dictionary(data: Path, settings: Settings) -> None:
    """Refuse one matrix for all embeddings where each language has a dictionary of its own."""
    pairs = language_pairs(data, "train")
    if not pairs or not settings.get("model.share_all_embeddings") or settings.get("task.like_baseline"):
        return
    files = [data / f"dict.{language}.txt" for language in pairs[0]]
    words = [[line.rpartition(b" ")[0] for line in file.read_bytes().splitlines()] for file in files if file.is_file()]
    if len(words) == 2 and words[0] != words[1]:
        problem = "each language has a dictionary of its own (--share separate)"
        raise UserError(f"{data}: {problem}; give model.share_all_embeddings=false after OUT")


def _own_checkpoint(settings: Settings) -> list[str]:
    """Overrides with which a training continues from its own last checkpoint, not from the one that it started from."""
    parts = ("optimizer", "lr_scheduler", "meters", "dataloader")
    own = {"restore_file": LAST, **{f"reset_{part}": "false" for part in parts}}
    return [f"checkpoint.{name}={value}" for name, value in own.items() if settings.get(f"checkpoint.{name}")]


def accumulation(settings: Settings, processes: int, tokens: int | None) -> tuple[list[int], str]:
    """The accumulation for `tokens` per update, otherwise the configured one; and the batch in words.

    Tokens are those of `dataset.max_tokens`: fairseq counts the longer side of each pair, with padding. It is a
    UserError if `tokens` cannot be reached, or a size is not a number.
    """
    size, unit = checked_integer("dataset.max_tokens", settings.get("dataset.max_tokens", 0), low=0), "tokens"
    sentences = checked_integer("dataset.batch_size", settings.get("dataset.batch_size", 0), low=0)
    if not size:
        size, unit = sentences, "sentences"
    if not size:
        raise UserError("no batch size; give dataset.max_tokens=N")
    times = settings.get("optimization.update_freq", [1])
    if not isinstance(times, list):
        raise UserError(f"optimization.update_freq must be a list such as [{times}]")
    times = [checked_integer("optimization.update_freq", number) for number in times]
    step = size * processes
    if tokens:
        if unit != "tokens":
            problem = f"the batch is dataset.batch_size={size} sentences; set max_tokens"
            raise UserError(f"--effective-tokens {tokens}: {problem}")
        if sentences:
            problem = f"dataset.batch_size={sentences} makes batches of fewer tokens than dataset.max_tokens"
            raise UserError(f"--effective-tokens {tokens}: {problem}; give dataset.batch_size=null")
        times = [max(1, int(tokens / step + 0.5))]
        if abs(times[0] * step - tokens) > TOLERANCE * tokens:
            fitting = round(tokens / processes / -(-tokens // step))
            problem = f"{processes} × dataset.max_tokens={size} is {step} tokens, and no multiple of it is near"
            remedy = f"give dataset.max_tokens={fitting}"
            raise UserError(f"--effective-tokens {tokens} cannot be met: {problem}; {remedy}")
    total = ", ".join(str(step * number) for number in times)
    batch = f"{size} {unit} × {processes} × accumulation {', '.join(map(str, times))} = {total} {unit}"
    if unit == "tokens" and sentences:
        batch += f", at most {sentences} sentences in a batch of a process"
    if tokens and times[0] * step != tokens:
        batch += f" (rounded from {tokens})"
    return times, batch
