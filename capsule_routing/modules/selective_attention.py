"""Self-attention in which earlier words mask keys for later ones, and a norm of queries and keys."""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, rms_norm

from capsule_routing.functions import in_float32
from capsule_routing.functions.types import Mask


class QueryKeyNorm(nn.Module):
    """Change queries and keys so that their products are the logits `s_h q̂_l·k̂_k / √d`.

    `q̂` and `k̂` have a root mean square of 1. `s` `[H, 1, 1]`, the scale of each head, is 1 at the start.
    """

    def __init__(self, num_heads: int):
        super().__init__()
        self.scale = nn.Parameter(torch.empty(num_heads, 1, 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.scale)

    def forward(self, queries: Tensor, keys: Tensor) -> Tuple[Tensor, Tensor]:
        """Compute both, `[B, H, L, d]`, for the queries and keys of an attention, 0 at padding."""
        queries, keys = (rms_norm(rows, rows.shape[-1:]) for rows in (queries, keys))
        return queries * (self.scale * queries.size(-1) ** -0.5), keys


class SelectiveAttention(nn.Module):
    """Subtract from the logits of all heads what earlier words masked (Leviathan et al. 2024).

    Word `t` masks key `k` by `S_{t,k} = relu(E_{t,k})`, the positive logit of the first head, and logits become
    `E_{l,k} − Σ_{t < l} S_{t,k}`. No word masks itself or the first word, nor in a decoder a later one. It has no
    parameters. The paper has decoders alone; in an encoder words also mask later keys.

    Args:
        causal: whether a query cannot attend to later keys, as in a decoder.
    """

    def __init__(self, causal: bool):
        super().__init__()
        self.causal = causal

    @in_float32
    def forward(self, logits: Tensor, padding_mask: Mask = None, factors: Any = None) -> Tensor:
        """Compute the new logits of a whole sentence, `[B, H, L, L]`.

        Args:
            logits: `E` `[B, H, L, L]`, 0 at padded queries and keys.
            padding_mask: `[B, L]`, True marks padding.
            factors: not used.
        """
        return logits - self.masked(logits, padding_mask)

    @in_float32  # the sums of a long sentence
    def masked(self, logits: Tensor, padding_mask: Mask = None) -> Tensor:
        """Compute what is subtracted, `[B, 1, L, L]`, 0 at padding. Arguments as in `forward`."""
        positions = logits.shape[-2:]
        if self.causal:
            kept = torch.ones(positions, dtype=torch.bool, device=logits.device).triu()
        else:
            kept = torch.eye(*positions, dtype=torch.bool, device=logits.device)
        masks = logits[:, :1].relu().masked_fill(kept | _first(padding_mask, logits), 0)
        sums = masks.cumsum(2) - masks
        return sums if padding_mask is None else sums.masked_fill(padding_mask[:, None, :, None], 0)

    def forward_next(self, rows: Tensor, padding_mask: Mask, earlier: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
        """Compute the rows of `forward` of new positions at the end, under the causal mask.

        Args:
            rows: their logits `[B, H, N, L]`; one position a step is `N = 1`.
            padding_mask: `[B, L]`, True marks padding.
            earlier: `[B, 1, 1, L - N]`, the second result of the step before; None at the first step.

        Returns:
            The rows, and the masks of all words so far, `[B, 1, 1, L]`, in float32 or higher.
        """
        number, length = rows.shape[2:]
        exact = rows.to(torch.promote_types(rows.dtype, torch.float32))  # a sum over many steps
        so_far = exact.new_zeros(len(rows), 1, 1, length) if earlier is None else pad(earlier, (0, number))
        kept = torch.ones(number, length, dtype=torch.bool, device=rows.device).triu(length - number)
        masks = exact[:, :1].relu().masked_fill(kept | _first(padding_mask, rows), 0)
        running = masks.cumsum(2)
        sums = so_far + (running - masks)
        if padding_mask is not None:
            sums = sums.masked_fill(padding_mask[:, None, -number:, None], 0)
        return (exact - sums).to(rows.dtype), so_far + running[:, :, -1:]


def _first(padding_mask: Mask, like: Tensor) -> Tensor:
    """Return where the first word is, `[K]` or `[B, 1, 1, K]`."""
    if padding_mask is None:
        return torch.arange(like.size(-1), device=like.device).eq(0)
    return (~padding_mask).cumsum(1).eq(1)[:, None, None, :]
