"""The modules that the options of a model stand for. `config` is any object that has these options as attributes."""

from typing import Any, List, Optional

from torch import nn

from capsule_routing.modules.attention_routing import AttentionRouting
from capsule_routing.modules.global_representation import (
    CapsulePooling,
    ContextGate,
    GlobalRepresentation,
    MeanPooling,
    PlainSum,
)
from capsule_routing.modules.past_future import (
    GuidedDynamicRouting,
    HolisticContext,
    PastFutureAttention,
    PastFutureClassifier,
    PastFutureRouting,
)
from capsule_routing.modules.selective_attention import QueryKeyNorm, SelectiveAttention


def encoder_attention_routing(config: Any) -> Optional[AttentionRouting]:
    """Build the routing of an encoder's self-attention; None without `encoder_routing`."""
    if config.encoder_routing == "none":
        return None
    return AttentionRouting(
        config.encoder_attention_heads,
        vertical=config.encoder_routing in ("both", "vertical"),
        horizontal=config.encoder_routing in ("both", "horizontal"),
        iterations=config.routing_iterations,
    )


def decoder_attention_routing(config: Any) -> Optional[AttentionRouting]:
    """Build the routing of a decoder's self-attention; None without `decoder_routing`."""
    if config.decoder_routing == "none":
        return None
    heads = config.decoder_attention_heads
    return AttentionRouting(heads, vertical=False, iterations=config.routing_iterations, causal=True)


def query_key_norm(config: Any, side: str) -> Optional[QueryKeyNorm]:
    """Build the norm of a self-attention of the "encoder" or "decoder"; None where there is none."""
    heads = getattr(config, f"{side}_attention_heads")
    return QueryKeyNorm(heads) if config.query_key_norm in ("both", side) else None


def selective_attention(config: Any, side: str) -> Optional[SelectiveAttention]:
    """Build what masks keys in a self-attention of the "encoder" or "decoder"; None where nothing does."""
    return SelectiveAttention(side == "decoder") if config.selective_attention in ("both", side) else None


def global_representation(config: Any, source_dim: int, source_layers: int) -> GlobalRepresentation:
    """Build the vector of the source, for an encoder of `source_layers` layers."""
    aggregate = config.global_aggregation == "gru"
    poolings: List[nn.Module] = []
    for _ in range(source_layers if aggregate else 1):
        if config.global_representation == "mean":
            poolings.append(MeanPooling(source_dim))
        else:
            pooling = CapsulePooling(
                source_dim,
                config.global_capsules,
                config.global_capsule_dim,
                iterations=config.global_iterations,
                pooling=config.global_pooling,
            )
            poolings.append(pooling)
    return GlobalRepresentation(source_dim, poolings, aggregate)


def context_gate(config: Any, target_dim: int) -> nn.Module:
    """Build what adds the vector of the source to decoder states."""
    return ContextGate(target_dim) if config.global_gate == "context" else PlainSum()


def past_future(config: Any, source_dim: int, target_dim: int) -> HolisticContext:
    """Build PAST and FUTURE, with the heads of their losses."""
    per_content = config.past_future_capsules
    capsule_dim = config.past_future_capsule_dim or max(1, target_dim // 2)
    content_dim = per_content * capsule_dim
    if config.past_future == "gdr":
        capsules = 2 * per_content + config.redundant_capsules
        routing: PastFutureRouting = GuidedDynamicRouting(
            source_dim, target_dim, capsules, capsule_dim, iterations=config.past_future_iterations
        )
    elif config.past_future == "clf":
        redundant = config.redundant_capsules > 0
        routing = PastFutureClassifier(source_dim, target_dim, content_dim, capsule_dim, redundant=redundant)
    else:
        routing = PastFutureAttention(source_dim, target_dim, content_dim)
    return HolisticContext(
        routing,
        # The other two give one large capsule for each content.
        capsules_per_content=per_content if config.past_future == "gdr" else 1,
        content_dim=content_dim,
        state_dim=target_dim,
        ffn_dim=config.past_future_ffn_dim or 2 * target_dim,
        heads=config.guided_heads,
        reduction=config.guided_reduction,
    )
