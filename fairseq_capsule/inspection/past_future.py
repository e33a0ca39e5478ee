"""PAST and FUTURE: which source words are translated at each target step (Zheng et al. 2019)."""

from typing import Any, Dict, Mapping, Tuple

import numpy as np
import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

from capsule_routing.losses import bag_overlap
from capsule_routing.modules import PastFutureAttention, PastFutureOutput
from fairseq_capsule.inspection.statistics import Mean, Statistics, capsule_norms, coupling_entropy, mean_where
from fairseq_capsule.inspection.views import Inspection, NamedArray, Sentence, named, numbers, views_in_file
from fairseq_capsule.models.outputs import encode, encoder_states, evaluating

CONTENTS = ("PAST", "FUTURE", "redundant")
TOP_WORDS = 10


class PastFutureInspection(Inspection):
    """The source words in PAST and in FUTURE, and the words that these predict.

    Arrays:
        `assignment` `[target, source, content]`: the share of each source word in the PAST, FUTURE and redundant
            capsules, before the target word of that row is generated.
        `past_future_attention` `[target, source, content]`, with `--past-future attn` in place of `assignment`: the
            attention of PAST and of FUTURE to each source word. Each sums to 1 over the source.
        `past_words`, `past_probabilities`, `future_words`, `future_probabilities` `[target, rank]`: the most probable
            words, if the model has the parameters of the bag-of-words loss.
    """

    views = views_in_file("past_future")

    def arrays(self, model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
        if getattr(model.decoder, "past_future", None) is None:
            return {}
        routed = past_future(model, sentence.source, sentence.previous)
        shares, steps = routed.assignment[0], sentence.target_words
        contents = CONTENTS[: shares.size(-1)]
        attends = isinstance(model.decoder.past_future.routing, PastFutureAttention)
        name = "past_future_attention" if attends else "assignment"
        arrays = {name: named(shares, target=steps, source=sentence.source_words, content=contents)}
        dictionary = model.decoder.dictionary
        if model.decoder.past_future.bow is None:
            return arrays
        embeddings = model.decoder.output_embeddings
        for name, bag in zip(("past", "future"), model.decoder.past_future.predicted_bags(routed)):
            probabilities, tokens = (bag @ embeddings.t()).softmax(-1).topk(min(TOP_WORDS, len(embeddings)))
            axes = {"target": steps, "rank": numbers(tokens.size(-1))}
            words = np.array([[dictionary[token] for token in step] for step in tokens[0].tolist()])
            arrays[f"{name}_words"] = NamedArray(words, axes)
            arrays[f"{name}_probabilities"] = named(probabilities[0], **axes)
        return arrays

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """Return the share of the source words in each content, the entropy of the couplings and the capsules' norms.

        `moved` is the share of the source words that are FUTURE at the first step and PAST at the last. With two
        attentions (`--past-future attn`) there are no shares, and the entropy is over the words. A model with the heads
        of the bag-of-words loss also has `overlap_past` and `overlap_future`, the share of each bag that PAST and
        FUTURE predict (Zheng et al. 2019, §4.3).
        """
        encoded = encode(model, source)
        routed = model.decoder(previous, encoder_out=encoded)[1]["past_future"]
        source_padding = encoder_states(encoded)[1]
        step_padding = previous.eq(model.decoder.dictionary.pad())[:, :, None]
        padding = (step_padding | source_padding[:, None, :]).unsqueeze(-1)
        shares_out = not isinstance(model.decoder.past_future.routing, PastFutureAttention)
        contents = torch.cat([routed.past, routed.future], -1)
        norm, dead = capsule_norms(contents.unflatten(-1, (2 * routed.capsules_per_content, -1)), step_padding)
        statistics = {"entropy": coupling_entropy(routed.coupling, -1 if shares_out else -2, padding)}
        if shares_out:
            shares = routed.assignment
            for number, content in enumerate(CONTENTS[: shares.size(-1)]):
                statistics[content.lower()] = mean_where(shares[..., number], ~padding.squeeze(-1))
            statistics["moved"] = moved_words(shares[..., 0], shares[..., 1], source_padding, step_padding.squeeze(-1))
        if model.decoder.past_future.bow is not None:
            bags = model.decoder.past_future.predicted_bags(routed)
            target = tokens_after(previous, step_padding.squeeze(-1))
            overlap = bag_overlap(*bags, model.decoder.output_embeddings, target, step_padding.squeeze(-1))
            statistics["overlap_past"] = Mean(overlap.past, overlap.past_sentences)
            statistics["overlap_future"] = Mean(overlap.future, overlap.future_sentences)
        return {**statistics, "norm": norm, "dead": dead}

    def predicts_bags(self, model: BaseFairseqModel) -> bool:
        return model.decoder.past_future.bow is not None

    def bags(self, model: BaseFairseqModel, net_input: Mapping[str, Any]) -> Tuple[Tensor, Tensor]:
        """Return `W^P Ω^P` and `W^F Ω^F`, which the bag-of-words loss trains."""
        routed = model(**net_input)[1]["past_future"]
        return model.decoder.past_future.predicted_bags(routed)

    def assignment(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Tensor:
        return past_future(model, source, previous).assignment


def tokens_after(previous: Tensor, padding: Tensor) -> Tensor:
    """Return the target `[B, T]` of the tokens that the decoder reads, which begin with the end-of-sentence token.

    `previous` is padded on either side; `padding` `[B, T]` is True there.
    """
    first, last = _ends(padding)
    return previous.roll(-1, 1).scatter(1, last, previous.gather(1, first))


def moved_words(past: Tensor, future: Tensor, padding: Tensor, target_padding: Tensor) -> Mean:
    """Return the share of the source words that are FUTURE at the first step and PAST at the last.

    A word belongs to the content with the larger share.

    Args:
        past, future: shares `[B, T, I]` of each source word before each step.
        padding: `[B, I]`, `target_padding`: `[B, T]`; True marks padding.
    """
    first, last = (place.unsqueeze(2).expand(-1, 1, past.size(2)) for place in _ends(target_padding))
    before = (future.gather(1, first) > past.gather(1, first)).squeeze(1)
    after = (past.gather(1, last) > future.gather(1, last)).squeeze(1)
    return mean_where(before & after, ~padding)


def _ends(padding: Tensor) -> Tuple[Tensor, Tensor]:
    """Return the places `[B, 1]` of the first and the last token of each row. `padding` `[B, T]` is True at padding."""
    first = padding.long().argmin(1, keepdim=True)
    return first, first + (~padding).sum(1, keepdim=True) - 1


def past_future(model: BaseFairseqModel, src_tokens: Tensor, previous: Tensor) -> PastFutureOutput:
    """Compute PAST and FUTURE of a batch, in eval mode, in one pass over finished translations.

    `src_tokens` `[B, I]` is padded on either side; `previous` `[B, T]` are the tokens that the decoder reads, starting
    with the end-of-sentence token.
    """
    with evaluating(model):
        lengths = src_tokens.ne(model.encoder.padding_idx).sum(1)
        return model(src_tokens, lengths, previous)[1]["past_future"]
