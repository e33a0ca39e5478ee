"""A configuration with its overrides, composed as fairseq-hydra-train composes it."""

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from fairseq_capsule.errors import UserError
from fairseq_capsule_lab.errors import LabError, shown

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


def configured(path: Path, overrides: Sequence[str], own: dict[str, str]) -> dict[str, Any]:
    """The configuration with its Hydra overrides, as nested groups, without the settings in `own`.

    Raises:
        LabError: the file or an override is wrong, or an override sets a setting in `own`.
    """
    try:
        config = _composed(path, overrides, own)
        found = OmegaConf.to_container(config, resolve=True)
    except UnicodeDecodeError as error:
        raise LabError(f"{path}: not UTF-8 ({error.reason})") from error
    except (ValueError, TypeError, OSError, HydraException, OmegaConfBaseException, YAMLError) as error:
        raise LabError(f"{path}: {(str(error).splitlines() or [type(error).__name__])[0]}") from error
    except RecursionError as error:
        raise LabError(f"{path}: more nested groups than Hydra allows; remove some") from error
    if not isinstance(found, dict):
        raise LabError(f"{path}: no groups of settings such as 'model:'; name a configuration")
    try:
        _require_plain(found, "")
    except UserError as error:
        raise LabError(f"{path}: {error}") from error
    return {str(key): value for key, value in found.items()}


def _composed(path: Path, overrides: Sequence[str], own: dict[str, str]) -> DictConfig:
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    # A name without a dot selects a config group (size=big). All others set a value.
    pieces = [override for override in parsed if "." not in override.key_or_group]
    with initialize_config_dir(str(path.parent), version_base="1.1"):
        for override in pieces:
            _require_choice(path, override)
        config = compose(path.stem, [str(override.input_line) for override in pieces])
    OmegaConf.set_struct(config, False)
    for override in parsed:
        if override in pieces:
            continue
        key = override.key_or_group
        for name, setter in own.items():
            if f"{key}.".startswith(f"{name}."):
                raise ValueError(f"{override.input_line}: {setter} sets this; leave it out")
        if override.is_delete() or override.is_sweep_override():
            raise ValueError(f"{override.input_line}: not a single value; give key=value")
        _require_sign(config, override)
        OmegaConf.update(config, key, override.value(), force_add=True)
    for name in own:
        OmegaConf.update(config, name, None, force_add=True)
    return config


def _require_choice(path: Path, override: Override) -> None:
    """Raise a ValueError if an override without a dot does not select a file of a config group."""
    name, value = override.key_or_group, override.value()
    group = path.parent / name
    if group.is_dir():
        if isinstance(value, str) and not (group / f"{value}.yaml").is_file():
            choices = ", ".join(sorted(file.stem for file in group.glob("*.yaml")))
            raise ValueError(f"{override.input_line}: no such file {name}/{value}.yaml; choose from: {choices}")
        return
    config = compose(path.stem)
    names = {folder.name: folder.name for folder in path.parent.iterdir() if folder.is_dir()}
    nodes = ((str(top), node) for top, node in config.items() if isinstance(node, DictConfig))
    names |= {key: f"{top}.{key}" for top, node in nodes for key in map(str, node)}
    meant = _meant(name, names) or "; give for example optimization.max_epoch=20"
    raise ValueError(f"{override.input_line}: neither a setting, GROUP.NAME, nor a config group{meant}")


def _meant(name: str, names: dict[str, str]) -> str:
    """A hint with the name whose key is most similar; empty if none is."""
    similar = get_close_matches(name, names, 1)
    return f"; did you mean {names[similar[0]]}?" if similar else ""


def _require_known(override: Override) -> None:
    """Raise a ValueError if fairseq does not have a setting."""
    # This import takes seconds, so it is done only for a setting that is not in the configuration.
    from fairseq.dataclass.configs import FairseqConfig

    groups = {field.name: field.type for field in fields(FairseqConfig)}
    names = {f"{group}.{field.name}" for group, kind in groups.items() if is_dataclass(kind) for field in fields(kind)}
    name = override.key_or_group
    group = name.partition(".")[0]
    # The settings of groups such as model depend on a `_name`.
    if name in names or (group in groups and not is_dataclass(groups[group])):
        return
    meant = _meant(name, {each: each for each in names}) or "; leave it out"
    raise ValueError(f"{override.input_line}: fairseq has no such setting{meant}")


def _require_sign(config: DictConfig, override: Override) -> None:
    """Raise a ValueError if fairseq does not know a setting, or if a plus is missing or superfluous.

    Hydra knows all settings of a group, except of a group with a `_name`: its settings depend on the name. In such a
    group, a plus adds a setting that is not in the file.
    """
    group, _, last = override.key_or_group.rpartition(".")
    node = OmegaConf.select(config, group)
    known = node.keys() if isinstance(node, DictConfig) else ()  # `in` the node itself ignores a required setting, ???
    if "_name" not in known:
        if last not in known:
            _require_known(override)
        return
    if override.is_force_add():
        return
    if last in known and override.is_add():
        raise ValueError(f"{override.input_line}: the setting is in the file; leave out the plus")
    if last not in known and not override.is_add():
        meant = _meant(last, {key: f"{group}.{key}" for key in map(str, known)})
        raise ValueError(
            f"{override.input_line}: no such setting in the file{f'{meant} Otherwise' if meant else ';'} "
            f"+{override.input_line} adds it, if {group} '{node['_name']}' has it"
        )


def _require_plain(group: dict[Any, Any], prefix: str) -> None:
    """Refuse required settings without a value, and values that JSON cannot represent."""
    for key, value in group.items():
        name = f"{prefix}{key}"
        if value == "???":
            raise LabError(f"{name} is required; give {name}=... after OUT")
        if isinstance(value, dict):
            _require_plain(value, f"{name}.")
            continue
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise LabError(f"{name}: not a text and not a finite number: {shown(value)}; correct it") from None
