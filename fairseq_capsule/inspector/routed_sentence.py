"""One sentence and what was routed while it was translated: the data of an inspection."""

from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from fairseq_capsule.errors import UserError
from fairseq_capsule.inspector.origin import Origin
from fairseq_capsule.inspector.text import SentenceScore, plain, score_of
from fairseq_capsule.inspector.views import is_plain, views_of
from fairseq_capsule.models.views import OTHER, NamedArray, View


@dataclass(frozen=True, repr=False)
class RoutedSentence:
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
