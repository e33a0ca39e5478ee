#!/usr/bin/env bash
# x-transformers: with shift_tokens, generate() writes another text with its cache than without, and the cache is the default.
#
# Expected: a cache of keys and values only saves time. Where a layer cannot work with it, can_cache_kv is False.
# Seen: with shift_tokens it is True, and greedy generation with the cache differs from that without. A small model that has
#     learnt to copy makes no error without the cache, and writes 15 % wrong words with it; without shift_tokens both are
#     right. In an encoder, the last word also takes the embedding of the padding after it, although there is a mask.
# Why: token shifting replaces half of the features of a position by those of the one before. With a cache the layer gets the
#     newest position alone, so there is none before, and zeros take its place; nothing keeps the last position, and
#     can_cache_kv does not ask for it. The mask reaches the shift of attention layers only, not that of feed-forward layers.
# Consequence: the loss and teacher-forced scores are right, the generated translations are not, and look like those of an
#     undertrained model. A sentence of a batch is encoded otherwise than alone.
# Instead: generate(..., cache_kv=False), and shift_tokens=0 in encoders.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 numpy x-transformers==2.31.10

"$folder/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

torch.set_num_threads(1)
WORDS, LENGTH, START = 12, 6, 13


def texts(count):
    """Six words, a sign, and the same words again."""
    words = torch.randint(1, WORDS, (count, LENGTH))
    return torch.cat([words, torch.full((count, 1), START), words], 1)


def errors(shift):
    torch.manual_seed(0)
    layers = Decoder(dim=64, depth=2, heads=4, attn_dim_head=32, rotary_pos_emb=True, rotary_emb_dim=32, shift_tokens=shift)
    model = AutoregressiveWrapper(TransformerWrapper(num_tokens=14, max_seq_len=16, attn_layers=layers))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(300):
        optimizer.zero_grad()
        model(texts(32)).backward()
        optimizer.step()
    held_out = texts(200)
    prompt, answer = held_out[:, : LENGTH + 1], held_out[:, LENGTH + 1 :]
    assert model.net.can_cache_kv, "changed: whether a cache is possible"
    found = []
    for cache in (False, True):
        generated = model.generate(prompt, LENGTH, temperature=0.0, cache_kv=cache)
        found.append(float((generated != answer).float().mean()))
    return found


print("x-transformers", version("x-transformers"), "torch", torch.__version__)
for shift in (0, 1):
    without, cached = errors(shift)
    print(f"shift_tokens={shift}: wrong words without the cache {without:.1%}, with it {cached:.1%}")
    assert without < 0.02, "not learnt"
    assert (cached > 0.05) == (shift == 1) and (cached == without) == (shift == 0), "changed: cache"

for shift in (0, 1):
    torch.manual_seed(0)
    layers = Encoder(dim=32, depth=2, heads=2, shift_tokens=shift)
    encoder = TransformerWrapper(num_tokens=50, max_seq_len=20, attn_layers=layers, return_only_embed=True).eval()
    sentence = torch.randint(1, 50, (1, 12))
    padded = torch.nn.functional.pad(sentence, (0, 8))
    with torch.no_grad():
        alone = encoder(sentence, mask=torch.ones(1, 12, dtype=torch.bool))
        batched = encoder(padded, mask=torch.arange(20)[None] < 12)[:, :12]
    difference = float((alone - batched).abs().max())
    print(f"encoder, shift_tokens={shift}: with masked padding the words' vectors differ by {difference:.4f}")
    assert (difference > 0.1) == (shift == 1), "changed: padding"
PYTHON
