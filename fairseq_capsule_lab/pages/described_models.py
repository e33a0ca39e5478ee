"""Descriptions of models for the reader of a page."""

from dataclasses import dataclass
from typing import Optional, Tuple

from fairseq.hub_utils import GeneratorHubInterface

from fairseq_capsule.mechanisms.registry import active_mechanisms

PLAIN = "routes nothing: it has only fairseq's attention"


@dataclass(frozen=True)
class InspectedModel:
    """A description of a model for the reader.

    Attributes:
        architecture: the name of the preset, or of the class.
        mechanisms: the `Mechanism.summary` of each mechanism, one sentence each.
        checkpoint: the file, as given; None if the hub does not know it.
    """

    architecture: str
    parameters: int
    mechanisms: Tuple[str, ...]
    checkpoint: Optional[str]

    @property
    def summary(self) -> str:
        """The mechanisms of the model in one sentence."""
        return "; ".join(self.mechanisms) or PLAIN

    @property
    def name(self) -> str:
        """The folder and file of the checkpoint, or the architecture."""
        return "/".join(self.checkpoint.split("/")[-2:]) if self.checkpoint else self.architecture


def describe_model(hub: GeneratorHubInterface) -> InspectedModel:
    """Describe the model of a hub."""
    model, config = hub.models[0], hub.cfg.model
    architecture = getattr(config, "_name", None) or getattr(config, "arch", None) or type(model).__name__
    if hasattr(config, "encoder_embed_dim"):  # a preset's name, such as ..._base, says nothing of changed sizes
        layers = f"{config.encoder_layers}+{config.decoder_layers} layers"
        architecture = f"{architecture} ({layers}, {config.encoder_embed_dim} wide)"
    parameters = sum(parameter.numel() for parameter in model.parameters())
    summaries = tuple(mechanism.summary for mechanism in active_mechanisms(config))
    return InspectedModel(str(architecture), parameters, summaries, getattr(hub, "checkpoint", None))
