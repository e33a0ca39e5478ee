"""What generation keeps between steps: keys, values, queries, routed prefixes, and the votes of PAST and FUTURE."""

from typing import Any, List, NoReturn

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicLayer, EncoderDecoderCache

from capsule_routing.huggingface.configuration import CapsuleConfig
from capsule_routing.modules import SourceParts
from capsule_routing.modules.prefix import Extended, extend


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


class PrefixLayer(_KeptLayer):
    """The prefix of a self-attention that routes its logits (`capsule_routing.modules.prefix`)."""

    def extend(self, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Extended:
        """Append a position `[B, H, 1, d]`; arguments as in `capsule_routing.modules.prefix.extend`."""
        self.device, self.batch_size = query.device, len(query)
        extended = extend(self.kept, query, key, value, scale)
        self.kept = extended.prefix
        return extended

    def select(self, rows: Tensor) -> Any:
        return self.kept.index_select(0, rows)

    def get_seq_length(self) -> int:
        return 0 if self.kept is None else self.kept.length


class QueriesLayer(_KeptLayer):
    """The queries so far of a self-attention in which earlier words mask keys. Each step computes all logits again."""

    def extend(self, queries: Tensor) -> Tensor:
        """Append new queries `[B, H, N, d]`, and return all."""
        self.device, self.batch_size = queries.device, len(queries)
        self.kept = queries if self.kept is None else torch.cat([self.kept, queries], dim=2)
        return self.kept

    def select(self, rows: Tensor) -> Tensor:
        return self.kept[rows]

    def get_seq_length(self) -> int:
        return 0 if self.kept is None else self.kept.size(2)


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
    selects = config.selective_attention in ("decoder", "both")
    routes = config.decoder_routing != "none" and not selects
    own: List[Any] = [PrefixLayer() if routes else DynamicLayer() for _ in range(config.decoder_layers)]
    own += [QueriesLayer() for _ in range(config.decoder_layers) if selects]
    source: List[Any] = [DynamicLayer() for _ in range(config.decoder_layers)]
    return EncoderDecoderCache(Cache(layers=own), Cache(layers=[*source, VotesLayer()]))
