from argparse import Namespace

import pytest
import torch
from fairseq.models import build_model

from fairseq_capsule.analysis.encoder_attention import encoder_attention
from fairseq_capsule.analysis.plots import plot_attention
from fairseq_capsule.errors import UserError
from tests.zoo import LENGTHS, SMALL, build, make_batch, make_sentences, make_task

SOURCE = make_batch(make_sentences(LENGTHS))["net_input"]["src_tokens"]


@pytest.mark.parametrize("normalize_before", [False, True])
def test_every_layer_explains_what_the_encoder_did(normalize_before):
    """The explained attention applied to the values gives what the layer's attention gave in the forward pass."""
    model = build("capsule_transformer", {"encoder_normalize_before": normalize_before, "encoder_routing_layers": "2"})
    calls = []
    for layer in model.encoder.layers:
        layer.self_attn.register_forward_hook(
            lambda attention, args, kwargs, output: calls.append((kwargs.get("query"), output[0])), with_kwargs=True
        )
    model.encoder(SOURCE, SOURCE.ne(1).sum(1))
    during_forward = calls[:2]
    explanations = encoder_attention(model, SOURCE)
    assert [shown.vertical is not None for shown in explanations] == [False, True]
    for shown, (query, output), layer in zip(explanations, during_forward, model.encoder.layers):
        attention = layer.self_attn
        length, batch, _ = query.shape
        values = attention.v_proj(query).view(length, batch, 4, 8).permute(1, 2, 0, 3)
        expected = attention.out_proj((shown.after @ values).permute(2, 0, 1, 3).reshape(length, batch, 32))
        valid = SOURCE.ne(1).T
        torch.testing.assert_close(output[valid], expected[valid], rtol=1e-5, atol=1e-5)


def test_a_plain_transformer_has_attention_but_no_capsules():
    model = build_model(Namespace(arch="transformer", **SMALL), make_task())
    training = model.training
    shown = encoder_attention(model, SOURCE)[0]
    assert torch.equal(shown.before, shown.after) and shown.vertical is None and shown.horizontal is None
    assert model.training == training


def test_a_model_without_self_attention_is_refused():
    model = torch.nn.Module()
    model.encoder = torch.nn.LSTM(2, 2)
    with pytest.raises(UserError, match="a LSTM has no self-attention to show"):
        encoder_attention(model, SOURCE)


def test_the_picture_shows_the_numbers():
    model = build("capsule_transformer")
    shown = encoder_attention(model, SOURCE[:1])[0]
    figure = plot_attention(shown, [str(token) for token in SOURCE[0].tolist()], "a title")
    images = [axis.images[0].get_array() for axis in figure.axes if axis.images]
    assert len(images) == 4 * 4  # before, after, vertical, horizontal of four heads
    for image, expected in zip(images[4:8], shown.after[0]):
        torch.testing.assert_close(torch.tensor(image.data), expected)
