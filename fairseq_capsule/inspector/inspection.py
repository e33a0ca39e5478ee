"""What a model does with sentences, in an object that a notebook can plot and save."""

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, Optional, Sequence, Tuple, Union

import numpy as np
from fairseq.data.data_utils import post_process
from fairseq.hub_utils import GeneratorHubInterface
from matplotlib.figure import Figure
from torch import Tensor

from fairseq_capsule.data.files import write_whole
from fairseq_capsule.errors import UserError
from fairseq_capsule.inspector.arrays import gather
from fairseq_capsule.inspector.figures import plot_view
from fairseq_capsule.inspector.views import is_plain, views_of
from fairseq_capsule.models.views import OTHER, NamedArray, Sentence, View


@dataclass(frozen=True)
class Source:
    """A sentence to inspect.

    Attributes:
        number: what its files are called by.
        tokens: `[I]`, end of sentence included.
        words: as they were written; one that the dictionary lacks is `<unk>` to the model.
        reference: a translation to show beside the model's, where there is one.
    """

    number: int
    tokens: Tensor
    words: Tuple[str, ...]
    reference: Optional[str] = None


@dataclass(frozen=True, repr=False)
class Inspection:
    """One sentence, its translation, and all that was routed on the way.

    Attributes:
        number: of the sentence.
        source, target: their subwords, end of sentence included; a word that the dictionary lacks has `<unk>:` before.
        translation: the model's, as text.
        reference: the data's translation, where it has one.
        arrays: what `arrays.gather` lists, by name; a second model's begin with `against.` and read the same
            translation.
    """

    number: int
    source: Tuple[str, ...]
    target: Tuple[str, ...]
    translation: str
    reference: Optional[str]
    arrays: Dict[str, NamedArray]

    def __repr__(self) -> str:
        lines = [
            f"sentence {self.number}: {len(self.source)} subwords, {len(self.target)} of the translation",
            f"source       {joined(' '.join(self.source[:-1]))}",
            f"translation  {self.translation}",
            f"views        {', '.join(view.name for view in self.views) or 'none'}",
            f"arrays       {', '.join(self.arrays)}",
        ]
        if self.reference is not None:
            lines.insert(3, f"reference    {self.reference}")
        return "\n".join(lines)

    @property
    def views(self) -> Tuple[View, ...]:
        """What there is to plot."""
        return views_of(self.arrays)

    @property
    def routed(self) -> bool:
        """Whether the model routes anything; one that does not has its attention alone."""
        return any(not is_plain(name) for name in self.arrays if not name.startswith(OTHER))

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
        chosen = self.view(view) if view or not self.views else self.views[0]
        return plot_view(chosen, self.arrays, {axis: str(label) for axis, label in choices.items()})

    def save(self, path: Union[str, Path]) -> None:
        """Write an `.npz` of every array.

        Beside an array `NAME` are `NAME.axes`, the names of its dimensions, and for each of these `NAME.AXIS`, the
        labels along it. `source` and `target` are the subwords.
        """
        content: Dict[str, np.ndarray] = {"source": np.array(self.source), "target": np.array(self.target)}
        for name, array in self.arrays.items():
            content[name] = array.values
            content[f"{name}.axes"] = np.array(list(array.axes))
            content.update({f"{name}.{axis}": np.array(labels) for axis, labels in array.axes.items()})
        written = io.BytesIO()
        np.savez_compressed(written, **content)
        write_whole(path, written.getvalue())


def inspect(
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
    for source in sources:
        tokens = source.tokens.to(hub.device)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "'pin_memory'")  # fairseq's loader asks for it without a GPU too
            target = hub.generate(tokens, beam=beam)[0]["tokens"]
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
            source.number, source.words, sentence.target_words, text_of(hub, target), source.reference, arrays
        )


def text_of(hub: GeneratorHubInterface, tokens: Tensor) -> str:
    """Target tokens as text; subwords are joined also where the hub was not told of any."""
    return joined(hub.decode(tokens))


def joined(line: str) -> str:
    """A line of subword-nmt's subwords, or of SentencePiece's, as text."""
    return post_process(line, "sentencepiece" if "▁" in line else "subword_nmt")
