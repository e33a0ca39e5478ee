"""What a model routes while it translates, for notebooks, pictures and pages."""

from typing import List, Optional, Union

from fairseq.hub_utils import GeneratorHubInterface

from fairseq_capsule.inspector.inspection import Inspection, inspect_sources
from fairseq_capsule.inspector.sentences import sentences_of_text

__all__ = ["Inspection", "inspect"]


def inspect(
    hub: GeneratorHubInterface,
    sentences: Union[str, List[str]],
    beam: int = 5,
    against: Optional[GeneratorHubInterface] = None,
) -> List[Inspection]:
    """What a model routes while it translates sentences.

    Args:
        hub: what `fairseq_capsule.hub.load`, or a model's `from_pretrained`, gives.
        sentences: raw text, as `hub.translate` takes it.
        beam: of the translation.
        against: another model of the same dictionaries, which reads the same translation.

    Returns:
        An `Inspection` for each sentence: its arrays by name, `.plot()`, `.save()` and `.save_html()`.

    Raises:
        UserError: a sentence that is empty or too long, or a model of other dictionaries.
    """
    lines = [sentences] if isinstance(sentences, str) else sentences
    return list(inspect_sources(hub, sentences_of_text(hub, lines), beam=beam, against=against))
