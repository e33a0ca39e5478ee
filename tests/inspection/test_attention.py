from argparse import Namespace

import pytest
import torch
from fairseq.models import build_model

from fairseq_capsule.inspection.attention import decoder_attention, encoder_attention, lstm_attention
from tests.zoo import LENGTHS, SMALL, build, make_batch, make_sentences, make_task

BATCH = make_batch(make_sentences(LENGTHS))["net_input"]
SOURCE, PREVIOUS = BATCH["src_tokens"], BATCH["prev_output_tokens"]


def forward_attention(layers, run):
    """Return the queries and outputs of the layers' self-attention while `run` calls the model."""
    calls = []
    hooks = [
        layer.self_attn.register_forward_hook(
            lambda attention, args, kwargs, output: calls.append((kwargs.get("query"), output[0])), with_kwargs=True
        )
        for layer in layers
    ]
    with torch.no_grad():
        run()
    for hook in hooks:
        hook.remove()
    return calls


def attended(attention, weights, query):
    """Apply the weights `[B, H, L, L]` to the values of a layer, and project the result."""
    length, batch, _ = query.shape
    values = attention.v_proj(query).view(length, batch, 4, 8).permute(1, 2, 0, 3)
    return attention.out_proj((weights @ values).permute(2, 0, 1, 3).reshape(length, batch, 32))


@pytest.mark.parametrize("normalize_before", [False, True])
def test_explained_attention_reproduces_encoder_layers(normalize_before):
    """The explained attention, applied to the values, gives the output of the forward pass."""
    model = build("capsule_transformer", {"encoder_normalize_before": normalize_before, "encoder_routing_layers": "2"})
    calls = forward_attention(model.encoder.layers, lambda: model.encoder(SOURCE, SOURCE.ne(1).sum(1)))
    explanations = encoder_attention(model, SOURCE)
    assert [shown.vertical is not None for shown in explanations] == [False, True]
    valid = SOURCE.ne(1).T
    for shown, (query, output), layer in zip(explanations, calls, model.encoder.layers):
        expected = attended(layer.self_attn, shown.after, query)
        torch.testing.assert_close(output[valid], expected[valid], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"decoder_routing": "none"}, {"decoder_normalize_before": True}])
def test_explained_attention_reproduces_decoder_layers(options):
    model = build("capsule_transformer", options)
    calls = forward_attention(model.decoder.layers, lambda: model(**BATCH))
    explanations = decoder_attention(model, SOURCE, PREVIOUS)
    routed = "decoder_routing" not in options
    valid = PREVIOUS.ne(1).T
    for (shown, _), (query, output), layer in zip(explanations, calls, model.decoder.layers):
        expected = attended(layer.self_attn, shown.after, query)
        torch.testing.assert_close(output[valid], expected[valid], rtol=1e-5, atol=1e-5)
        assert torch.equal(shown.after, shown.after.tril()) and (shown.horizontal is not None) == routed
    with torch.no_grad():
        mean = model(**BATCH)[1]["attn"][0]  # the mean over the heads of the last layer
    torch.testing.assert_close(explanations[-1][1].mean(1)[valid.T], mean[valid.T])


def test_joint_self_attention_of_a_decoder_is_not_shown():
    options = {"cross_self_attention": True, "no_cross_attention": True, "decoder_routing": "none"}
    explanations = decoder_attention(build("capsule_transformer", options), SOURCE, PREVIOUS)
    assert [tuple(layer) for layer in explanations] == [(None, None)] * 2


@pytest.mark.parametrize("arch", ["capsule_lstm", "gdr_lstm"])
def test_lstm_attention_equals_that_of_the_forward_pass(arch):
    model = build(arch)
    with torch.no_grad():
        extra = model(**BATCH)[1]
    attention = extra["attn"][0] if isinstance(extra, dict) else extra
    model.decoder.need_attn = False  # prepared for generation
    assert torch.equal(lstm_attention(model, SOURCE, PREVIOUS), attention) and not model.decoder.need_attn


def test_a_plain_transformer_has_attention_but_no_capsules():
    model = build_model(Namespace(arch="transformer", **SMALL), make_task())
    training = model.training
    shown = encoder_attention(model, SOURCE)[0]
    assert torch.equal(shown.before, shown.after) and shown.vertical is None and shown.horizontal is None
    assert model.training == training
