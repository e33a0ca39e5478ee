"""Weighted sums of log-normalisers over a vocabulary and of logits, with their gradients, without keeping the logits.

With the logits `x_nv = f_n · E_v + b_v`:

    Σ_n w_n log Σ_v exp x_nv − Σ_n s_n Σ_v f_n · E_v − Σ_k u_k g_k · E_{y_k}

A cross-entropy needs no more of the vocabulary than that: the second sum is for label smoothing, the third one for the
words of the target.
"""

from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from capsule_routing.functions.precision import autocast_dtype, without_autocast

# Logits in memory at a time. On a CPU: 16 megabytes in float32. Each block adds to the gradient of all embeddings, so
# smaller ones take longer. On a GPU: enough to keep it busy.
BLOCK = {"cpu": 2**22, "cuda": 2**26}


class Normalised(NamedTuple):
    """What `weighted_log_normalisers` gives, of at least float32. Only the total has a gradient.

    Attributes:
        total: the sum, a scalar.
        normalisers: `log Σ_v exp x_nv` `[N]`; on a CPU 0 where the weight is 0.
        words: `g_k · E_{y_k}` `[K]`.
        every: `Σ_v f_n · E_v` `[N]`; 0 without `every`.
    """

    total: Tensor
    normalisers: Tensor
    words: Tensor
    every: Tensor


def weighted_log_normalisers(
    features: Tensor,
    embeddings: Tensor,
    weights: Tensor,
    words: Tensor,
    word_features: Tensor,
    word_weights: Tensor,
    *,
    every: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    biased: int = 0,
) -> Normalised:
    """Compute the sum above in nats.

    The forward pass also computes the gradient, because it has the softmax that the gradient needs. So each block of
    logits is computed once and then discarded.

    Args:
        features: `f` `[N, C]`, of at least float32. Their products with the embeddings are in the precision of these.
        embeddings: `E` `[V, C]`.
        weights: `w` `[N]`, without gradient.
        words: `y` `[K]`.
        word_features: `g` `[K, C]`, of at least float32.
        word_weights: `u` `[K]`, without gradient.
        every: `s` `[N]`, without gradient; None: 0.
        bias: `b` `[V]`, which the first `biased` rows have.
    """
    device = features.device.type
    # Inside the autograd function, autocast would cast some of the products only.
    embeddings = embeddings.to(autocast_dtype(device) or embeddings.dtype)
    with without_autocast(device):
        given = (features, embeddings, bias, word_features, weights, every, words, word_weights)
        return Normalised(*_WeightedLogNormalisers.apply(*given, biased, torch.is_grad_enabled()))


class _WeightedLogNormalisers(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        embeddings: Tensor,
        bias: Optional[Tensor],
        word_features: Tensor,
        weights: Tensor,
        every: Optional[Tensor],
        words: Tensor,
        word_weights: Tensor,
        biased: int,
        with_gradient: bool,
    ) -> Tuple[Tensor, ...]:
        exact = features.dtype
        of_features, of_embeddings, of_bias, _ = (needed and with_gradient for needed in ctx.needs_input_grad[:4])
        bias_gradient = torch.zeros_like(bias, dtype=exact) if of_bias and bias is not None else None
        normalisers, sums = torch.zeros_like(weights), torch.zeros_like(weights)

        if every is None:
            features_gradient = torch.zeros_like(features) if of_features else None
            embeddings_gradient = torch.zeros_like(embeddings, dtype=exact) if of_embeddings else None
        else:
            embedding_sum = embeddings.sum(0, dtype=exact)
            sums = features @ embedding_sum
            features_gradient = -torch.outer(every, embedding_sum) if of_features else None
            embeddings_gradient = (-every @ features).repeat(len(embeddings), 1) if of_embeddings else None
        word_embeddings = embeddings[words].to(exact)
        word_logits = (word_features * word_embeddings).sum(1)
        if embeddings_gradient is not None:
            change = -word_weights.unsqueeze(1) * word_features
            embeddings_gradient.index_put_((words,), change, accumulate=True)

        rows = torch.arange(len(weights), device=weights.device)
        # Rows without a weight, of padding, cost a CPU time. A GPU would have to wait for their number.
        if weights.device.type == "cpu" and not torch.compiler.is_compiling():
            rows = weights.nonzero().squeeze(1)
            biased = int((rows < biased).sum())
        # The gradients are computed before the loss is scaled. float16 would lose the probabilities of rare words in
        # the products; bfloat16 has the range of float32, and its products take a tenth of the time.
        product = torch.bfloat16 if embeddings.dtype == torch.bfloat16 else exact
        factors = embeddings.to(product)
        step = max(1, BLOCK.get(features.device.type, BLOCK["cuda"]) // len(embeddings))
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            part, with_bias = features[block], max(0, biased - start)
            logits = (part.to(embeddings.dtype) @ embeddings.t()).to(exact)
            if bias is not None:
                logits[:with_bias] += bias
            largest = logits.amax(1, keepdim=True)
            exponentials = logits.sub_(largest).exp_()
            total = exponentials.sum(1, keepdim=True)
            normalisers[block] = (largest + total.log()).squeeze(1)
            # The weights are applied to the small tensors, not to the whole vocabulary.
            scale = weights[block].unsqueeze(1) / total
            if bias_gradient is not None:
                bias_gradient.addmv_(exponentials[:with_bias].t(), scale[:with_bias].squeeze(1))
            exponentials = exponentials.to(product)
            if features_gradient is not None:
                features_gradient[block] += (exponentials @ factors) * scale
            if embeddings_gradient is not None:
                weighted = (part * scale).to(product)
                if product == exact:
                    embeddings_gradient.addmm_(exponentials.t(), weighted)
                else:
                    embeddings_gradient += exponentials.t() @ weighted
        loss = (weights * normalisers).sum() - (word_weights * word_logits).sum()
        if every is not None:
            loss = loss - (every * sums).sum()
        ctx.dtype = embeddings.dtype
        ctx.save_for_backward(features_gradient, embeddings_gradient, bias_gradient, word_embeddings, word_weights)
        ctx.mark_non_differentiable(normalisers, word_logits, sums)
        return loss, normalisers, word_logits, sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> Tuple[Optional[Tensor], ...]:
        *kept, word_embeddings, word_weights = ctx.saved_tensors  # the gradients of features, embeddings and bias
        of_features, of_embeddings, of_bias = (None if part is None else part * gradient for part in kept)
        if of_embeddings is not None:
            of_embeddings = of_embeddings.to(ctx.dtype)
        of_words = -gradient * word_weights.unsqueeze(1) * word_embeddings
        return of_features, of_embeddings, of_bias, of_words, None, None, None, None, None, None
