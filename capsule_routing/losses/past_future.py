"""The losses of PAST and FUTURE (Zheng et al. 2019, §3.3, §4.3): bags of words, and agreement with the decoder states.

Step `t` predicts `y_t`. Its PAST bag is `y_1 … y_{t-1}`, its FUTURE bag is `y_t … y_T`, end of sentence included. With
the reduction "printed", `y_t` is in PAST too.
"""

import math
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor

from capsule_routing.functions.precision import without_autocast
from capsule_routing.functions.types import Mask
from capsule_routing.losses.loss import Loss
from capsule_routing.losses.vocabulary import VocabularyLoss, weighted_sum

Layer = Callable[[Tensor], Tensor]
Linear = Union[Tensor, Layer]  # a weight, or a layer whose weight alone does not stand for it
REDUCTIONS = ("mean", "sum", "printed")


def guided_losses(
    routed: Any,
    target: Tensor,
    padding_mask: Mask = None,
    *,
    reduction: str = "mean",
    steps: float = 1.0,
    layer: Optional[Layer] = None,
) -> Dict[str, Loss]:
    """Return the losses whose heads are in `routed.heads`, by name, for `weighted_sum`.

    - "bow", the bag-of-words loss, is logged as the negative log-likelihood of a word of a bag, in bits. With "mean"
      each bag that is not empty has the same weight in its sentence, and each sentence the same weight. Otherwise it is
      the mean over all words of all bags, and each sentence is weighted by their number at a step.
    - "bca", the content agreement loss, is logged as the squared distance of a sentence, PAST plus FUTURE: with "mean"
      per dimension, otherwise the sum over dimensions.

    Args:
        routed: a `modules.PastFutureOutput`.
        target, padding_mask, steps: as for `bag_of_words_loss`.
        reduction: "mean", "sum" or "printed", that of the `HolisticContext`; another one raises a ValueError.
        layer: the output layer, `[…, C]` to `[…, V]`, if its weight alone does not stand for it, as with an adapter.
            The bags are then computed from its logits.
    """
    losses = {}
    if "bow" in routed.heads:
        past, future = routed.heads["bow"]
        bags: Union[Tensor, VocabularyLoss]
        if layer is None:
            bags = bags_of_words(past, future, target, padding_mask, reduction=reduction, steps=steps)
        else:
            bags = bags_from_logits(past, future, layer, target, padding_mask, reduction=reduction, steps=steps)
        lengths = _valid(target, padding_mask).sum(1)
        # Of T steps, over T: the two bags, the first of which is empty; or their T words; or T + 1, with one in both.
        counts = {"mean": 2 - 1 / lengths.clamp(min=1), "sum": lengths, "printed": lengths + 1}
        count = torch.where(lengths > 0, counts[reduction], 0).sum()  # none, if all labels are left out
        losses["bow"] = Loss(bags, count, math.log(2))
    if "bca" in routed.heads:
        of_past, of_future = routed.heads["bca"]
        distance = content_agreement_loss(
            routed.past, routed.future, routed.state, of_past, of_future, padding_mask, reduction=reduction
        )
        losses["bca"] = Loss(distance, target.new_full((), len(target)))
    return losses


def bag_of_words_loss(
    past: Tensor,
    future: Tensor,
    embeddings: Tensor,
    target: Tensor,
    padding_mask: Mask = None,
    *,
    reduction: str = "mean",
    steps: float = 1.0,
) -> Tensor:
    """Compute the bag-of-words loss of a batch (§3.3), summed over sentences, in nats.

    With the reduction "mean" each bag counts with the mean over its words, about 2/T of the sum, and an empty bag
    contributes 0. With "sum" it is the sum. With "printed" it is the sum, over bags that both have `y_t`:

        L = (1/T) Σ_t [ mean_{τ<t} −log p_pre(y_τ | t) + mean_{τ≥t} −log p_sub(y_τ | t) ],  p = softmax(E W Ω_t)
        L = (1/T) Σ_t [ −Σ_{τ<t} log p_pre(y_τ | t) − Σ_{τ≥t} log p_sub(y_τ | t) ]
        L = (1/T) Σ_t [ −Σ_{τ≤t} log p_pre(y_τ | t) − Σ_{τ≥t} log p_sub(y_τ | t) ]

    All words of a bag share the log-normaliser of the step, and the sum of the bag's logits is one product with the sum
    of its embeddings. No tensor of `T × T` words or of `T × V` numbers is kept.

    Args:
        past: `W^P Ω^P` `[B, T, C]`.
        future: `W^F Ω^F` `[B, T, C]`.
        embeddings: `E` `[V, C]`.
        target: `y` `[B, T]`.
        padding_mask: `[B, T]`, True marks padding of the target, on either side.
        reduction: "mean", "sum" or "printed"; another one raises a ValueError.
        steps: the share of target steps from which the loss is estimated, without bias. The steps are drawn in each
            call; 1 uses all of them. A share outside (0, 1] raises a ValueError.

    Returns:
        A scalar of at least float32.
    """
    loss = bags_of_words(past, future, target, padding_mask, reduction=reduction, steps=steps)
    return weighted_sum({"bow": (1.0, loss)}, embeddings)[0]


def bags_of_words(
    past: Tensor,
    future: Tensor,
    target: Tensor,
    padding_mask: Mask = None,
    *,
    reduction: str = "mean",
    steps: float = 1.0,
) -> VocabularyLoss:
    """Return the bag-of-words loss before it is computed, for `weighted_sum`. The arguments are those of the loss."""
    valid, sizes, word_weights = _word_weights(target, padding_mask, reduction, steps, past.dtype)
    past, future = past.to(word_weights.dtype), future.to(word_weights.dtype)
    # L is Σ_t w^P_t Σ_{τ<t} −log p_pre(y_τ | t) + w^F_t Σ_{τ≥t} −log p_sub(y_τ | t), with the weight w of each word.
    # So the embedding of word τ has a product with Σ_{t>τ} w^P_t Ω^P_t + Σ_{t≤τ} w^F_t Ω^F_t.
    weighted = [weights.unsqueeze(-1) * part for weights, part in zip(word_weights, (past, future))]
    after = weighted[0].sum(1, keepdim=True) - weighted[0].cumsum(1)
    if reduction == "printed":  # t ≥ τ
        after = after + weighted[0]
    of_words = (after + weighted[1].cumsum(1)).masked_fill(~valid.unsqueeze(-1), 0)
    features, weights = torch.stack([past, future]).flatten(0, 2), (word_weights * sizes).flatten()
    if steps < 1:
        rows = weights.nonzero().squeeze(1)
        features, weights = features[rows], weights[rows]
    return VocabularyLoss(features, weights, target.masked_fill(~valid, 0).flatten(), of_words.flatten(0, 1))


def bags_from_logits(
    past: Tensor,
    future: Tensor,
    layer: Layer,
    target: Tensor,
    padding_mask: Mask = None,
    *,
    reduction: str = "mean",
    steps: float = 1.0,
) -> Tensor:
    """Compute the bag-of-words loss from the logits of a layer, `[…, C]` to `[…, V]`, in place of embeddings."""
    valid, _, weights = _word_weights(target, padding_mask, reduction, steps, past.dtype)
    words, number = target.masked_fill(~valid, 0), valid.cumsum(1)
    earlier = number.unsqueeze(1) < number.unsqueeze(2)  # [B, t, τ]: τ < t
    in_past = number.unsqueeze(1) <= number.unsqueeze(2) if reduction == "printed" else earlier
    inside = valid.unsqueeze(1) & valid.unsqueeze(2)
    loss = weights.new_zeros(())
    for features, of_step, bag in zip((past, future), weights, (in_past & inside, ~earlier & inside)):
        log_probabilities = layer(features).log_softmax(-1, dtype=weights.dtype)
        of_words = log_probabilities.gather(2, words.unsqueeze(1).expand_as(bag))
        loss = loss - (of_step.unsqueeze(2) * of_words.masked_fill(~bag, 0)).sum()
    return loss


def _word_weights(
    target: Tensor, padding_mask: Mask, reduction: str, steps: float, dtype: torch.dtype
) -> Tuple[Tensor, Tensor, Tensor]:
    """Return where the target has words `[B, T]`, and of the two bags the sizes and weights of words `[2, B, T]`."""
    _check(reduction)
    valid = _valid(target, padding_mask)
    step_weights, sizes = _step_weights(valid, steps, dtype), _bag_sizes(valid)
    if reduction == "printed":
        sizes[0] += 1  # the word of the step
    weights = step_weights / sizes.clamp(min=1) if reduction == "mean" else step_weights.expand_as(sizes)
    return valid, sizes, weights


def _check(reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, not {reduction}")


def _valid(target: Tensor, padding_mask: Mask) -> Tensor:
    return torch.ones_like(target, dtype=torch.bool) if padding_mask is None else ~padding_mask


def _step_weights(valid: Tensor, share: float, dtype: torch.dtype) -> Tensor:
    """`[B, T]`: 1/T at the words of a sentence, 0 at padding. With a share below 1, those of a sample of the steps."""
    if not 0 < share <= 1:
        raise ValueError(f"steps must be above 0 and at most 1, not {share}")
    weights = valid.to(torch.promote_types(dtype, torch.float32)) / valid.sum(1, keepdim=True).clamp(min=1)
    if share == 1:
        return weights
    candidates = valid.flatten().nonzero().squeeze(1)
    chosen = candidates[torch.randperm(len(candidates), device=valid.device)]
    chosen = chosen[: max(1, round(share * len(candidates)))]
    drawn = torch.zeros(valid.numel(), device=valid.device)
    drawn[chosen] = len(candidates) / max(1, len(chosen))
    return weights * drawn.view_as(valid).to(weights.dtype)


def _bag_sizes(valid: Tensor) -> Tensor:
    """`[2, B, T]`: the number of words in the PAST bag and in the FUTURE bag of each step."""
    before = (valid.cumsum(1) - 1).clamp(min=0)
    return torch.stack([before, valid.sum(1, keepdim=True) - before])


@torch.no_grad()
def bag_overlap_by_step(
    past: Tensor, future: Tensor, embeddings: Tensor, target: Tensor, padding_mask: Mask = None, top: int = 5
) -> Tuple[Tensor, Tensor]:
    """Compute the share of each bag's words that are among the most probable words (Zheng et al. 2019, §4.3).

    The means of these rates are `r_OL`. The rate of a step is the share of the bag's distinct words that are among the
    `k` most probable words. `k` is `top` times the number of words in the bag, with repetitions, and at most `V`.

    Args:
        past, future, embeddings, target, padding_mask: as for `bag_of_words_loss`.
        top: the factor of `k`.

    Returns:
        The rates of PAST and of FUTURE `[B, T]`, NaN at padding and at steps with an empty bag.
    """
    valid = _valid(target, padding_mask)
    number = valid.cumsum(1)
    before, after = _bag_sizes(valid)
    same = (target.unsqueeze(1) == target.unsqueeze(2)) & valid.unsqueeze(1) & valid.unsqueeze(2)
    first = valid & ~same.tril(-1).any(2)  # no earlier word is the same
    last = valid & ~same.triu(1).any(2)
    earlier = number.unsqueeze(1) < number.unsqueeze(2)  # [B, t, τ]: τ < t
    dtype = torch.promote_types(past.dtype, torch.float32)  # in half precision many words would share the k-th place
    embeddings = embeddings.to(dtype)
    rates = []
    of_past, of_future = earlier & first.unsqueeze(1), ~earlier & last.unsqueeze(1)
    for features, sizes, bags in ((past, before, of_past), (future, after, of_future)):
        probable = torch.zeros_like(bags)
        for i in range(len(target)):
            logits = features[i].to(dtype) @ embeddings.t()
            k = (top * sizes[i]).clamp(1, len(embeddings))
            lowest = logits.topk(int(k.max()), dim=1).values.gather(1, (k - 1).unsqueeze(1))
            probable[i] = logits[:, target[i]] >= lowest
        counted = valid & (sizes > 0)
        rates.append(((probable & bags).sum(2) / bags.sum(2)).masked_fill(~counted, torch.nan))
    return rates[0], rates[1]


class BagOverlap(NamedTuple):
    """Overlap rates summed over sentences, and the number of sentences that have a bag."""

    past: Tensor
    past_sentences: Tensor
    future: Tensor
    future_sentences: Tensor


def bag_overlap(*args: Any, **kwargs: Any) -> BagOverlap:
    """Compute `r_OL`: the rates of `bag_overlap_by_step`, averaged over the steps of a sentence, summed over sentences.

    The arguments are those of `bag_overlap_by_step`. Steps with an empty bag are left out.
    """
    sums = []
    for rates in bag_overlap_by_step(*args, **kwargs):
        means = rates.nanmean(1)
        sums += [means.nansum(), (~means.isnan()).sum()]
    return BagOverlap(*sums)


def content_agreement_loss(
    past: Tensor,
    future: Tensor,
    state: Tensor,
    past_weight: Linear,
    future_weight: Linear,
    padding_mask: Mask = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Compute the content agreement loss of a batch, summed over sentences.

    With the reductions "sum" and "printed" it is as the paper prints it. With "mean" capsules are mapped to states, and
    it is a mean over dimensions:

        L = (1/T) Σ_t ( ‖Ω^P_t − W^P mean(z_1 … z_t)‖² + ‖Ω^F_t − W^F mean(z_t … z_T)‖² )
        L = (1/(T·C)) Σ_t ( ‖W^P Ω^P_t − mean(z_1 … z_t)‖² + ‖W^F Ω^F_t − mean(z_t … z_T)‖² )

    Args:
        past: `Ω^P` `[B, T, P]`.
        future: `Ω^F` `[B, T, P]`.
        state: `z` `[B, T, C]`.
        past_weight, future_weight: `W^P` and `W^F`, `[C, P]` with "mean", otherwise `[P, C]`; or layers in their place.
        padding_mask: `[B, T]`, True marks padding of the target, on either side.
        reduction: "mean", "sum" or "printed"; another one raises a ValueError.

    Returns:
        A scalar of at least float32.
    """
    _check(reduction)
    # In float16 a sum over a sentence, or a squared distance, may overflow.
    exact = torch.promote_types(state.dtype, torch.float32)
    with without_autocast(state.device.type):
        valid = _valid(state[..., 0], padding_mask)
        state = state.to(exact).masked_fill(~valid.unsqueeze(-1), 0)
        number = valid.cumsum(1).unsqueeze(-1)
        length = number[:, -1:]
        sums = state.cumsum(1)
        rest = sums[:, -1:] - sums + state
        until, from_here = sums / number.clamp(min=1), rest / (length - number + 1)  # mean(z_1 … z_t), mean(z_t … z_T)
        step_weights = valid.to(exact) / length.squeeze(-1).clamp(min=1)
        distances = []
        for content, weight, mean in ((past, past_weight, until), (future, future_weight, from_here)):
            content = content.to(exact)
            if reduction == "mean":
                distances.append((_mapped(content, weight) - mean).square().mean(-1))
            else:
                distances.append((content - _mapped(mean, weight)).square().sum(-1))
        return ((distances[0] + distances[1]) * step_weights).sum()


def _mapped(rows: Tensor, weight: Linear) -> Tensor:
    """Apply a weight in the precision of the rows, or a layer in its own."""
    if isinstance(weight, Tensor):
        return rows @ weight.to(rows.dtype).t()
    of_layer: Any = next(weight.parameters(), rows) if hasattr(weight, "parameters") else rows
    return weight(rows.to(of_layer.dtype)).to(rows.dtype)
