"""A weighted sum of log-normalisers over a vocabulary, with its gradient, without keeping the logits."""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from capsule_routing.functions.compiled import is_traced
from capsule_routing.functions.precision import autocast_dtype, without_autocast

# Logits in memory at a time. On a CPU: four megabytes in float32. On a GPU: enough to keep it busy.
BLOCK = {"cpu": 2**20, "cuda": 2**26}


def weighted_log_normalisers(features: Tensor, embeddings: Tensor, weights: Tensor) -> Tensor:
    """Compute `Σ_n weights_n · log Σ_v exp(embeddings_v · features_n)`, in nats, in float32 or higher.

    Features are `[N, C]`, embeddings `[V, C]`, and weights `[N]`, which get no gradient. The forward pass also computes
    the gradient, because it has the softmax that the gradient needs. So each block of logits is computed once and then
    discarded. Rows with weight 0 are skipped.
    """
    if is_traced():
        logits = (features @ embeddings.t()).to(torch.promote_types(features.dtype, torch.float32))
        return (weights * logits.logsumexp(1)).sum()
    rows = weights.nonzero().squeeze(1)
    device = features.device.type
    # Inside the autograd function, autocast would cast some of the products only.
    dtype = autocast_dtype(device) or features.dtype
    features, embeddings = features[rows].to(dtype), embeddings.to(dtype)
    with without_autocast(device):
        return _WeightedLogNormalisers.apply(features, embeddings, weights[rows], torch.is_grad_enabled())


class _WeightedLogNormalisers(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, embeddings: Tensor, weights: Tensor, with_gradient: bool) -> Tensor:
        of_features, of_embeddings = (needed and with_gradient for needed in ctx.needs_input_grad[:2])
        exact = torch.promote_types(features.dtype, torch.float32)
        # The gradients are computed before the loss is scaled. float16 would lose the probabilities of rare words in
        # the products; bfloat16 has the range of float32, and its products take a tenth of the time.
        product = torch.bfloat16 if features.dtype == torch.bfloat16 else exact
        features_gradient = torch.empty_like(features, dtype=exact)
        embeddings_gradient = torch.zeros_like(embeddings, dtype=exact) if of_embeddings else None
        factors = embeddings.to(product)
        total = weights.new_zeros(())
        step = max(1, BLOCK.get(features.device.type, BLOCK["cuda"]) // len(embeddings))
        for start in range(0, len(features), step):
            rows = slice(start, start + step)
            logits = features[rows] @ embeddings.t()
            softmax = logits.softmax(1, dtype=exact)
            # The largest logit minus the logarithm of its probability, which is at least 1/V.
            normalisers = logits.amax(1).to(exact) - softmax.amax(1).log()
            total = total + (normalisers * weights[rows]).sum()
            # The weights are applied to the small tensors, not to the whole vocabulary.
            weight = weights[rows].unsqueeze(1)
            softmax = softmax.to(product)
            if of_features:
                features_gradient[rows] = (softmax @ factors) * weight
            if embeddings_gradient is not None:
                weighted = (features[rows] * weight).to(product)
                if product == exact:
                    embeddings_gradient.addmm_(softmax.t(), weighted)
                else:
                    embeddings_gradient += softmax.t() @ weighted
        ctx.dtype = features.dtype
        ctx.save_for_backward(features_gradient if of_features else None, embeddings_gradient)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Optional[Tensor], ...]:
        kept = ctx.saved_tensors  # the gradients of features and embeddings
        return *(None if part is None else (part * gradient).to(ctx.dtype) for part in kept), None, None
