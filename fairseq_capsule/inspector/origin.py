"""What an inspection comes from: models, data, beam, date."""

from dataclasses import dataclass
from typing import Optional, Tuple

from fairseq.hub_utils import GeneratorHubInterface

from fairseq_capsule.models.mechanism import active_mechanisms

PLAIN = "routes nothing: it has fairseq's attention alone"


@dataclass(frozen=True)
class InspectedModel:
    """A model, for the reader.

    Attributes:
        architecture: the preset's name, or the class's.
        parameters: how many it has.
        mechanisms: one sentence for each of its mechanisms, `Mechanism.summary`.
        checkpoint: the file, as it was named; None where the hub does not know it.
    """

    architecture: str
    parameters: int
    mechanisms: Tuple[str, ...]
    checkpoint: Optional[str]

    @property
    def summary(self) -> str:
        """What the model does, in one sentence."""
        return "; ".join(self.mechanisms) or PLAIN

    @property
    def name(self) -> str:
        """The checkpoint's folder and file, or the architecture."""
        return "/".join(self.checkpoint.split("/")[-2:]) if self.checkpoint else self.architecture


@dataclass(frozen=True)
class Origin:
    """Where an inspection comes from.

    Attributes:
        model: what translated.
        against: the model that it is compared with.
        data: the folder of the dictionaries, as it was named.
        language: of the translation, as `de`; empty where it is not known.
        beam: of the translation.
        date: when, in UTC, as `2024-01-31 12:00 UTC`.
    """

    model: InspectedModel
    against: Optional[InspectedModel]
    data: Optional[str]
    language: str
    beam: int
    date: str


def describe_model(hub: GeneratorHubInterface) -> InspectedModel:
    """What a reader should know of a hub's model."""
    model = hub.models[0]
    config = hub.cfg.model
    architecture = getattr(config, "_name", None) or getattr(config, "arch", None) or type(model).__name__
    return InspectedModel(
        architecture=str(architecture),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        mechanisms=tuple(mechanism.summary for mechanism in active_mechanisms(config)),
        checkpoint=getattr(hub, "checkpoint", None),
    )
