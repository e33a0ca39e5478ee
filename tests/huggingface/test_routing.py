"""What is routed is that of fairseq's inspection of the same weights."""

import pytest
import torch

from capsule_routing.errors import UserError
from tests.libraries import library
from tests.zoo import build, case_name, make_sentences

library("transformers")
from fairseq_capsule.inspection import Sentence, gather_arrays  # noqa: E402
from fairseq_capsule_lab.export.to_transformers import exported  # noqa: E402

CASES = [
    ("capsule_transformer", {"past_future": "gdr", "global_representation": "capsule"}),
    ("capsule_transformer", {"encoder_routing": "vertical", "encoder_routing_layers": "2", "decoder_routing": "none"}),
    ("gdr_transformer_base", {"past_future": "attn"}),
    ("gdr_transformer_base", {"past_future": "clf", "redundant_capsules": 0}),
]


@pytest.mark.parametrize("arch, options", CASES, ids=case_name)
def test_the_routing_is_that_of_the_inspection(arch, options):
    model = build(arch, options).double().eval()
    copy = exported(model)
    other, sentence = make_sentences([(5, 9), (7, 6)])
    source, target = sentence["source"], sentence["target"]
    words = [tuple(f"w{token}" for token in tokens.tolist()) for tokens in (source, target)]
    arrays = gather_arrays(model, Sentence(source[None], target[None], *words))

    pad = torch.nn.utils.rnn.pad_sequence  # a batch with padding of the target
    inputs = {
        "input_ids": pad([other["source"], source], True, 1, "left"),
        "decoder_input_ids": pad([other["target"].roll(1), target.roll(1)], True, 1),
    }
    with torch.no_grad():
        plain, output = copy(**inputs, use_cache=False), copy(**inputs, output_routing=True)
    assert plain.routing is None and output.cache is None and torch.equal(plain.logits, output.logits)
    expected = {
        name: torch.from_numpy(array.values) for name, array in arrays.items() if array.values.dtype.kind == "f"
    }
    expected["assignment"] = expected.pop("past_future_attention", expected.get("assignment"))
    found = {}
    for name, part in output.routing.items():
        if isinstance(part, tuple):
            length, start = len(target), 0
            if name.startswith("encoder"):
                length, start = len(source), part[0].size(-1) - len(source)
            found[name] = torch.stack([layer[1, :, start : start + length, start : start + length] for layer in part])
        else:
            found[name] = part[1, : len(target)]
            if name == "assignment":
                found[name] = found[name][:, -len(source) :]
    names = {"assignment", "global_gate", "encoder_vertical", "encoder_horizontal", "decoder_horizontal"}
    assert found and found.keys() == {name for name in names & expected.keys() if expected[name] is not None}
    for name, part in found.items():
        torch.testing.assert_close(part.to(expected[name].dtype), expected[name], rtol=1e-5, atol=1e-6)
    assert not any(module._forward_hooks for module in copy.modules())


def test_a_translation_comes_with_its_routing():
    copy = exported(build("gdr_transformer_base"))
    source = torch.stack([sentence["source"] for sentence in make_sentences([(6, 2), (6, 3)])])
    options = {"num_beams": 4, "num_return_sequences": 2, "max_new_tokens": 5, "output_routing": True}
    found = copy.generate(source, return_dict_in_generate=True, **options)
    assignment = found.routing["assignment"]
    assert assignment.shape == (4, found.sequences.size(1) - 1, source.size(1), 3)
    assert (assignment.sum(-1) - 1).abs().max() < 1e-5
    with pytest.raises(UserError, match="output_routing needs return_dict_in_generate=True"):
        copy.generate(source, **options)
