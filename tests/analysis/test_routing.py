import math

import pytest
import torch

from fairseq_capsule.inspection.attention import encoder_attention
from fairseq_capsule_lab.analysis.routing import moved_words, routing_statistics
from tests.zoo import build, make_batch, make_sentences


def test_a_word_has_moved_if_it_was_future_first_and_past_last():
    """Three words of one sentence: one moves, one stays PAST, one ends as FUTURE. The fourth is padding."""
    past = torch.tensor([[[0.1, 0.9, 0.1, 0.1], [0.2, 0.9, 0.2, 0.2], [0.8, 0.9, 0.3, 0.8], [0.0, 0.0, 0.9, 0.0]]])
    padding = torch.tensor([[False, False, False, True]])
    steps = torch.tensor([[False, False, False, True]])  # the last step is padding
    mean = moved_words(past, 1 - past, padding, steps)
    assert mean.total / mean.number == pytest.approx(1 / 3)
    assert moved_words(past, 1 - past, padding, steps & False).total == 1  # the third word too, the first goes back


def test_the_entropy_of_the_attention_equals_a_loop():
    """Over the heads and words of each sentence, in the last layer of the encoder, padding left out."""
    model = build("capsule_transformer_tiny")
    source, previous = (
        make_batch(make_sentences([(5, 4), (3, 6), (7, 2)]))["net_input"][name]
        for name in ("src_tokens", "prev_output_tokens")
    )
    statistics = routing_statistics(model, source, previous)
    pad, values = model.encoder.padding_idx, {"before": [], "after": []}
    for words in source:
        length = int(words.ne(pad).sum())
        last = encoder_attention(model, words[words.ne(pad)][None])[-1]
        for name, attention in (("before", last.before), ("after", last.after)):
            for row in attention[0].flatten(0, 1).tolist():
                values[name].append(-sum(share * math.log(share) for share in row if share) / math.log(length))
    for name, rows in values.items():
        mean = statistics[f"attention_{name}"]
        assert mean.number == len(rows) and float(mean.total) == pytest.approx(sum(rows), rel=1e-4)
    assert statistics["attention_before"].total != statistics["attention_after"].total
