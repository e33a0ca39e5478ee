"""The old location of functions of `fairseq_capsule.models.mechanisms.past_future`.

The documentation of version 0.1 names this location.
"""

from fairseq_capsule.models.mechanisms.past_future import bag_words, past_future

__all__ = ["bag_words", "past_future"]
