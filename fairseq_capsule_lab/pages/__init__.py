"""Inspect what a model routes while it translates, in notebooks, pictures and pages."""

from typing import List, Optional, Union

from fairseq.hub_utils import GeneratorHubInterface

from fairseq_capsule_lab import defaults
from fairseq_capsule_lab.pages.inspected import InspectedSentence, inspect_sources
from fairseq_capsule_lab.pages.sentences import sentences_of_text

__all__ = ["InspectedSentence", "inspect"]


def inspect(
    hub: GeneratorHubInterface,
    sentences: Union[str, List[str]],
    beam: int = defaults.BEAM,
    against: Optional[GeneratorHubInterface] = None,
) -> List[InspectedSentence]:
    """Inspect what a model routes while it translates sentences.

    Args:
        hub: the result of `fairseq_capsule.hub.load` or of a model's `from_pretrained`.
        sentences: raw text, as for `hub.translate`.
        beam: the beam size.
        against: another model with the same dictionaries, which reads the same translation.

    Returns:
        For each sentence its arrays by name, with `.plot()`, `.save()` and `.save_html()`.

    Raises:
        UserError: a sentence is empty or too long, or the models have different dictionaries.
    """
    lines = [sentences] if isinstance(sentences, str) else sentences
    return list(inspect_sources(hub, sentences_of_text(hub, lines), beam=beam, against=against))
