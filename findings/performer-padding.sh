#!/usr/bin/env bash
# performer-pytorch: the mask does not take padding out of the attention; the more padding, the smaller what is attended.
#
# Expected: with a mask, a sentence in a padded batch is encoded as alone.
# Seen: it is not. With all values 1, attention is a mean and so is 1; of a sentence of 8 words that is padded to 64 positions it
#     is about an eighth, to 16 about a half. The same with generalized_attention and in cross attention with context_mask.
# Why: the mask sets the values of the padding to 0, not its keys. Linear attention divides by the sum over all keys, so the
#     padding takes its share of the weight, and gives zeros for it.
# Consequence: short sentences in a batch with a long one get a fraction of their attention, so loss, translations and
#     scores depend on what they are batched with; sorting by length hides it in training, and a server shows it.
# Instead: batches of sentences of one length; or multiply the keys by the mask too, after the kernel of FastAttention.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 numpy performer-pytorch==1.1.4

"$folder/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from performer_pytorch import CrossAttention, PerformerLM, SelfAttention

torch.manual_seed(0)
SENTENCE = torch.randn(1, 8, 32)


@torch.no_grad()
def attended(kind, length, **options):
    """What attention makes of values that are all 1, for a sentence of 8 words that is padded to a length."""
    torch.manual_seed(1)
    layer = kind(32, heads=2, dim_head=16, qkv_bias=True, **options).eval()
    layer.to_v.weight.zero_()
    layer.to_v.bias.fill_(1)
    layer.to_out = torch.nn.Identity()
    padded = torch.cat([SENTENCE, torch.randn(1, length - 8, 32)], 1)
    mask = torch.arange(length)[None] < 8
    if kind is CrossAttention:
        return float(layer(SENTENCE, context=padded, context_mask=mask).mean())
    return float(layer(padded, mask=mask)[:, :8].mean())


print("performer-pytorch", version("performer-pytorch"), "torch", torch.__version__)
for name, kind, options in [
    ("self attention", SelfAttention, {}),
    ("self attention, generalized", SelfAttention, {"generalized_attention": True}),
    ("cross attention", CrossAttention, {}),
]:
    found = {length: attended(kind, length, **options) for length in (8, 16, 64)}
    print(f"{name}:", ", ".join(f"{length} positions {value:.3f}" for length, value in found.items()))
    assert abs(found[8] - 1) < 1e-3, f"changed: {name} without padding"
    assert 0.3 < found[16] < 0.7 and 0.03 < found[64] < 0.25, f"changed: {name} with padding"

torch.manual_seed(2)
model = PerformerLM(num_tokens=50, max_seq_len=64, dim=32, depth=2, heads=2, dim_head=16).eval()
words = torch.randint(1, 50, (1, 64))
with torch.no_grad():
    alone = model(words[:, :8]).log_softmax(-1)
    batched = model(words, mask=torch.arange(64)[None] < 8)[:, :8].log_softmax(-1)
difference = float((alone - batched).abs().max())
print(f"PerformerLM: the log probabilities of the 8 words differ by up to {difference:.2f} with padding behind the mask")
assert difference > 0.05, "changed: PerformerLM"
PYTHON
