"""The former place of functions of `fairseq_capsule.models.mechanisms.past_future`, which the documentation of version
0.1 named."""

from fairseq_capsule.models.mechanisms.past_future import bag_words, past_future

__all__ = ["bag_words", "past_future"]
