"""A configuration with its overrides, composed as fairseq-hydra-train composes it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from fairseq_capsule_runs.values import RunError, shown

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
        RunError: the file or an override is wrong, or an override sets a setting in `own`.
    """
    try:
        config = _composed(path, overrides, own)
        found = OmegaConf.to_container(config, resolve=True)
    except UnicodeDecodeError as error:
        raise RunError(f"{path}: not UTF-8 ({error.reason})") from error
    except (ValueError, TypeError, OSError, HydraException, OmegaConfBaseException, YAMLError) as error:
        raise RunError(f"{path}: {(str(error).splitlines() or [type(error).__name__])[0]}") from error
    except RecursionError as error:
        raise RunError(f"{path}: more nested groups than Hydra allows; remove some") from error
    if not isinstance(found, dict):
        raise RunError(f"{path}: no groups of settings such as 'model:'; name a configuration")
    try:
        _require_plain(found, "")
    except RunError as error:
        raise RunError(f"{path}: {error}") from error
    return {str(key): value for key, value in found.items()}


def _composed(path: Path, overrides: Sequence[str], own: dict[str, str]) -> DictConfig:
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    # A name without a dot selects a config group (size=big). All others set a value.
    pieces = [override for override in parsed if "." not in override.key_or_group]
    with initialize_config_dir(str(path.parent), version_base="1.1"):
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


def _require_sign(config: DictConfig, override: Override) -> None:
    """Raise a ValueError if a plus is missing or superfluous.

    Hydra knows all settings of a group, except of a group with a `_name`: its settings depend on the name. In such a
    group, a plus adds a setting that is not in the file.
    """
    group, _, last = override.key_or_group.rpartition(".")
    node = OmegaConf.select(config, group)
    if not isinstance(node, DictConfig) or "_name" not in node or override.is_force_add():
        return
    known = node.keys()  # `in` ignores a required setting, ???
    if last in known and override.is_add():
        raise ValueError(f"{override.input_line}: the setting is in the file; leave out the plus")
    if last not in known and not override.is_add():
        raise ValueError(
            f"{override.input_line}: no such setting in the file; +{override.input_line} adds it, "
            f"if {group} '{node['_name']}' has it"
        )


def _require_plain(group: dict[Any, Any], prefix: str) -> None:
    """Refuse required settings without a value, and values that JSON cannot represent."""
    for key, value in group.items():
        name = f"{prefix}{key}"
        if value == "???":
            raise RunError(f"{name} is required; give {name}=... after OUT")
        if isinstance(value, dict):
            _require_plain(value, f"{name}.")
            continue
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise RunError(f"{name}: not a text and not a finite number: {shown(value)}; correct it") from None
