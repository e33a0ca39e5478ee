"""`--bpe characters` on fairseq's command lines.

fairseq registers its spelling by characters without a config, and its commands, which look configs up by name, then do
not know it.
"""

from dataclasses import dataclass

from fairseq.dataclass import FairseqDataclass
from hydra.core.config_store import ConfigStore


@dataclass
class CharactersConfig(FairseqDataclass):
    """It has no options."""

    _name: str = "characters"


ConfigStore.instance().store(name="characters", group="bpe", node=CharactersConfig, provider="fairseq_capsule")
