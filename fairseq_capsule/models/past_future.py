"""PAST and FUTURE after the last layer of a fairseq decoder, with the cache for incremental decoding."""

from typing import Any, Callable, Dict, Optional, Tuple

import torch
from fairseq.incremental_decoding_utils import with_incremental_state
from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_capsule.models.agreements import allow_other_iterations
from fairseq_capsule.models.beams import KnowsBeams
from fairseq_capsule.models.mechanism import IncrementalState
from fairseq_capsule.modules import (
    GuidedDynamicRouting,
    HolisticContext,
    PastFutureAttention,
    PastFutureClassifier,
    PastFutureOutput,
    PastFutureRouting,
    SourceParts,
)


@with_incremental_state
class PastFuture(KnowsBeams, HolisticContext):
    """`HolisticContext` for fairseq's decoders. Results that depend only on the source are cached while decoding.

    Args: see `HolisticContext`.
    """

    # Added by fairseq's decorator.
    get_incremental_state: Callable[..., Any]
    set_incremental_state: Callable[..., None]

    def forward(
        self,
        state: Tensor,
        source: Tensor,
        padding_mask: Optional[Tensor] = None,
        incremental_state: Optional[IncrementalState] = None,
    ) -> Tuple[Tensor, PastFutureOutput]:
        """Add PAST and FUTURE to the decoder's state.

        Args:
            state: `z` `[B, T, C]`; `T` is 1 with `incremental_state`.
            source: the encoder's output `[I, B, C']`.
            padding_mask: `[B, I]`, True marks padding of the source.
            incremental_state: fairseq's; it caches what the routing prepares, once for each sentence.

        Returns:
            `o` `[B, T, C]`, and the PAST and FUTURE that it was computed from.
        """
        return self.context(state, self._source_parts(source, padding_mask, incremental_state), padding_mask)

    def _source_parts(
        self, source: Tensor, padding_mask: Optional[Tensor], incremental_state: Optional[IncrementalState]
    ) -> SourceParts:
        kept = self.get_incremental_state(incremental_state, "source_parts")
        if kept is not None:
            return SourceParts(**{name: part for name, part in kept.items() if name != "beams"})
        beams = 1 if incremental_state is None else self.beams_of(source)
        mask = None if padding_mask is None else padding_mask[::beams]
        parts = self.routing.prepare(source[:, ::beams].transpose(0, 1), mask)
        if incremental_state is None:
            return parts
        if parts.exponentials is not None and not torch.is_grad_enabled():
            parts = parts._replace(keys=None)  # only their exponentials are read
        kept = {**parts._asdict(), "beams": torch.tensor(beams)}
        self.set_incremental_state(incremental_state, "source_parts", kept)
        return parts

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Drop finished sentences. The beams of a sentence share one entry, so reordering within them moves nothing."""
        kept = self.get_incremental_state(incremental_state, "source_parts")
        if kept is None:
            return
        beams = int(kept["beams"])
        if len(kept["values"]) * beams == len(new_order):
            return
        sentences = new_order // beams
        if len(new_order) % beams == 0 and bool((sentences.view(-1, beams) == sentences[::beams, None]).all()):
            sentences = sentences[::beams]
        else:
            beams = 1  # the rows are not beams: they are copies of a sentence that are now reordered separately
        # Indexing keeps the memory layout; index_select does not.
        reordered = {
            name: None if part is None else torch.tensor(beams) if name == "beams" else part[sentences]
            for name, part in kept.items()
        }
        self.set_incremental_state(incremental_state, "source_parts", reordered)


def build_past_future(config: Any, source_dim: int, state_dim: int) -> PastFuture:
    """Build the module that a config describes."""
    per_content = config.past_future_capsules
    capsule_dim = config.past_future_capsule_dim or max(1, state_dim // 2)
    content_dim = per_content * capsule_dim
    if config.past_future == "gdr":
        routing: PastFutureRouting = GuidedDynamicRouting(
            source_dim,
            state_dim,
            2 * per_content + config.redundant_capsules,
            capsule_dim,
            iterations=config.past_future_iterations,
        )
        allow_other_iterations(routing, "--past-future-iterations", "another --past-future")
    elif config.past_future == "clf":
        redundant = config.redundant_capsules > 0
        routing = PastFutureClassifier(source_dim, state_dim, content_dim, capsule_dim, redundant=redundant)
    else:
        routing = PastFutureAttention(source_dim, state_dim, content_dim)
    return PastFuture(
        routing,
        # The other two give one large capsule for each content.
        capsules_per_content=per_content if config.past_future == "gdr" else 1,
        content_dim=content_dim,
        state_dim=state_dim,
        ffn_dim=config.past_future_ffn_dim or 2 * state_dim,
        heads=config.guided_heads,
        reduction=config.guided_reduction,
    )


def knows_bags(model: BaseFairseqModel) -> bool:
    """Return whether a model has the heads that predict bags of words from PAST and FUTURE."""
    return getattr(getattr(model.decoder, "past_future", None), "bow", None) is not None


def bag_inputs(
    model: BaseFairseqModel, sample: Dict[str, Any], padding: int
) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the arguments of `losses.bag_overlap` for a batch.

    Args:
        model: a model for which `knows_bags` is True.
        sample: a fairseq batch with targets.
        padding: the padding index of the target dictionary.

    Returns:
        `W^P Ω^P` and `W^F Ω^F`, `E` `[V, C]`, the targets `y` `[B, T]` and their padding mask `[B, T]` (True marks
        padding).
    """
    routed = model(**sample["net_input"])[1]["past_future"]
    heads, target = model.decoder.past_future.bow, sample["target"]
    return (
        heads["past"](routed.past),
        heads["future"](routed.future),
        model.decoder.output_embeddings,
        target,
        target.eq(padding),
    )
