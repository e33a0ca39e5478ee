"""A configuration with its overrides, composed as fairseq-hydra-train composes it."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from capsule_routing.errors import UserError

# The settings that train.sh sets, and by which option. A run folder is not bound to them.
OWN = {
    "task.data": "DATA",
    "checkpoint.save_dir": "OUT",
    "common.cpu": "--gpus 0",
    "common.fp16": "--precision",
    "common.bf16": "--precision",
    "distributed_training": "--gpus, --processes and --nodes",
    "hydra": "train.sh",
}

# The groups of what is registered with fairseq, also by plugins.
REGISTERED = ("task", "model", "criterion", "optimizer", "lr_scheduler", "scoring", "bpe", "tokenizer")


def read_configuration(path: Path, overrides: Sequence[str], own: dict[str, str]) -> dict[str, Any]:
    """The configuration with its Hydra overrides, as nested groups, without the settings in `own`.

    It is a UserError if the file or an override is wrong, a required setting is missing, or an override is in `own`.
    """
    words = []
    for override in overrides:
        key = _key(override)
        for name, setter in own.items():
            if f"{key}.".startswith(f"{name}."):
                raise UserError(f"{override}: {setter} sets this; leave it out")
        if "." not in key and not (path.parent / key).is_dir():
            problem = "neither a setting, GROUP.NAME, nor a config group"
            raise UserError(f"{override}: {problem}; give for example optimization.max_epoch=20")
        # A name without a dot selects a config group (size=big). All others set a value, also one that the file lacks:
        # fairseq-hydra-train refuses those that fairseq does not have.
        sets = "." in key and not override.startswith("~")
        words.append(f"++{override.lstrip('+')}" if sets else override)
    try:
        with initialize_config_dir(str(path.parent), version_base="1.1"):
            config = compose(path.stem, words)
        for name in own:
            OmegaConf.update(config, name, None, force_add=True)
        missing = sorted(OmegaConf.missing_keys(config))
        if missing:
            remedy = f"give {missing[0]}=... after OUT"
            if missing[0] == "task.init_from_baseline":
                remedy += f", or {missing[0]}=null to train from scratch"
            raise UserError(f"{path}: {missing[0]} is required; {remedy}")
        groups: Any = OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException, YAMLError, ValueError) as error:
        reason, _, _ = str(error).partition("\nConfig search path")
        raise UserError(f"{path}: {' '.join(reason.split())}") from error
    return dict(groups)


def refuse_unknown_additions(overrides: Sequence[str]) -> None:
    """Refuse a setting that is added (`+optimization.patience=2`) to a group that has none of this name.

    fairseq ignores it. In the groups of what is registered, fairseq refuses it, after it has imported the plugins.
    """
    added = {}
    for word in overrides:
        name, dot, _ = _key(word).partition(".")
        if word.startswith("+") and dot and name not in REGISTERED:
            added[word] = _key(word)
    if not added:
        return
    from fairseq.dataclass.configs import FairseqConfig  # takes seconds

    known = set()
    for group in dataclasses.fields(FairseqConfig):
        if isinstance(group.type, type) and dataclasses.is_dataclass(group.type):
            known |= {f"{group.name}.{setting.name}" for setting in dataclasses.fields(group.type)}
    for word, key in added.items():
        if key not in known:
            raise UserError(f"{word}: fairseq has no setting {key}; correct its name")


def _key(override: str) -> str:
    return override.lstrip("+~").partition("=")[0]
