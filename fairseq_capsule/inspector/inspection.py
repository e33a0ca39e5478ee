"""What a model does with sentences, in an object that a notebook can plot and save."""

import io
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple, Union

import numpy as np
from fairseq.hub_utils import GeneratorHubInterface
from matplotlib.figure import Figure
from torch import Tensor

from fairseq_capsule.data.files import write_whole
from fairseq_capsule.errors import UserError
from fairseq_capsule.inspector.arrays import gather
from fairseq_capsule.inspector.figures import plot_view
from fairseq_capsule.inspector.origin import Origin, describe_model
from fairseq_capsule.inspector.text import SentenceScore, plain, score_of, text_of
from fairseq_capsule.inspector.views import is_plain, views_of
from fairseq_capsule.models.views import OTHER, NamedArray, Sentence, View


@dataclass(frozen=True)
class Source:
    """A sentence to inspect.

    Attributes:
        number: in its text or split.
        tokens: `[I]`, end of sentence included.
        words: as they were written; one that the dictionary lacks is `<unk>` to the model.
        reference: a translation to show beside the model's, where there is one.
        collection: what the number counts in: `text`, `line` of a file, or the name of a split.
    """

    number: int
    tokens: Tensor
    words: Tuple[str, ...]
    reference: Optional[str] = None
    collection: str = "text"


@dataclass(frozen=True, repr=False)
class Inspection:
    """One sentence, its translation, and all that was routed on the way.

    Attributes:
        number, collection: of the sentence, as in `Source`.
        source, target: their subwords, end of sentence included; a word that the dictionary lacks has `<unk>:` before.
        translation: the model's, as text.
        reference: the data's translation, where it has one.
        arrays: what `arrays.gather` lists, by name; a second model's begin with `against.` and read the same
            translation.
        origin: models, data, beam and date.
        other_translation: that of the model that it is compared with.
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

    def __repr__(self) -> str:
        lines = [
            f"sentence {self.number}: {len(self.source)} subwords, {len(self.target)} of the translation",
            f"source       {self.text}",
            f"translation  {self.translation}",
            f"views        {', '.join(view.name for view in self.views) or 'none'}",
            f"arrays       {', '.join(self.arrays)}",
        ]
        if self.reference is not None:
            lines.insert(3, f"reference    {self.reference}")
        return "\n".join(lines)

    @property
    def views(self) -> Tuple[View, ...]:
        """What there is to plot; the views of the model's own mechanisms come first."""
        return views_of(self.arrays)

    @property
    def routed(self) -> bool:
        """Whether the model routes anything; one that does not has its attention alone."""
        return any(not is_plain(name) for name in self.arrays if not name.startswith(OTHER))

    @property
    def text(self) -> str:
        """The source sentence, its subwords joined."""
        return plain(self.source)

    def score(self, translation: Optional[str] = None) -> Optional[SentenceScore]:
        """BLEU and chrF of a translation, the model's by default; None without a reference."""
        if self.reference is None:
            return None
        return score_of(self.translation if translation is None else translation, self.reference, self.origin.language)

    def view(self, name: str) -> View:
        """The view of that name.

        Raises:
            UserError: the model has nothing of that kind.
        """
        found = {view.name: view for view in self.views}
        if name not in found:
            raise UserError(f"the model has no {name} to show; it has: {', '.join(found) or 'nothing'}")
        return found[name]

    def plot(self, view: Optional[str] = None, **choices: Union[int, str]) -> Figure:
        """A picture of one view, the first by default.

        Args:
            choices: `layer=2`, `iteration=1`, …; by default the last. All heads, or iterations, are shown unless one is
                chosen.

        Raises:
            UserError: no such view or choice.
        """
        chosen = self.view(view or "view") if view or not self.views else self.views[0]
        return plot_view(chosen, self.arrays, {axis: str(label) for axis, label in choices.items()})

    def save(self, path: Union[str, Path]) -> None:
        """Write an `.npz` of every array.

        Beside an array `NAME` are `NAME.axes`, the names of its dimensions, and for each of these `NAME.AXIS`, the
        labels along it. `source` and `target` are the subwords.
        """
        content: Dict[str, Any] = {"source": np.array(self.source), "target": np.array(self.target)}
        for name, array in self.arrays.items():
            content[name] = array.values
            content[f"{name}.axes"] = np.array(list(array.axes))
            content.update({f"{name}.{axis}": np.array(labels) for axis, labels in array.axes.items()})
        written = io.BytesIO()
        np.savez_compressed(written, **content)
        write_whole(path, written.getvalue())

    def save_html(self, path: Union[str, Path]) -> None:
        """Write the page of the sentence: one file, which needs no other and no network."""
        from fairseq_capsule.inspector.page import page_html

        write_whole(path, page_html(self).encode())


def inspect_sources(
    hub: GeneratorHubInterface,
    sources: Sequence[Source],
    *,
    beam: int = 5,
    against: Optional[GeneratorHubInterface] = None,
) -> Iterator[Inspection]:
    """Translate sentences and gather, one after the other, what was routed.

    Args:
        hub: the model with its dictionaries.
        beam: of the translation.
        against: another model of the same dictionaries, which reads the same translation.

    Raises:
        UserError: a sentence that is empty or longer than a model reads, an ensemble, or dictionaries that differ.
    """
    hubs = [hub] if against is None else [hub, against]
    if any(len(each.models) > 1 for each in hubs):
        raise UserError("an ensemble of several checkpoints: look into one of them at a time")
    longest = min(each.models[0].max_positions()[0] for each in hubs)
    for source in sources:
        if len(source.tokens) < 2:
            raise UserError(f"sentence {source.number} is empty")
        if len(source.tokens) > longest:
            raise UserError(
                f"sentence {source.number}: {len(source.tokens)} subwords are more than the model's {longest}"
            )
    if against is not None and (against.src_dict != hub.src_dict or against.tgt_dict != hub.tgt_dict):
        raise UserError("--against: the two models have different dictionaries; compare models of one data folder")
    origin = _origin(hub, against, beam)
    for source in sources:
        tokens = source.tokens.to(hub.device)
        target = _translated(hub, tokens, beam)
        if against is not None and len(target) > against.models[0].max_positions()[1]:
            raise UserError(
                f"sentence {source.number}: its translation has {len(target)} subwords, more than the "
                f"{against.models[0].max_positions()[1]} of the model in --against"
            )
        sentence = Sentence(
            tokens.unsqueeze(0),
            target.unsqueeze(0),
            source.words,
            tuple(hub.tgt_dict[token] for token in target.tolist()),
        )
        arrays = gather(hub.models[0], sentence)
        if against is not None:
            others = gather(against.models[0], sentence)
            arrays.update({OTHER + name: array for name, array in others.items()})
        yield Inspection(
            source.number,
            source.collection,
            source.words,
            sentence.target_words,
            text_of(hub, target),
            source.reference,
            arrays,
            origin,
            None if against is None else text_of(against, _translated(against, tokens, beam)),
        )


def _translated(hub: GeneratorHubInterface, tokens: Tensor, beam: int) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'pin_memory'")  # fairseq's loader asks for it without a GPU too
        return hub.generate(tokens, beam=beam)[0]["tokens"]


def _origin(hub: GeneratorHubInterface, against: Optional[GeneratorHubInterface], beam: int) -> Origin:
    task = hub.task.cfg
    return Origin(
        model=describe_model(hub),
        against=None if against is None else describe_model(against),
        data=getattr(hub, "data", None) or getattr(task, "data", None),
        language=getattr(task, "target_lang", None) or "",
        beam=beam,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
