"""The origin of an inspection: models, data, beam, date."""

from dataclasses import dataclass
from typing import Optional, Tuple

from fairseq.hub_utils import GeneratorHubInterface

from fairseq_capsule.mechanisms.base import active_mechanisms

PLAIN = "routes nothing: it has only fairseq's attention"


@dataclass(frozen=True)
class InspectedModel:
    """A description of a model for the reader.

    Attributes:
        architecture: the name of the preset, or of the class.
        parameters: the number of parameters.
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


@dataclass(frozen=True)
class Origin:
    """The origin of an inspection.

    Attributes:
        model: the model that translated.
        against: the model that it is compared with.
        data: the folder of the dictionaries, as given.
        language: the target language, such as `de`; empty if unknown.
        beam: the beam size.
        date: the time in UTC, such as `2024-01-31 12:00 UTC`.
    """

    model: InspectedModel
    against: Optional[InspectedModel]
    data: Optional[str]
    language: str
    beam: int
    date: str


def describe_model(hub: GeneratorHubInterface) -> InspectedModel:
    """Describe the model of a hub."""
    model = hub.models[0]
    config = hub.cfg.model
    architecture = getattr(config, "_name", None) or getattr(config, "arch", None) or type(model).__name__
    return InspectedModel(
        architecture=str(architecture),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        mechanisms=tuple(mechanism.summary for mechanism in active_mechanisms(config)),
        checkpoint=getattr(hub, "checkpoint", None),
    )
