"""The sentences to inspect: raw text, or sentences of binarised data by number."""

from typing import List, Sequence

from fairseq.hub_utils import GeneratorHubInterface
from fairseq.tokenizer import tokenize_line

from fairseq_capsule_lab.analysis.batches import load_split
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.pages.inspection import Source
from fairseq_capsule_lab.pages.text import text_of


def sentences_of_text(hub: GeneratorHubInterface, lines: Sequence[str], collection: str = "text") -> List[Source]:
    """Lines of raw text, numbered from 1; `collection` as in `Source`."""
    return [_of_text(hub, number, line, collection) for number, line in enumerate(lines, start=1)]


def sentences_of_data(hub: GeneratorHubInterface, split: str, numbers: Sequence[int]) -> List[Source]:
    """Sentences of a split of the binarised data, by the numbers of `fairseq-generate`.

    Raises:
        LabError: the number does not exist; also the errors of `load_split`.
    """
    load_split(hub.task, split)
    dataset = hub.task.dataset(split)
    for number in numbers:
        if not 0 <= number < len(dataset.src):
            raise LabError(
                f"--ids {number}: split {split} has {len(dataset.src)} sentences; give numbers from 0 to "
                f"{len(dataset.src) - 1}"
            )
    return [_of_data(hub, dataset, number, split) for number in numbers]


def _of_text(hub: GeneratorHubInterface, number: int, line: str, collection: str) -> Source:
    subwords = tokenize_line(hub.apply_bpe(hub.tokenize(line)))
    tokens = hub.src_dict.encode_line(" ".join(subwords), add_if_not_exist=False).long()
    known = ("" if subword in hub.src_dict else f"{hub.src_dict.unk_word}:" for subword in subwords)
    words = (*(mark + subword for mark, subword in zip(known, subwords)), hub.src_dict.eos_word)
    return Source(number, tokens, words, collection=collection)


def _of_data(hub: GeneratorHubInterface, dataset, number: int, split: str) -> Source:
    tokens = dataset.src[number]
    reference = None if dataset.tgt is None else text_of(hub, dataset.tgt[number])
    return Source(number, tokens, tuple(hub.src_dict[token] for token in tokens.tolist()), reference, split)
