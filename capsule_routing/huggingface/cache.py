"""What generation keeps between steps: keys, values, what changes logits, and the votes of PAST and FUTURE."""

from typing import Any, List, NoReturn, Optional, Sequence

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicLayer, EncoderDecoderCache

from capsule_routing.huggingface.configuration import CapsuleConfig
from capsule_routing.modules import SourceParts


class _KeptLayer(CacheLayerMixin):
    """A layer of a cache that keeps one object instead of keys and values."""

    kept: Any = None
    device: torch.device
    batch_size: int

    def select(self, rows: Tensor) -> Any:
        """Return what is kept for these rows of the batch."""
        raise NotImplementedError

    def get_max_length(self) -> int:
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def reset(self) -> None:
        self.kept = None

    def batch_select_indices(self, indices: Tensor) -> None:
        if self.kept is not None:
            self.kept, self.batch_size = self.select(indices.to(self.device)), len(indices)

    def reorder_cache(self, beam_idx: Tensor) -> None:
        self.batch_select_indices(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        if self.kept is not None:
            self.batch_select_indices(torch.arange(self.batch_size).repeat_interleave(repeats))

    def lazy_initialization(self, *states: Tensor) -> None:
        """Do nothing: the first step creates what is kept."""

    def update(self, *states: Tensor, **options: Any) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} keeps no keys and values")


class LogitsLayer(_KeptLayer):
    """What the modules that change the logits of a self-attention keep of the prefix: a tensor for each of them."""

    def change(self, modules: Sequence[Any], rows: Tensor, padding_mask: Optional[Tensor]) -> Tensor:
        """Return the rows `[B, H, N, L]` of new positions as `forward_next` of the modules changes them, in order."""
        self.device, self.batch_size = rows.device, len(rows)
        kept = [None] * len(modules) if self.kept is None else self.kept
        self.kept = []
        for module, earlier in zip(modules, kept, strict=True):
            rows, so_far = module.forward_next(rows, padding_mask, earlier)
            self.kept.append(so_far)
        return rows

    def select(self, rows: Tensor) -> List[Tensor]:
        return [part[rows] for part in self.kept]

    def get_seq_length(self) -> int:
        return 0 if self.kept is None else self.kept[0].size(-1)


class VotesLayer(_KeptLayer):
    """What PAST and FUTURE need of the source, computed once and reordered with the hypotheses."""

    def keep(self, parts: SourceParts) -> None:
        self.device, self.batch_size = parts.values.device, len(parts.values)
        self.kept = parts

    def select(self, rows: Tensor) -> SourceParts:
        values, *others = (None if part is None else part[rows] for part in self.kept)
        assert values is not None
        return SourceParts(values, *others)

    def get_seq_length(self) -> int:
        return 0 if self.kept is None else self.kept.values.size(1)


def new_cache(config: CapsuleConfig) -> EncoderDecoderCache:
    """Return an empty cache for a model with this configuration."""
    changed = config.decoder_routing != "none" or config.selective_attention in ("decoder", "both")
    own: List[Any] = [DynamicLayer() for _ in range(config.decoder_layers)]
    own += [LogitsLayer() for _ in range(config.decoder_layers) if changed]
    source: List[Any] = [DynamicLayer() for _ in range(config.decoder_layers)]
    return EncoderDecoderCache(Cache(layers=own), Cache(layers=[*source, VotesLayer()]))
