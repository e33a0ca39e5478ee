"""Inspections of sentences, as objects that a notebook can plot and save."""

import io
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
from fairseq.hub_utils import GeneratorHubInterface
from matplotlib.figure import Figure
from sacrebleu.metrics import CHRF
from torch import Tensor

from capsule_routing.errors import UserError
from capsule_routing.text.languages import bleu
from fairseq_capsule.inspection import gather_arrays, is_plain, views_of
from fairseq_capsule.inspection.views import OTHER, NamedArray, Sentence, View
from fairseq_capsule_lab import defaults
from fairseq_capsule_lab.files import write_whole
from fairseq_capsule_lab.pages.described_models import InspectedModel, describe_model
from fairseq_capsule_lab.pages.figures import plot_view
from fairseq_capsule_lab.pages.page import page_html
from fairseq_capsule_lab.pages.sentences import SourceSentence, plain, text_of


class SentenceScore(NamedTuple):
    """sacrebleu's scores of one sentence, from 0 to 100: BLEU with effective order, and chrF.

    BLEU is None if the library that its language needs is not installed.
    """

    bleu: Optional[float]
    chrf: float


def score_of(translation: str, reference: str, language: str) -> SentenceScore:
    """The scores of a translation into a language such as `de` or `zh_CN`."""
    chrf = CHRF().sentence_score(translation, [reference]).score
    try:
        metric = bleu(language, effective_order=True)
    except UserError:
        return SentenceScore(None, chrf)
    return SentenceScore(metric.sentence_score(translation, [reference]).score, chrf)


@dataclass(frozen=True)
class Origin:
    """The origin of an inspection.

    Attributes:
        model, against: the model that translated, and the one that it is compared with.
        data: the folder of the dictionaries, as given.
        language: the target language, such as `de`; empty if unknown.
        date: the time in UTC, such as `2024-01-31 12:00 UTC`.
    """

    model: InspectedModel
    against: Optional[InspectedModel]
    data: Optional[str]
    language: str
    beam: int
    date: str


@dataclass(frozen=True, repr=False)
class InspectedSentence:
    """One sentence of a collection (`SourceSentence`), its translation and everything that was routed.

    Attributes:
        source, target: subwords, with end of sentence; `<unk>:` precedes a word that is not in the dictionary.
        translation, other_translation: of the model and of a second one, as text.
        reference: the reference in the data, or None.
        raw: the raw text of the source, or empty if only the subwords are known.
        arrays: the arrays of `gather_arrays` by name. Those of a second model begin with `against.`; it reads the same
            translation.
    """

    number: int
    collection: str
    source: Tuple[str, ...]
    target: Tuple[str, ...]
    translation: str
    reference: Optional[str]
    arrays: Dict[str, NamedArray]
    origin: Origin
    other_translation: Optional[str] = None
    raw: str = ""

    def __repr__(self) -> str:
        texts = {"source": self.text, "translation": self.translation, "reference": self.reference}
        texts |= {"views": ", ".join(view.name for view in self.views) or "none", "arrays": ", ".join(self.arrays)}
        lines = [f"{name:11}  {text}" for name, text in texts.items() if text is not None]
        first = f"sentence {self.number}: {len(self.source)} subwords, {len(self.target)} of the translation"
        return "\n".join([first, *lines])

    @property
    def views(self) -> Tuple[View, ...]:
        """The views to plot. The views of the model's own mechanisms come first."""
        return views_of(self.arrays)

    @property
    def routed(self) -> bool:
        """Whether the model routes anything. A model that does not has only attention."""
        return any(not is_plain(name) for name in self.arrays if not name.startswith(OTHER))

    @property
    def text(self) -> str:
        """The source sentence: its raw text, or else its subwords joined."""
        return self.raw or plain(self.source)

    def score(self, translation: Optional[str] = None) -> Optional[SentenceScore]:
        """BLEU and chrF of a translation, by default the model's; None without a reference."""
        if self.reference is None:
            return None
        return score_of(self.translation if translation is None else translation, self.reference, self.origin.language)

    def plot(self, view: Optional[str] = None, **choices: Union[int, str]) -> Figure:
        """Plot one view, by default the first.

        Args:
            view: its name or its short name.
            choices: `layer=2`, `iteration=1`, …, by default the last. All heads or iterations are shown unless one is
                chosen.

        Raises:
            UserError: the view or the choice does not exist.
        """
        named = [each for each in self.views if view in (None, each.name, each.short)]
        if not named:
            names = ", ".join(each.name for each in self.views) or "none"
            raise UserError(f"the model has no view {view or 'to plot'}; choose from: {names}")
        return plot_view(named[0], self.arrays, {axis: str(label) for axis, label in choices.items()})

    def save(self, path: Union[str, Path]) -> None:
        """Write an `.npz` of every array.

        For each array `NAME`, the file has `NAME.axes`, the names of its dimensions, and for each dimension
        `NAME.AXIS`, its labels. `source` and `target` are the subwords.
        """
        content: Dict[str, Any] = {"source": self.source, "target": self.target}
        for name, array in self.arrays.items():
            content |= {name: array.values, f"{name}.axes": list(array.axes)}
            content |= {f"{name}.{axis}": labels for axis, labels in array.axes.items()}
        archive = io.BytesIO()
        np.savez_compressed(archive, **content)
        write_whole(path, archive.getvalue())

    def save_html(self, path: Union[str, Path]) -> None:
        """Write the page of the sentence as one self-contained file, which needs no network."""
        write_whole(path, page_html(self).encode())


def inspect_sources(
    hub: GeneratorHubInterface,
    sources: Sequence[SourceSentence],
    *,
    beam: int = defaults.BEAM,
    against: Optional[GeneratorHubInterface] = None,
) -> Iterator[InspectedSentence]:
    """Translate sentences one by one, and yield what was routed; `against` as in `pages.inspect`.

    Raises:
        UserError: a sentence is empty or too long for a model, a hub is an ensemble, or the dictionaries differ.
    """
    require_readable([hub] if against is None else [hub, against], sources)
    origin = Origin(
        model=describe_model(hub),
        against=None if against is None else describe_model(against),
        data=getattr(hub, "data", None) or getattr(hub.task.cfg, "data", None),
        language=getattr(hub.task.cfg, "target_lang", None) or "",
        beam=beam,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    for source in sources:
        tokens = source.tokens.to(hub.device)
        target = generate(hub, tokens, beam)[0]["tokens"]
        words = tuple(hub.tgt_dict[token] for token in target.tolist())
        sentence = Sentence(tokens.unsqueeze(0), target.unsqueeze(0), source.words, words)
        arrays = gather_arrays(hub.models[0], sentence)
        if against is not None:
            others = gather_arrays(against.models[0], sentence)
            arrays.update({OTHER + name: array for name, array in others.items()})
        other = None if against is None else text_of(against, generate(against, tokens, beam)[0]["tokens"])
        yield InspectedSentence(
            number=source.number,
            collection=source.collection,
            source=source.words,
            target=words,
            translation=text_of(hub, target),
            reference=source.reference,
            arrays=arrays,
            origin=origin,
            other_translation=other,
            raw=source.text,
        )


def require_readable(hubs: Sequence[GeneratorHubInterface], sources: Sequence[SourceSentence]) -> None:
    first, *others = hubs
    if any(len(hub.models) > 1 for hub in hubs):
        raise UserError("an ensemble of several checkpoints cannot be inspected; inspect one checkpoint at a time")
    longest = min(hub.models[0].max_positions()[0] for hub in hubs)
    for number, size in ((source.number, len(source.tokens)) for source in sources):
        if size < 2:
            raise UserError(f"sentence {number} is empty; remove it")
        if size > longest:
            raise UserError(f"sentence {number} has {size} subwords, more than the model's {longest}; cut it")
    if any(hub.src_dict != first.src_dict or hub.tgt_dict != first.tgt_dict for hub in others):
        raise UserError("--against: the two models have different dictionaries; compare models of one data folder")
    directions = {tuple(getattr(hub.task.cfg, f"{side}_lang", None) for side in ("source", "target")) for hub in hubs}
    if len(directions) > 1:
        pairs = " and ".join(sorted("-".join(map(str, pair)) for pair in directions))
        raise UserError(f"--against: the models translate {pairs}; compare models of one direction")


def generate(hub: GeneratorHubInterface, tokens: Tensor, beam: int) -> List[Dict[str, Tensor]]:
    """Return the hypotheses of fairseq's beam search for a source `[L]`, the best first."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'pin_memory'")  # fairseq's loader requests it also without a GPU
        return hub.generate(tokens, beam=beam)
