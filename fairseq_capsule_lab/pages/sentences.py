"""Sentences to inspect, and their texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import List, Optional, Tuple

from fairseq.data.data_utils import post_process
from fairseq.hub_utils import GeneratorHubInterface
from fairseq.tokenizer import tokenize_line
from torch import Tensor

from capsule_routing.errors import UserError
from capsule_routing.text.folders import raw_lines
from fairseq_capsule.data.tokenizer import PreparedText
from fairseq_capsule_lab.analysis.batches import load_split
from fairseq_capsule_lab.evaluation.translations import subwords_of


@dataclass(frozen=True)
class SourceSentence:
    """A sentence to inspect.

    Attributes:
        number: its number in the text or split.
        tokens: `[I]`, end of sentence included.
        words: the subwords as text; the model reads `<unk>` for one that is not in the dictionary.
        reference: a translation to show beside the model's, or None.
        collection: what the number refers to: `text`, `line` of a file, or the name of a split.
        text: the raw text, or empty if only the subwords are known.
    """

    number: int
    tokens: Tensor
    words: Tuple[str, ...]
    reference: Optional[str] = None
    collection: str = "text"
    text: str = ""


def sentences_of_text(hub: GeneratorHubInterface, lines: List[str], collection: str = "text") -> List[SourceSentence]:
    """Lines of raw text, numbered from 1; `collection` as in `SourceSentence`."""
    sentences = []
    for number, line in enumerate(lines, start=1):
        subwords = tokenize_line(hub.apply_bpe(hub.tokenize(line)))
        tokens = hub.src_dict.encode_line(" ".join(subwords), add_if_not_exist=False).long()
        words = [word if word in hub.src_dict else f"{hub.src_dict.unk_word}:{word}" for word in subwords]
        words.append(hub.src_dict.eos_word)
        sentences.append(SourceSentence(number, tokens, tuple(words), collection=collection, text=line))
    return sentences


def sentences_of_data(hub: GeneratorHubInterface, split: str, numbers: Sequence[int]) -> List[SourceSentence]:
    """Sentences of a split of the binarised data, by the numbers of `fairseq-generate`.

    Their texts are the raw ones of a prepared folder if it has them, the references in the letters of its training.

    Raises:
        UserError: the number does not exist; also the errors of `load_split`.
    """
    load_split(hub.task, split)
    dataset = hub.task.dataset(split)
    count = len(dataset.src)
    sentences = []
    data, task = getattr(hub, "data", None) or hub.task.cfg.data, hub.task.cfg
    sources, targets = (raw_lines(data, split, language, count) for language in (task.source_lang, task.target_lang))
    for number in numbers:
        if not 0 <= number < count:
            raise UserError(f"--ids {number}: split {split} has {count} sentences; give numbers from 0 to {count - 1}")
        tokens = dataset.src[number]
        reference = None
        if targets:
            reference = _letters(hub, targets[number])
        elif dataset.tgt is not None:
            reference = text_of(hub, dataset.tgt[number])
        words = tuple(hub.src_dict[token] for token in tokens.tolist())
        sentences.append(SourceSentence(number, tokens, words, reference, split, sources[number] if sources else ""))
    return sentences


def text_of(hub: GeneratorHubInterface, tokens: Tensor) -> str:
    """Target tokens as text. Subwords are joined also if the hub does not know how its data was prepared."""
    line = hub.decode(tokens)
    return line if isinstance(hub.tokenizer, PreparedText) else post_process(line, subwords_of([line]))


def _letters(hub: GeneratorHubInterface, reference: str) -> str:
    """A raw reference in the letters that a model was trained with, such as lower case, for a fair score."""
    return hub.tokenizer.target.letters(reference) if isinstance(hub.tokenizer, PreparedText) else reference


def plain(words: Sequence[str]) -> str:
    """A line of subwords of subword-nmt or SentencePiece, with end of sentence, as text."""
    line = " ".join(words[:-1])
    return post_process(line, subwords_of([line]))
