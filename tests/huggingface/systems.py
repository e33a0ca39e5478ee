"""A small model of every system, and a batch. Nothing here needs fairseq."""

import pytest
import torch

from capsule_routing.huggingface import CapsuleConfig, CapsuleForConditionalGeneration

SIZES = {"vocab_size": 44, "encoder_embed_dim": 32, "encoder_ffn_embed_dim": 48, "encoder_layers": 2}
SIZES |= {"decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "dropout": 0.0}
EVERYTHING = {"encoder_routing": "both", "decoder_routing": "horizontal", "past_future": "gdr", "guided_heads": "both"}
EVERYTHING |= {"global_representation": "capsule", "global_capsules": 4, "label_smoothing": 0.1}
SYSTEMS = {
    "plain": {},
    "gdr": {"past_future": "gdr", "guided_heads": "both"},
    "clf": {"past_future": "clf"},
    "attn": {"past_future": "attn", "guided_heads": "bow"},
    "gret": {"global_representation": "capsule", "global_capsules": 4},
    "capsule": {"encoder_routing": "both", "decoder_routing": "horizontal"},
    "selective": {"selective_attention": "both", "query_key_norm": "both"},
    "everything": EVERYTHING,
}
every_system = pytest.mark.parametrize("system", SYSTEMS)


def build(**options):
    torch.manual_seed(1)
    return CapsuleForConditionalGeneration(CapsuleConfig(**{**SIZES, **options}))


def batch(lengths=((7, 5), (3, 9), (6, 2)), left=False):
    """Return sources and labels with `</s>`, padded on the right or on the left."""
    torch.manual_seed(3)
    rows = [[torch.cat([torch.randint(4, 44, (number,)), torch.tensor([2])]) for number in pair] for pair in lengths]
    side = "left" if left else "right"
    pad = torch.nn.utils.rnn.pad_sequence
    sources, targets = zip(*rows)
    return {"input_ids": pad(sources, True, 1, side), "labels": pad(targets, True, -100, side)}


def inputs_of(model, left=False):
    inputs = batch(left=left)
    inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(inputs.pop("labels"))
    inputs["attention_mask"] = inputs["input_ids"].ne(1).long()
    inputs["decoder_attention_mask"] = inputs["decoder_input_ids"].ne(1).long()
    return inputs


def gradients(model, **inputs):
    model.zero_grad()
    output = model(**inputs)
    output.loss.backward()
    names = ((name.removeprefix("_orig_mod."), parameter) for name, parameter in model.named_parameters())
    return output, {name: parameter.grad.clone() for name, parameter in names}


def assert_close(left, right):
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)
