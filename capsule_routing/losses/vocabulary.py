"""The label-smoothed cross-entropy from features, and its sum with other losses over the vocabulary.

Neither keeps the logits of a batch, nor their softmax and gradient, which are most of the memory of a training step.
"""

from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from capsule_routing.losses.log_normalisers import Normalised, weighted_log_normalisers


class VocabularyLoss(NamedTuple):
    """The negative log-likelihood of words, before it is computed.

        L = Σ_n w_n log Σ_v exp x_nv − Σ_k g_k · E_{y_k},   x_nv = f_n · E_v + b_v

    With label smoothing the word of the target has the probability `1 − ε`, and the others share `ε`, as in fairseq.

    Attributes:
        features: `f` `[N, C]`, of at least float32, so that the gradients of both products are added before rounding.
        weights: `w` `[N]`, how many words row `n` predicts; without gradient.
        words: `y` `[K]`; any word where `g` is 0.
        word_features: `g` `[K, C]`, the weighted sum of the features of the rows that predict word `k`.
        smoothing: `ε`.
        bias: `b` `[V]`, or None. With a bias, row `n` predicts word `n` with the weight `w_n`.
    """

    features: Tensor
    weights: Tensor
    words: Tensor
    word_features: Tensor
    smoothing: float = 0.0
    bias: Optional[Tensor] = None


def smoothed_cross_entropy(
    features: Tensor,
    target: Tensor,
    padding_mask: Tensor,
    smoothing: float = 0.0,
    bias: Optional[Tensor] = None,
) -> VocabularyLoss:
    """Return the loss of `label_smoothed_cross_entropy`, from features, for `weighted_sum`.

    Args:
        features: `[B, T, C]`; the logits are their products with the embeddings, plus the bias.
        target: `[B, T]`; any number at padding.
        padding_mask: `[B, T]`, True marks padding.
        smoothing: `ε`.
        bias: `[V]`, or None.
    """
    rows = features.flatten(0, 1).to(torch.promote_types(features.dtype, torch.float32))
    weights = (~padding_mask).flatten().to(rows.dtype)
    words = target.masked_fill(padding_mask, 0).flatten()
    return VocabularyLoss(rows, weights, words, rows * weights.unsqueeze(1), smoothing, bias)


def weighted_sum(
    losses: Mapping[str, Tuple[float, Union[Tensor, VocabularyLoss]]], embeddings: Optional[Tensor]
) -> Tuple[Tensor, Dict[str, Tensor], Dict[str, Tensor]]:
    """Compute `Σ weight · loss`. All losses over the vocabulary are computed together.

    Args:
        losses: the weight and the value of each loss, by name. One at most has a bias.
        embeddings: the output embeddings `E` `[V, C]`; None if no loss is a `VocabularyLoss`.

    Returns:
        The sum, of at least float32; the value of each loss without its weight; and its value without label smoothing.
        Only the sum has a gradient.
    """
    total = torch.zeros(())  # a scalar takes the device and the precision of what is added
    values, likelihoods = {}, {}
    over_vocabulary = []
    for name, (weight, loss) in losses.items():
        if isinstance(loss, VocabularyLoss):
            over_vocabulary.append((name, weight, loss))
        else:
            total = total + weight * loss
            values[name] = likelihoods[name] = loss.detach()
    if not over_vocabulary or embeddings is None:
        return total, values, likelihoods

    over_vocabulary.sort(key=lambda item: item[2].bias is None)  # the rows with a bias come first
    result = _together([(weight, loss) for _, weight, loss in over_vocabulary], embeddings)
    total = total + result.total
    rows, words = [len(loss.weights) for *_, loss in over_vocabulary], [len(loss.words) for *_, loss in over_vocabulary]
    parts = zip(result.normalisers.split(rows), result.words.split(words), result.every.split(rows))
    for (name, weight, loss), (normalisers, word_logits, every) in zip(over_vocabulary, parts):
        of_word, of_others = _shares(loss, len(embeddings))
        normaliser, all_words = (loss.weights * normalisers).sum(), (loss.weights * every).sum()
        word = word_logits.sum()
        if loss.bias is not None:
            bias_of_word = (loss.weights * loss.bias[loss.words]).sum()
            bias_of_all = loss.weights.sum() * loss.bias.sum(dtype=loss.weights.dtype)
            total = total - weight * (of_word * bias_of_word + of_others * bias_of_all)
            word, all_words = word + bias_of_word.detach(), all_words + bias_of_all.detach()
        likelihoods[name] = normaliser - word
        values[name] = normaliser - of_word * word - of_others * all_words
    return total, values, likelihoods


def _together(losses: Sequence[Tuple[float, VocabularyLoss]], embeddings: Tensor) -> Normalised:
    """Compute the weighted sum of losses, without the bias of words. The first loss may have a bias."""
    weights, every, word_weights = [], [], []
    for weight, loss in losses:
        of_word, of_others = _shares(loss, len(embeddings))
        weights.append(weight * loss.weights)
        every.append(weight * of_others * loss.weights)
        word_weights.append(loss.weights.new_full(loss.words.shape, weight * of_word))
    bias = losses[0][1].bias
    return weighted_log_normalisers(
        torch.cat([loss.features for _, loss in losses]),
        embeddings,
        torch.cat(weights),
        torch.cat([loss.words for _, loss in losses]),
        torch.cat([loss.word_features for _, loss in losses]),
        torch.cat(word_weights),
        every=torch.cat(every) if any(loss.smoothing for _, loss in losses) else None,
        bias=bias,
        biased=0 if bias is None else len(weights[0]),
    )


def _shares(loss: VocabularyLoss, size: int) -> Tuple[float, float]:
    """Return by how much the logit of the word and that of each word of the vocabulary lower a smoothed loss.

    With `e = ε / (V − 1)` the loss is `(1 − ε − e) (n − x_y) + e Σ_v (n − x_v) = n − (1 − ε − e) x_y − e Σ_v x_v`,
    where `n` is the log-normaliser.
    """
    share = loss.smoothing / (size - 1)
    return 1 - loss.smoothing - share, share
