#!/usr/bin/env bash
# torch: MultiheadAttention with is_causal=True and need_weights=False never sees the key of add_bias_kv or add_zero_attn.
#
# Expected: is_causal is a hint that the mask is causal, and need_weights says what to return; neither changes the output.
# Seen: with an extra key, which every position may attend to, is_causal=True without weights returns exactly what the layer
#     returns without that key, and bias_k and bias_v get a gradient of 0. With weights, without the hint, or with a
#     key_padding_mask that masks nothing, the key has a share of the attention and the output is another.
# Why: where no weights and no padding mask are asked for, the hint takes the place of the mask. The extra key is put after the
#     others, so for the causal kernel, which counts from the first key, it lies behind the end of the sentence.
# Consequence: a decoder is trained without its extra key on batches without padding, and with it on the others; who returns
#     the weights for a picture of the attention gets another model than the one that translated.
# Instead: is_causal=False, with the mask alone.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 numpy

"$folder/bin/python" -W ignore - <<'PYTHON'
import torch
from torch.nn import MultiheadAttention

torch.manual_seed(0)
TOKENS = torch.randn(2, 6, 16)
CAUSAL = torch.ones(6, 6, dtype=torch.bool).triu(1)  # True where masked
NO_PADDING = torch.zeros(2, 6, dtype=torch.bool)


def attend(layer, need_weights=False, **options):
    return layer(TOKENS, TOKENS, TOKENS, attn_mask=CAUSAL, need_weights=need_weights, **options)[0]


def same(one, other):
    return torch.allclose(one, other, atol=1e-5)


print("torch", torch.__version__)
for name in ("add_bias_kv", "add_zero_attn"):
    layer = MultiheadAttention(16, 2, batch_first=True, **{name: True})
    plain = MultiheadAttention(16, 2, batch_first=True)
    plain.load_state_dict({key: value for key, value in layer.state_dict().items() if key not in ("bias_k", "bias_v")})
    without_key, with_key = attend(plain), attend(layer)
    found = {
        "is_causal": attend(layer, is_causal=True),
        "is_causal, need_weights": attend(layer, need_weights=True, is_causal=True),
        "is_causal, key_padding_mask": attend(layer, is_causal=True, key_padding_mask=NO_PADDING),
    }
    assert not same(without_key, with_key)
    for options, output in found.items():
        is_with, is_without = same(output, with_key), same(output, without_key)
        print(f"{name}, {options}: as {'with' if is_with else 'without'} the extra key")
        assert (is_with, is_without) == (options != "is_causal", options == "is_causal"), f"changed: {name}, {options}"
    if name == "add_bias_kv":
        for is_causal in (False, True):
            layer.zero_grad()
            attend(layer, is_causal=is_causal).square().sum().backward()
            largest = float(torch.cat([layer.bias_k.grad, layer.bias_v.grad]).abs().max())
            print(f"add_bias_kv, is_causal={is_causal}: largest gradient of the extra key and value {largest:.3f}")
            assert (largest > 0.01) != is_causal and (largest == 0) == is_causal, "changed: gradient"
PYTHON
