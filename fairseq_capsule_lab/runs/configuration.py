"""A configuration with its overrides, composed as fairseq-hydra-train composes it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from capsule_routing.errors import UserError
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


def read_configuration(path: Path, overrides: Sequence[str], own: dict[str, str]) -> dict[str, Any]:
    """The configuration with its Hydra overrides, as nested groups, without the settings in `own`.

    It is a LabError if the file or an override is wrong, or an override sets a setting in `own`.
    """
    try:
        groups = OmegaConf.to_container(_composed(path, overrides, own), resolve=True)
        if not isinstance(groups, dict):
            raise TypeError("no groups of settings such as 'model:'; name a configuration")
        _require_plain(groups, "")
    except UnicodeDecodeError as error:
        raise LabError(f"{path}: not UTF-8 ({error.reason})") from error
    except (UserError, ValueError, TypeError, OSError, HydraException, OmegaConfBaseException, YAMLError) as error:
        reason, _, _ = str(error).partition("\nConfig search path")
        raise LabError(f"{path}: {' '.join(reason.split()) or type(error).__name__}") from error
    except RecursionError as error:
        raise LabError(f"{path}: more nested groups than Hydra allows; remove some") from error
    return {str(key): value for key, value in groups.items()}


def _composed(path: Path, overrides: Sequence[str], own: dict[str, str]) -> DictConfig:
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    # A name without a dot selects a config group (size=big). All others set a value. fairseq-hydra-train composes both
    # again, and refuses settings that fairseq does not have.
    pieces = [override for override in parsed if "." not in override.key_or_group]
    for override in pieces:
        if not (path.parent / override.key_or_group).is_dir():
            problem = "neither a setting, GROUP.NAME, nor a config group"
            raise ValueError(f"{override.input_line}: {problem}; give for example optimization.max_epoch=20")
    with initialize_config_dir(str(path.parent), version_base="1.1"):
        config = compose(path.stem, [str(override.input_line) for override in pieces])
    OmegaConf.set_struct(config, False)
    for override in parsed:
        key = override.key_or_group
        for name, setter in own.items():
            if f"{key}.".startswith(f"{name}."):
                raise ValueError(f"{override.input_line}: {setter} sets this; leave it out")
        if override in pieces:
            continue
        if override.is_delete() or override.is_sweep_override():
            raise ValueError(f"{override.input_line}: not a single value; give key=value")
        OmegaConf.update(config, key, override.value(), force_add=True)
    for name in own:
        OmegaConf.update(config, name, None, force_add=True)
    return config


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
