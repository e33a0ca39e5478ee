#!/usr/bin/env bash
# x-transformers: with orthog_residual or attn_orthog_projected_values a Decoder looks ahead, and padding changes an encoder.
#
# Expected: a Decoder is causal with every option, and a mask takes padding out: what is added to a token is made orthogonal
#     to what that token had.
# Seen: if the last words change, all positions before them change as well. What greedy generation writes with the cache and
#     without it differs after a few words. In an encoder, the vectors of the words depend on the padding, mask or not.
# Why: the function that takes away the parallel part flattens all dimensions after the batch before it, so that a whole
#     sentence is one vector. The share that it takes away depends on every position, those of the future and of padding
#     too; with a cache, on the newest position alone. attn_orthog_projected_values_per_head does the same.
# Consequence: the perplexity is that of a model that knows something about the words to come, and generation is another
#     model than the one that was trained. Scores of a sentence depend on its batch.
# Instead: leave these options out, or put a projection over the last dimension in the place of orthog_project, as below.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 numpy x-transformers==2.31.10

"$folder/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from torch.nn.functional import normalize, pad
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper, x_transformers

torch.manual_seed(0)
SENTENCE, OTHER = torch.randint(1, 50, (2, 1, 20))
OTHER[:, :12] = SENTENCE[:, :12]


def model(kind, **options):
    """A model with weights that are as large as trained ones."""
    torch.manual_seed(1)
    layers = kind(dim=32, depth=2, heads=2, attn_dim_head=16, **options)
    built = TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers).eval()
    for parameter in built.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return built


@torch.no_grad()
def differences(**options):
    decoder, encoder = model(Decoder, **options), model(Encoder, **options)
    ahead = decoder(SENTENCE)[:, :12] - decoder(OTHER)[:, :12]
    every = torch.ones(1, 12, dtype=torch.bool)
    padding = encoder(SENTENCE[:, :12], mask=every) - encoder(pad(SENTENCE[:, :12], (0, 8)), mask=pad(every, (0, 8)))[:, :12]
    wrapper = AutoregressiveWrapper(decoder)
    cached, plain = (wrapper.generate(SENTENCE[:, :5], 15, temperature=0.0, cache_kv=cache) for cache in (True, False))
    return [float(ahead.abs().amax(-1).min()), float(padding.abs().max()), int((cached != plain).sum())]


def of_each_token(x, y):
    y = normalize(y, dim=-1)
    return x - (x * y).sum(-1, keepdim=True) * y


print("x-transformers", version("x-transformers"), "torch", torch.__version__)
options = ["orthog_residual", "attn_orthog_projected_values", "attn_orthog_projected_values_per_head"]
cases = [("without", {}, False), *((name, {name: True}, True) for name in options)]
original = x_transformers.orthog_project
for projection in (original, of_each_token):
    x_transformers.orthog_project = projection
    for name, settings, affected in cases:
        ahead, padding, words = differences(**settings)
        wrong = affected and projection is original
        print(f"{projection.__name__}, {name}: future {ahead:.4f}, padding {padding:.4f}, the cache changes {words} words of 15")
        assert (ahead > 1e-4) == wrong, f"changed: looking ahead, {name}"
        assert (padding > 1e-4) == wrong, f"changed: padding, {name}"
        assert (words > 0) == wrong, f"changed: cache, {name}"
PYTHON
