"""What generation keeps besides keys and values: what changes logits needs of the prefix, and votes of the source."""

from typing import Any, Callable, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, EncoderDecoderCache

LAYER_TYPE = "capsule_routing"  # in `config.layer_types`; caches that transformers makes of a configuration read them


class RoutedLayer(DynamicLayer):
    """A layer of a cache that keeps further tensors, which follow its rows.

    Attributes:
        kept: in the cache of a self-attention what each module that changes its logits needs of the prefix, `[B, …, L,
            L]`; in that of the last cross-attention the votes of the source, the fields of `Projected`.
    """

    _layer_type = LAYER_TYPE

    def __init__(self, **_: Any):
        super().__init__()
        self.kept: Tuple[Optional[Tensor], ...] = ()

    def change_logits(self, modules: Sequence[Any], rows: Tensor, padding_mask: Optional[Tensor]) -> Tensor:
        """Return the rows `[B, H, N, L]` of new positions as `forward_next` of the modules changes them, in order."""
        number, kept = rows.size(2), []
        for module, earlier in zip(modules, self.kept or [None] * len(modules), strict=True):
            rows, so_far = module.forward_next(rows, padding_mask, earlier)
            if earlier is not None and so_far.size(2) == number:  # only of the new positions
                so_far = torch.cat([pad(earlier, (0, number)), so_far], dim=2)
            kept.append(so_far)
        self.kept = tuple(kept)
        return rows

    def _change(self, change: Callable[[Tensor], Tensor]) -> None:
        self.kept = tuple(None if part is None else change(part) for part in self.kept)

    def reset(self) -> None:
        super().reset()
        self.kept = ()

    def crop(self, tokens_to_remove: int) -> None:
        super().crop(tokens_to_remove)
        if tokens_to_remove:
            end = -abs(tokens_to_remove)
            self._change(lambda part: part[..., :end, :end])

    def reorder_cache(self, beam_idx: Any) -> None:
        super().reorder_cache(beam_idx)
        self._change(lambda part: part.index_select(0, beam_idx.to(part.device)))

    def batch_select_indices(self, indices: Tensor) -> None:
        super().batch_select_indices(indices)
        self._change(lambda part: part[indices])

    def batch_repeat_interleave(self, repeats: int) -> None:
        super().batch_repeat_interleave(repeats)
        self._change(lambda part: part.repeat_interleave(repeats, dim=0))


NEEDED = (
    "this model needs a cache of its configuration: none, or an EncoderDecoderCache of two "
    "DynamicCache(config=model.config)"
)


def check_cache(cache: Any) -> None:
    """Raise a TypeError unless a cache is None, or has two parts that grow.

    A StaticCache returns keys of words to come, which our masks do not hide.
    """
    if cache is None:
        return
    if isinstance(cache, EncoderDecoderCache):
        parts = (cache.self_attention_cache, cache.cross_attention_cache)
        if all(isinstance(part, DynamicCache) for part in parts):
            return
    raise TypeError(NEEDED)


def routed_layer(cache: Cache, number: int) -> RoutedLayer:
    """Return a layer of a cache, which must be one that keeps more than keys and values."""
    layer = cache.layers[number] if cache.layers[number:] else None
    if not isinstance(layer, RoutedLayer):
        raise TypeError(NEEDED)
    return layer
