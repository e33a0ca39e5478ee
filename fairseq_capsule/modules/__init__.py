"""Modules that own the parameters of a routing; plain keyword arguments, no config objects."""

from fairseq_capsule.modules.attention_routing import AttentionRouting

__all__ = ["AttentionRouting"]
