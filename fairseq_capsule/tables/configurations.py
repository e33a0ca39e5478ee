"""The configurations of the papers' systems, as Hydra composes them."""

from functools import cache

import yaml
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from fairseq_capsule.errors import UserError
from fairseq_capsule.tables.definitions import CONFIGS, Words


@cache
def composed(configs: str, config: str, overrides: Words) -> DictConfig:
    """A configuration as Hydra composes it.

    Raises:
        UserError: it is not there, or an override is not one of its settings.
    """
    try:
        with initialize_config_dir(str(CONFIGS / configs), version_base="1.1"):
            return compose(config, list(overrides))
    except HydraException as error:
        raise UserError(f"configs/{configs}/{config}.yaml: {str(error).splitlines()[0]}") from error


def without_defaults(configs: str, config: str, others: Words, overrides: Words) -> Words:
    """Those of `overrides` that change something in the configuration with `others`.

    Raises:
        UserError: as `composed`.
    """
    groups = tuple(word for word in overrides if not _is_setting(word))
    settings = composed(configs, config, (*others, *groups))

    def changes(word: str) -> bool:
        name, _, value = word.partition("=")
        return not _is_setting(word) or OmegaConf.select(settings, name) != yaml.safe_load(value)

    return tuple(word for word in overrides if changes(word))


def _is_setting(word: str) -> bool:
    """Whether an override is of a setting, and not the choice of a piece such as `size=big`."""
    return "." in word.partition("=")[0]
