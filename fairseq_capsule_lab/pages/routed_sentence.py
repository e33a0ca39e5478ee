"""The data of an inspection: one sentence and what was routed during its translation."""

from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from fairseq_capsule.inspection import is_plain, views_of
from fairseq_capsule.inspection.views import OTHER, NamedArray, View
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.pages.origin import Origin
from fairseq_capsule_lab.pages.text import SentenceScore, plain, score_of


@dataclass(frozen=True, repr=False)
class RoutedSentence:
    """One sentence, its translation, and everything that was routed.

    Attributes:
        number, collection: the number and collection of the sentence, as in `Source`.
        source, target: subwords, with end of sentence; `<unk>:` precedes a word that is not in the dictionary.
        translation: the translation of the model, as text.
        reference: the reference in the data, or None.
        arrays: the arrays of `gather_arrays` by name. Those of a second model begin with `against.`; it reads the same
            translation.
        origin: models, data, beam and date.
        other_translation: the translation of the second model.
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
        """The views to plot. The views of the model's own mechanisms come first."""
        return views_of(self.arrays)

    @property
    def routed(self) -> bool:
        """Whether the model routes anything. A model that does not has only attention."""
        return any(not is_plain(name) for name in self.arrays if not name.startswith(OTHER))

    @property
    def text(self) -> str:
        """The source sentence with subwords joined."""
        return plain(self.source)

    def score(self, translation: Optional[str] = None) -> Optional[SentenceScore]:
        """BLEU and chrF of a translation, by default the model's; None without a reference."""
        if self.reference is None:
            return None
        return score_of(self.translation if translation is None else translation, self.reference, self.origin.language)

    def view(self, name: str) -> View:
        """The view with this name.

        Raises:
            LabError: the model does not have this view.
        """
        views = {view.name: view for view in self.views}
        if name not in views:
            raise LabError(f"the model has no view {name}; choose from: {', '.join(views) or 'none'}")
        return views[name]
