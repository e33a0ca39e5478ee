"""The loaded models. They answer valid requests in one thread; HTTP is in other modules."""

import math
import time
from typing import Any, Dict

from fairseq.hub_utils import GeneratorHubInterface

from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.pages.inspection import InspectedSentence, generate, inspect_sources
from fairseq_capsule_lab.pages.page import page_html
from fairseq_capsule_lab.pages.sentences import SourceSentence, describe_model, sentences_of_text, text_of
from fairseq_capsule_lab.pages.server.requests import ALL, Refusal, SentenceRequest

SHORTEST = 2  # minimum subwords of a sentence, with end of sentence
DIGITS = 6  # significant digits of a number in an answer


class Translator:
    """Translates and inspects sentences with one or two models with the same dictionaries.

    The constructor inspects one word. This checks that the models are compatible, and makes the first request as fast
    as the others.

    Args:
        beam: the beam size of a request without one.
        longest: maximum subwords of a sentence, with end of sentence; the limit of a model may be lower.

    Raises:
        LabError: the models are not compatible, or the limit is too low for any sentence.
    """

    def __init__(self, *hubs: GeneratorHubInterface, beam: int = 5, longest: int = 256):
        self.hubs = hubs
        self.beam = beam
        self.longest = min(longest, *(loaded.models[0].max_positions()[0] for loaded in self.hubs))
        if self.longest < SHORTEST:
            least = f"a sentence has at least {SHORTEST} subwords with its end"
            raise LabError(f"--longest {longest}: {least}; give a larger number")
        self.views = tuple(view.title for view in self._inspection(SentenceRequest("a")).views)

    def facts(self) -> Dict[str, Any]:
        """Facts about the models and the limits of requests."""
        systems = [_facts(hub) for hub in self.hubs]
        return {"systems": systems, "beam": self.beam, "longest": self.longest, "views": self.views}

    def translate(self, request: SentenceRequest) -> Dict[str, Any]:
        """The n-best lists of every model, the best hypothesis first."""
        source = self._source(request.text)
        systems = [_translate(hub, source, request.beam or self.beam) for hub in self.hubs]
        return {"text": request.text, "source": source.words, "systems": systems}

    def inspect(self, request: SentenceRequest) -> Dict[str, Any]:
        """The best translation, the views, and the requested arrays; refuses with 422 an array that is missing."""
        inspection = self._inspection(request)
        names = inspection.arrays.keys() if request.arrays == (ALL,) else request.arrays
        missing = sorted(set(names) - inspection.arrays.keys())
        if missing:
            raise Refusal(422, f"no array {missing[0][:40]!r}; choose from: {', '.join(inspection.arrays) or 'none'}")
        arrays = {name: inspection.arrays[name] for name in names}
        return {
            "text": request.text,
            "source": inspection.source,
            "target": inspection.target,
            "translation": inspection.translation,
            "views": [{"name": view.name, "title": view.title} for view in inspection.views],
            "arrays": {
                name: {"axes": array.axes, "values": _round(array.values.tolist())} for name, array in arrays.items()
            },
        }

    def page(self, request: SentenceRequest) -> str:
        """The page of the inspector for a sentence; refuses with 404 if the model has nothing to show."""
        if not self.views:
            raise Refusal(404, "this model has no attention or capsules to show; use POST /translate")
        return page_html(self._inspection(request))

    def _inspection(self, request: SentenceRequest) -> InspectedSentence:
        hub, against = (*self.hubs, None)[:2]
        source = self._source(request.text)
        (inspection,) = inspect_sources(hub, [source], beam=request.beam or self.beam, against=against)
        return inspection

    def _source(self, text: str) -> SourceSentence:
        (source,) = sentences_of_text(self.hubs[0], [text])
        if len(source.tokens) < SHORTEST:
            raise Refusal(422, "the text is empty after tokenising; type a sentence")
        if len(source.tokens) > self.longest:
            long = f"the sentence has {len(source.tokens)} subwords, more than {self.longest}"
            raise Refusal(413, f"{long}; type a shorter one")
        return source


def _facts(hub: GeneratorHubInterface) -> Dict[str, Any]:
    model = describe_model(hub)
    task = hub.task.cfg
    return {
        "name": model.name,
        "architecture": model.architecture,
        "summary": model.summary,
        "parameters": model.parameters,
        "source_language": getattr(task, "source_lang", None),
        "target_language": getattr(task, "target_lang", None),
    }


def _translate(hub: GeneratorHubInterface, source: SourceSentence, beam: int) -> Dict[str, Any]:
    start = time.perf_counter()
    hypotheses = [
        {
            "translation": text_of(hub, hypothesis["tokens"]),
            "score": _round(float(hypothesis["score"])),
            "subwords": [hub.tgt_dict[token] for token in hypothesis["tokens"].tolist()],
            "log_probabilities": _round(hypothesis["positional_scores"].tolist()),
        }
        for hypothesis in generate(hub, source.tokens.to(hub.device), beam)
    ]
    milliseconds = round(1000 * (time.perf_counter() - start))
    return {"name": describe_model(hub).name, "milliseconds": milliseconds, "hypotheses": hypotheses}


def _round(value: Any) -> Any:
    """Numbers with `DIGITS` significant digits, in lists of any depth; None for one that is not finite; texts."""
    if isinstance(value, list):
        return [_round(item) for item in value]
    if isinstance(value, str):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
