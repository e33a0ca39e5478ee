"""Literal selective attention (Leviathan et al. 2024), as loops over sentences, heads, words and keys."""

import torch


def _normed(vector):
    return vector / (vector.square().mean() + torch.finfo(vector.dtype).eps).sqrt()


def normed_logits(queries, keys, scale):
    """`s_h q̂_l·k̂_k / √d`, for queries and keys `[B, H, L, d]`."""
    logits = queries.new_zeros(*queries.shape[:3], keys.size(2))
    for b, h, l, k in torch.cartesian_prod(*map(torch.arange, logits.shape)).tolist():
        product = _normed(queries[b, h, l]) @ _normed(keys[b, h, k])
        logits[b, h, l, k] = scale[h, 0, 0] * product / queries.size(3) ** 0.5
    return logits


def selective_logits(logits, mask, causal):
    """The logits `[B, H, L, L]` of words less what words before them masked. Those of padding are 0."""
    rows = []
    for b in range(logits.size(0)):
        words = [word for word in range(logits.size(2)) if not mask[b, word]]
        for h in range(logits.size(1)):
            for l in range(logits.size(2)):
                for k in range(logits.size(3)):
                    if l not in words or k not in words:
                        rows.append(logits.new_zeros(()))
                        continue
                    masks = [logits[b, 0, t, k].relu() for t in words if t < l]
                    counted = [t != k and k != words[0] and (t > k or not causal) for t in words if t < l]
                    rows.append(logits[b, h, l, k] - sum(m for m, counts in zip(masks, counted) if counts))
    return torch.stack([torch.as_tensor(row) for row in rows]).view(logits.shape)
