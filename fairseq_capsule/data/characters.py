"""A config that makes `--bpe characters` available in fairseq's commands.

fairseq registers this encoding without a config, but its commands look up configs by name.
"""

from dataclasses import dataclass

from fairseq.dataclass import FairseqDataclass
from hydra.core.config_store import ConfigStore


@dataclass
class CharactersConfig(FairseqDataclass):
    """The config of `--bpe characters`, without options."""

    _name: str = "characters"


ConfigStore.instance().store(name="characters", group="bpe", node=CharactersConfig, provider="fairseq_capsule")
