"""The loaded models. They answer valid requests in one thread; HTTP is in other modules."""

import math
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from fairseq.hub_utils import GeneratorHubInterface

from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.pages.inspection import Inspection, Source, generated, inspect_sources
from fairseq_capsule_lab.pages.origin import describe_model
from fairseq_capsule_lab.pages.page import page_html
from fairseq_capsule_lab.pages.sentences import sentences_of_text
from fairseq_capsule_lab.pages.server.bodies import ALL, Asked, Refusal
from fairseq_capsule_lab.pages.server.guards import scripts_of
from fairseq_capsule_lab.pages.text import text_of

SHORTEST = 2  # minimum subwords of a sentence, with end of sentence
DIGITS = 6  # significant digits of a number in an answer


@dataclass(frozen=True)
class System:
    """A loaded model, named by its checkpoint."""

    name: str
    hub: GeneratorHubInterface

    def facts(self) -> Dict[str, Any]:
        model, task = describe_model(self.hub), self.hub.task
        return {
            "name": self.name,
            "architecture": model.architecture,
            "summary": model.summary,
            "parameters": model.parameters,
            "source_language": getattr(task.cfg, "source_lang", None),
            "target_language": getattr(task.cfg, "target_lang", None),
        }


class Translator:
    """Translates and inspects sentences with one or two models.

    The constructor inspects one word. This checks that the models are compatible, makes the first request as fast as
    the others, and gives the scripts of a page without text of a user.

    Args:
        system, against: the model, and a second model with the same dictionaries.
        beam: the beam size of a request without one.
        longest: maximum subwords of a sentence, with end of sentence; the limit of a model may be lower.

    Raises:
        LabError: the models are not compatible, or the limit is too low for any sentence.
    """

    def __init__(self, system: System, against: Optional[System] = None, beam: int = 5, longest: int = 256):
        self.systems = [system] if against is None else [system, against]
        self.beam = beam
        self.longest = min(longest, *(each.hub.models[0].max_positions()[0] for each in self.systems))
        if self.longest < SHORTEST:
            raise LabError(
                f"--longest {longest}: a sentence has at least {SHORTEST} subwords with its end; give a larger number"
            )
        inspection = self._inspection(Asked("a"))
        self.views: Tuple[str, ...] = tuple(view.title for view in inspection.views)
        self.page_scripts = scripts_of(page_html(inspection)) if self.views else ()

    def facts(self) -> Dict[str, Any]:
        """Facts about the models and the limits of requests."""
        return {
            "systems": [system.facts() for system in self.systems],
            "beam": self.beam,
            "longest": self.longest,
            "views": list(self.views),
        }

    def translate(self, asked: Asked) -> Dict[str, Any]:
        """The n-best lists of every model, the best hypothesis first."""
        beam = asked.beam or self.beam
        source = self._source(asked.text)
        return {
            "text": asked.text,
            "source": list(source.words),
            "systems": [self._translated(system, source, beam) for system in self.systems],
        }

    def inspect(self, asked: Asked) -> Dict[str, Any]:
        """The best translation, the views of the model, and the requested arrays.

        Raises:
            Refusal: 422 if the model does not have a requested array.
        """
        inspection = self._inspection(asked)
        names = inspection.arrays.keys() if asked.arrays == (ALL,) else asked.arrays
        missing = sorted(set(names) - inspection.arrays.keys())
        if missing:
            there = ", ".join(inspection.arrays) or "none"
            raise Refusal(422, f"no array {missing[0][:40]!r}; choose from: {there}")
        return {
            "text": asked.text,
            "source": list(inspection.source),
            "target": list(inspection.target),
            "translation": inspection.translation,
            "views": [{"name": view.name, "title": view.title} for view in inspection.views],
            "arrays": {name: _as_json(inspection.arrays[name]) for name in names},
        }

    def page(self, asked: Asked) -> str:
        """The page of the inspector for a sentence.

        Raises:
            Refusal: 404 if the model has nothing to show.
        """
        if not self.views:
            raise Refusal(404, "this model has no attention or capsules to show; use POST /translate")
        return page_html(self._inspection(asked))

    def _inspection(self, asked: Asked) -> Inspection:
        hub, *others = [system.hub for system in self.systems]
        source = self._source(asked.text)
        beam = asked.beam or self.beam
        (inspection,) = inspect_sources(hub, [source], beam=beam, against=others[0] if others else None)
        return inspection

    def _source(self, text: str) -> Source:
        (source,) = sentences_of_text(self.systems[0].hub, [text])
        if len(source.tokens) < SHORTEST:
            raise Refusal(422, "the text is empty after tokenising; type a sentence")
        if len(source.tokens) > self.longest:
            raise Refusal(
                413, f"the sentence has {len(source.tokens)} subwords, more than {self.longest}; type a shorter one"
            )
        return source

    def _translated(self, system: System, source: Source, beam: int) -> Dict[str, Any]:
        start = time.perf_counter()
        hypotheses = generated(system.hub, source.tokens.to(system.hub.device), beam)
        listed = [_hypothesis(system.hub, hypothesis) for hypothesis in hypotheses]
        seconds = time.perf_counter() - start
        return {"name": system.name, "milliseconds": round(1000 * seconds), "hypotheses": listed}


def _hypothesis(hub: GeneratorHubInterface, found: Dict[str, Any]) -> Dict[str, Any]:
    tokens = found["tokens"]
    return {
        "translation": text_of(hub, tokens),
        "score": _short(float(found["score"])),
        "subwords": [hub.tgt_dict[token] for token in tokens.tolist()],
        "log_probabilities": [_short(value) for value in found["positional_scores"].tolist()],
    }


def _as_json(array) -> Dict[str, Any]:
    values = array.values.tolist() if array.values.dtype.kind == "U" else _shortened(array.values.tolist())
    return {"axes": {axis: list(labels) for axis, labels in array.axes.items()}, "values": values}


def _shortened(values: Any) -> List[Any] | float | None:
    return [_shortened(value) for value in values] if isinstance(values, list) else _short(values)


def _short(value: float) -> float | None:
    """A number with `DIGITS` significant digits; None if it is not finite, which JSON cannot represent."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
