"""Layers of a trained Transformer are left out, as in fairseq."""

import pytest
import torch

from tests.zoo import build, encode, logits_of, make_batch, make_sentences

BATCH = make_batch(make_sentences([(5, 4), (3, 6)]))
OPTIONS = {"encoder_layers": 4, "decoder_layers": 3}


@pytest.mark.parametrize(
    "arch, keep",
    [("gdr_transformer_base", {"decoder": "2"}), ("capsule_transformer", {"encoder": "1,3", "decoder": "2,0"})],
)
def test_the_kept_layers_are_those_of_the_checkpoint(arch, keep):
    trained = build(arch, OPTIONS)
    options = {f"{side}_layers_to_keep": text for side, text in keep.items()}
    pruned = build(arch, {**OPTIONS, **options}, seed=2)
    pruned.load_state_dict(trained.state_dict())
    for side in ("encoder", "decoder"):
        layers = getattr(trained, side).layers
        numbers = sorted(map(int, keep[side].split(","))) if side in keep else range(len(layers))
        getattr(trained, side).layers = torch.nn.ModuleList(layers[number] for number in numbers)
    assert torch.equal(encode(pruned, BATCH)[0], encode(trained, BATCH)[0])
    assert torch.equal(logits_of(pruned, BATCH), logits_of(trained, BATCH))


def test_a_pruned_checkpoint_is_not_pruned_again():
    options = {**OPTIONS, "encoder_layers_to_keep": "1,3"}
    first, second = build("capsule_transformer", options), build("capsule_transformer", options, seed=2)
    second.load_state_dict(first.state_dict())
    assert torch.equal(logits_of(first, BATCH), logits_of(second, BATCH))


@pytest.mark.parametrize("fewer", [{"encoder_layers": 3}, {"decoder_layers": 2}])
def test_a_checkpoint_of_more_layers_is_not_pruned_without_the_option(fewer):
    trained, smaller = (build("capsule_transformer", options) for options in (OPTIONS, {**OPTIONS, **fewer}))
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\) in state_dict"):
        smaller.load_state_dict(trained.state_dict())


def test_layers_that_route_keep_their_numbers():
    options = {**OPTIONS, "encoder_routing_layers": "2,4", "encoder_layers_to_keep": "0,3"}
    layers = build("capsule_transformer", options).encoder.layers
    plain = build("capsule_transformer", {**OPTIONS, "encoder_routing": "none"}).encoder.layers[0].self_attn
    assert type(layers[0].self_attn) is type(plain) and type(layers[1].self_attn) is not type(plain)
