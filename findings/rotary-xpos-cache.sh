#!/usr/bin/env bash
# rotary-embedding-torch: with use_xpos, decoding with cached keys attends otherwise than training, and the more so the longer.
#
# Expected: rotate_queries_with_cached_keys for the newest query gives the last row of what rotate_queries_and_keys gives for
#     all, so that decoding step by step is the trained model. Without use_xpos it does.
# Seen: with use_xpos all scores are too small, by 1 % after 16 positions, 7 % after 128 and a fifth after 512, so the attention
#     is flatter.
# Why: xPos scales queries and keys by a power of their position, counted from the middle of the sequence. Here the middle of
#     the queries is that of the few new ones, the middle of the keys that of all keys: they no longer cancel out, and all
#     scores shrink by a power of half the length. Queries as many as keys have the same middle, and are right.
# Consequence: translations of long texts drift off, though the loss of the same model on them is good. Every step has
#     another error, as the length grows.
# Instead: put zeros before the new queries, as many as there are old keys, rotate both by rotate_queries_and_keys, and keep
#     the new ones.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 numpy rotary-embedding-torch==0.9.1

"$folder/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from rotary_embedding_torch import RotaryEmbedding
from torch.nn.functional import pad


def scores(length, new, xpos):
    """The attention scores of the last query: all at once, and with the keys cached."""
    torch.manual_seed(0)
    rotary = RotaryEmbedding(dim=64, use_xpos=xpos)
    queries, keys = torch.randn(2, 1, 8, length, 64)
    if xpos:
        rotated = rotary.rotate_queries_and_keys(queries, keys)
    else:
        rotated = rotary.rotate_queries_or_keys(queries), rotary.rotate_queries_or_keys(keys)
    cached = rotary.rotate_queries_with_cached_keys(queries[:, :, -new:], keys)
    ways = [rotated, cached]
    if xpos:
        ways.append(rotary.rotate_queries_and_keys(pad(queries[:, :, -new:], (0, 0, length - new, 0)), keys))
    return [query[:, :, -1:] @ key.transpose(-1, -2) for query, key in ways]


print("rotary-embedding-torch", version("rotary-embedding-torch"), "torch", torch.__version__)
for length, new, xpos in [(512, 1, False), (16, 1, True), (128, 1, True), (512, 1, True), (512, 512, True)]:
    trained, cached, *corrected = scores(length, new, xpos)
    error = float((trained - cached).norm() / trained.norm())
    size = float(cached.norm() / trained.norm())
    print(f"xpos {xpos}, {new} new of {length} positions: scores differ by {error:.1%}, and are {size:.2f} times as large")
    assert (error > 0.005) == (xpos and new == 1), "changed: scores"
    for other in corrected:
        assert torch.allclose(other, trained, atol=1e-4), "changed: zeros before the queries"
PYTHON
