import math

import pytest

from fairseq_capsule.inspection.attention import encoder_attention
from fairseq_capsule_lab.analysis.routing import routing_statistics
from tests.zoo import build, make_batch, make_sentences


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
