"""Which source words PAST and FUTURE hold, compared with word alignments.

A source word is translated at step `t` if the last target word that is aligned with it was generated before `t`.
"""

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import post_process
from fairseq.models import BaseFairseqModel
from torch import Tensor

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.models import load_with_data
from fairseq_capsule.inspection import INSPECTIONS, assigning_mechanism
from fairseq_capsule.models.outputs import evaluating
from fairseq_capsule_lab.analysis.alignment import Links, align, grow_diag_final_and
from fairseq_capsule_lab.analysis.batches import batches, load_split
from fairseq_capsule_lab.analysis.charts import points
from fairseq_capsule_lab.analysis.output import Analysis, column, make_analysis
from fairseq_capsule_lab.evaluation.translations import subwords_of

Shares = np.ndarray
NEAR = 1  # steps
SAMPLES = 1000  # of the bootstrap
ATTENTION, POSITION = "cross-attention so far", "position alone"


class Assignment(NamedTuple):
    """What a system says of the words of one sentence, all `[T, I]` by step and source word.

    Attributes:
        past: how much of a word is translated; only its order matters.
        margin: a word counts as translated where this is above 0.
        redundant: how much of a word has no translation; None if the system has no such content.
    """

    past: Shares
    margin: Shares
    redundant: Optional[Shares]


class Rates(NamedTuple):
    """The rates of one sentence; None where a rate has no meaning.

    Attributes:
        area: the area under the curve that separates translated from untranslated words by `past`, over all steps.
        near: the share of the aligned words whose `margin` first passes 0 within one step of their alignment.
        precision: the average precision with which `redundant` ranks words without a link first.
    """

    area: Optional[float]
    near: Optional[float]
    precision: Optional[float]


@dataclass(frozen=True)
class AssignmentRow:
    system: str = column("system")
    area: Optional[float] = column("area under the curve", digits=3)
    area_interval: str = column("95%")
    near: Optional[float] = column("within one step", digits=3)
    near_interval: str = column("95%")
    precision: Optional[float] = column("average precision, no link", digits=3)
    precision_interval: str = column("95%")
    sentences: int = column("sentences")


def sentence_rates(assignment: Assignment, links: Links, ends: Sequence[int]) -> Rates:
    """Compute the rates of a sentence.

    Args:
        links: source word and target word, from 0.
        ends: the step that generates the last subword of each target word.
    """
    steps, words = assignment.past.shape
    last = {word: max(ends[target] for source, target in links if source == word) for word in {i for i, _ in links}}
    aligned = sorted(last)
    translated = np.arange(steps)[:, None] > np.array([last[word] for word in aligned])[None]
    area = area_under_curve(assignment.past[:, aligned][translated], assignment.past[:, aligned][~translated])
    passed = [_first_above(assignment.margin[:, word]) for word in aligned]
    hits = [step is not None and abs(step - last[word] - 1) <= NEAR for word, step in zip(aligned, passed)]
    precision = None
    if assignment.redundant is not None:
        precision = average_precision(assignment.redundant.mean(0), [word not in last for word in range(words)])
    return Rates(area, sum(hits) / len(hits) if hits else None, precision)


def _first_above(margin: Shares) -> Optional[int]:
    above = np.flatnonzero(margin > 0)
    return int(above[0]) if len(above) else None


def area_under_curve(positive: Shares, negative: Shares) -> Optional[float]:
    """Return the probability that a positive value is above a negative one, where equal values count half."""
    if not len(positive) or not len(negative):
        return None
    ordered = np.sort(negative)
    below, upto = (np.searchsorted(ordered, positive, side) for side in ("left", "right"))
    return float((below + upto).mean() / (2 * len(negative)))


def average_precision(scores: Shares, relevant: Sequence[bool]) -> Optional[float]:
    """Return the mean precision at each relevant item, the highest score first; of equal scores, the first item."""
    if not any(relevant) or all(relevant):
        return None
    hits = np.asarray(relevant)[np.argsort(-scores, kind="stable")]
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())


def mean_and_interval(values: Sequence[Optional[float]]) -> Tuple[Optional[float], str]:
    """Return the mean over sentences, and its 95% interval by a bootstrap of sentences."""
    known = np.array([value for value in values if value is not None])
    if not len(known):
        return None, ""
    drawn = np.random.default_rng(1).integers(len(known), size=(SAMPLES, len(known)))
    low, high = np.percentile(known[drawn].mean(1), [2.5, 97.5])
    return float(known.mean()), f"{low:.3f} to {high:.3f}"


def words_of(tokens: Sequence[str], kind: str) -> List[int]:
    """Return the number of the word, from 0, that each subword belongs to.

    Args:
        kind: the kind of subwords, as `subwords_of` names it.
    """
    if kind == "sentencepiece":
        begins = [token.startswith("▁") or not number for number, token in enumerate(tokens)]
    else:
        begins = [not number or not tokens[number - 1].endswith("@@") for number in range(len(tokens))]
    return [number - 1 for number in np.cumsum(begins).tolist()]


def joined(shares: Shares, words: Sequence[int], mean: bool = True) -> Shares:
    """Return shares of words `[T, words]` from those of their subwords `[T, I]`: the mean, or the sum."""
    total = np.zeros((len(shares), max(words, default=-1) + 1))
    for subword, word in enumerate(words):
        total[:, word] += shares[:, subword]
    return total / np.bincount(words) if mean else total


def assignments(
    model: BaseFairseqModel, tokens: Tensor, previous: Tensor, sources: Sequence[List[int]]
) -> Iterator[Dict[str, Assignment]]:
    """Yield, for each sentence of a batch, what the model and two controls say of its words.

    Args:
        tokens: `[B, I]`, padded on either side.
        previous: what the decoder reads, `[B, T]`, padded on either side.
        sources: the word of each subword of a source, without the end of the sentence.
    """
    mechanism = assigning_mechanism(model)
    assert mechanism is not None
    routed = INSPECTIONS[mechanism.name].assignment(model, tokens, previous).float().cpu().numpy()
    with evaluating(model):
        encoded = model.encoder(tokens, tokens.ne(model.encoder.padding_idx).sum(1))
        attention = model.decoder(previous, encoder_out=encoded)[1]["attn"][0].float().cpu().numpy()
    special = (model.encoder.padding_idx, model.decoder.dictionary.eos())
    for number, words in enumerate(sources):
        places = [place for place, token in enumerate(tokens[number].tolist()) if token not in special]
        steps = previous[number].ne(model.decoder.dictionary.pad()).cpu().numpy()
        own = routed[number, steps][:, places]
        past, future = (joined(own[..., content], words) for content in (0, 1))
        redundant = joined(own[..., 2], words) if own.shape[-1] > 2 else None
        attended = joined(attention[number, steps][:, places], words, mean=False)
        so_far = np.cumsum(attended, 0) - attended
        position = np.arange(len(past))[:, None] / len(past) - np.arange(past.shape[1]) / past.shape[1]
        yield {
            "model": Assignment(past, past - future, redundant),
            ATTENTION: Assignment(so_far, so_far - 0.5, np.broadcast_to(-attended.sum(0), so_far.shape)),
            POSITION: Assignment(position, position, None),
        }


@torch.no_grad()
def assignment_rows(
    name: str,
    checkpoint: Path,
    data: Path,
    split: str,
    alignments: Sequence[Links],
) -> List[AssignmentRow]:
    """Return the rates of a model and of the controls on a split, with teacher forcing.

    Args:
        alignments: the links of each sentence of the split, in its order.

    Raises:
        UserError: the model assigns no source words, or the alignments do not fit the split; also the errors of
            `load_with_data`.
    """
    model, _, task = load_with_data(checkpoint, data)
    if assigning_mechanism(model) is None:
        problem = "no mechanism of the model assigns source words to PAST and FUTURE"
        raise UserError(f"{checkpoint}: {problem}; give a model that was trained with --past-future")
    rates: Dict[str, List[Rates]] = {}
    number = 0
    for sample in batches(checkpoint, task, split, f"assignment {name}"):
        source, target = sample["net_input"]["src_tokens"], sample["target"]
        sides = [_words(task.source_dictionary, source), _words(task.target_dictionary, target)]
        systems_of = assignments(model, source, sample["net_input"]["prev_output_tokens"], sides[0])
        for identity, *words, systems in zip(sample["id"].tolist(), *sides, systems_of):
            links = _links_of(alignments, identity, words)
            ends = np.searchsorted(words[1], np.arange(max(words[1], default=-1) + 1), "right") - 1
            for system, assignment in systems.items():
                label = name if system == "model" else f"{name}: {system}"
                rates.setdefault(label, []).append(sentence_rates(assignment, links, ends.tolist()))
            number += 1
    if number != len(alignments):
        raise UserError(f"--alignments: {len(alignments)} lines, but {split} has {number} sentences")
    return [_row(system, values) for system, values in rates.items()]


def align_split(checkpoint: Path, data: Path, split: str, training: Tuple[Sequence[str], Sequence[str]]) -> List[Links]:
    """Align the sentences of a split by eflomal.

    Args:
        checkpoint: a model of the data, for its dictionaries.
        training: sources and targets to learn from, tokenised as the data is.

    Raises:
        UserError: as in `load_with_data` and `align`.
    """
    _, _, task = load_with_data(checkpoint, data)
    load_split(task, split)
    dataset = task.dataset(split)
    sides = [(dataset.src, task.source_dictionary), (dataset.tgt, task.target_dictionary)]
    of_split = [texts_by_word(dictionary, [side[number] for number in range(len(side))]) for side, dictionary in sides]
    directions = align(*([*texts, *more] for texts, more in zip(of_split, training)))
    return [grow_diag_final_and(*both) for both in zip(*directions)][: len(dataset)]


def texts_by_word(dictionary: Dictionary, sentences: Sequence[Tensor]) -> List[str]:
    """The text of sentences, with a space between the words that `words_of` counts."""
    lines = [[dictionary[token] for token in tokens[:-1].tolist()] for tokens in sentences]
    kind = subwords_of([" ".join(line) for line in lines])
    texts = []
    for line in lines:
        of_words = groupby(zip(words_of(line, kind), line), key=lambda pair: pair[0])
        words = [post_process(" ".join(subword for _, subword in pairs), kind) for _, pairs in of_words]
        texts.append(" ".join(word or "▁" for word in words))  # a space that is a piece of its own is a word
    return texts


def _words(dictionary: Dictionary, batch: Tensor) -> List[List[int]]:
    """Return the words of the subwords of each sentence, without padding and the end of the sentence."""
    special = (dictionary.pad(), dictionary.eos())
    texts = [[dictionary[token] for token in line if token not in special] for line in batch.tolist()]
    kind = subwords_of([" ".join(text) for text in texts])
    return [words_of(text, kind) for text in texts]


def _links_of(alignments: Sequence[Links], number: int, words: Sequence[Sequence[int]]) -> Links:
    """Return the links of a sentence, or refuse those that are not of it."""
    links = alignments[number] if number < len(alignments) else set()
    source, target = (max(side, default=-1) for side in words)
    outside = next((link for link in sorted(links) if link[0] > source or link[1] > target), None)
    if outside:
        raise UserError(
            f"--alignments, line {number + 1}: {outside[0]}-{outside[1]}, but the sentence has {source + 1} and "
            f"{target + 1} words; give the alignments of this split"
        )
    return links


def _row(system: str, rates: Sequence[Rates]) -> AssignmentRow:
    area, near, precision = (mean_and_interval(values) for values in zip(*rates))
    return AssignmentRow(system, *area, *near, *precision, len(rates))


def analyze_assignment(
    names: Sequence[str],
    checkpoints: Sequence[Path],
    data: Path,
    split: str,
    alignments: Sequence[Links],
) -> Analysis:
    """An analysis with the rates of every model and of its controls."""
    rows: List[AssignmentRow] = []
    for name, path in zip(names, checkpoints):
        rows += assignment_rows(name, path, data, split, alignments)
    title = "The source words that PAST and FUTURE hold"
    text = (
        f"On {split}, with teacher forcing, against word alignments. A "
        "word is translated at a step if its last aligned target word was generated before. Area under the curve: the "
        "probability that the PAST share of a translated word is above that of an untranslated word, over all steps "
        "of a sentence. Within one step: the share of the aligned words whose PAST share first passes their FUTURE "
        "share within one step of their alignment. Average precision: how well the redundant share ranks the words "
        "without a link. Controls: the cross-attention of the last layer, mean over heads, summed over the steps so "
        "far (passed at 0.5; redundant: little attention in all); and the position alone, t/T − i/I. Means over "
        f"sentences; 95% by a bootstrap of sentences ({SAMPLES} samples)."
    )
    panels = {
        label: {row.system: (value, 0.0) for row in rows if (value := getattr(row, field)) is not None}
        for field, label in (("area", "area under the curve"), ("near", "within one step"))
    }
    return make_analysis("assignment", title, text, rows, points(panels, title))
