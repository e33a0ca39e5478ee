#!/usr/bin/env bash
# local-attention: an encoder attends to the padding that the package itself adds, unless one gives a mask.
#
# Expected: a sentence without padding needs no mask. LocalMHA fills it up to whole windows by itself, and hides what it adds.
# Seen: without a mask, with a window of 8, 30 % of the attention of five words goes to added keys, 33 % of nine, and 95 % of
#     one word. The output is another than with a mask of True only, for each length that is no multiple of the window. With
#     causal=True both are the same.
# Why: the added keys are zeros, whose logit is 0, so they weigh as much as an average word. They are masked as part of the
#     mask that was given; without one, only what lies before the first and behind the last window is.
# Consequence: how much a sentence is diluted depends on its length modulo the window. A sentence alone, without a mask, is
#     encoded otherwise than in a batch with one, so training in batches and use without a mask do not fit.
# Instead: always give a mask, torch.ones(batch, length, dtype=torch.bool) where all are words.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 numpy local-attention==1.11.2

"$folder/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from local_attention import LocalAttention
from local_attention.transformer import LocalMHA

torch.set_num_threads(1)
WINDOW = 8
print("local-attention", version("local-attention"), "torch", torch.__version__)
for causal in (False, True):
    for length in (1, 5, 8, 9, 13, 16):
        torch.manual_seed(length)
        sentence, mask = torch.randn(1, length, 32), torch.ones(1, length, dtype=torch.bool)
        layer = LocalMHA(dim=32, window_size=WINDOW, dim_head=16, heads=2, causal=causal).eval()
        heads = LocalAttention(window_size=WINDOW, causal=causal, autopad=True, dim=16).eval()
        queries, keys = torch.randn(2, 1, 2, length, 16)
        with torch.no_grad():
            difference = float((layer(sentence) - layer(sentence, mask=mask)).abs().max())
            # Values of 1: what an output lacks of 1 went to keys that are not there.
            to_words = float(heads(queries, keys, torch.ones_like(keys))[..., 0].mean())
        print(f"causal={causal}, {length:2} words: {1 - to_words:4.0%} of the attention goes to padding,",
              f"the output with a mask differs by {difference:.3f}")
        padded = not causal and length % WINDOW > 0
        assert (difference > 0.01) == padded and (to_words < 0.95) == padded, f"changed: {length} words, causal={causal}"
PYTHON
