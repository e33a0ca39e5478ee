"""Compose the configurations of the papers' systems with Hydra."""

from functools import cache

import yaml
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.tables.definitions import CONFIGS, Words


@cache
def composed(configs: str, config: str, overrides: Words) -> DictConfig:
    """Compose a configuration.

    Raises:
        LabError: it does not exist, or an override is not one of its settings.
    """
    try:
        with initialize_config_dir(str(CONFIGS / configs), version_base="1.1"):
            return compose(config, list(overrides))
    except HydraException as error:
        raise LabError(f"configs/{configs}/{config}.yaml: {str(error).splitlines()[0]}") from error


def without_defaults(configs: str, config: str, others: Words, overrides: Words) -> Words:
    """The `overrides` that change a setting of the configuration with `others`.

    Raises:
        LabError: as `composed`.
    """
    groups = tuple(word for word in overrides if not _is_setting(word))
    settings = composed(configs, config, (*others, *groups))

    def changes(word: str) -> bool:
        name, _, value = word.partition("=")
        return not _is_setting(word) or OmegaConf.select(settings, name) != yaml.safe_load(value)

    return tuple(word for word in overrides if changes(word))


def _is_setting(word: str) -> bool:
    """Whether an override is of a setting, not the choice of a group such as `size=big`."""
    return "." in word.partition("=")[0]
