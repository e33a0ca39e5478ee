"""The old location of `fairseq_capsule.models.attentions`, which the documentation of version 0.1 names."""

from fairseq_capsule.models.attentions import decoder_attention, encoder_attention, lstm_attention

__all__ = ["decoder_attention", "encoder_attention", "lstm_attention"]
