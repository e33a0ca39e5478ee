#!/usr/bin/env bash
# torch: torch.no_grad() changes what TransformerEncoder returns at padded positions, and with it the mean over a sentence.
#
# Expected: without dropout an encoder returns the same in training, in evaluation, and with or without gradients.
# Seen: in eval() and no_grad() the padded positions are zeros; in eval() with gradients, and in train(), they are vectors as
#     large as the others. The mean over all positions differs.
# Why: without gradients a fast path packs the sentences into a nested tensor and pads the result with zeros. It needs
#     norm_first=False, batch_first=True and a padding mask; with norm_first=True all modes agree.
# Consequence: a sentence encoder or quality estimator that pools without the mask learns from one input and is validated
#     on another; the difference grows with the padding, that is, with the batch. Nothing warns.
# Instead: multiply by the mask before pooling, and pass memory_key_padding_mask to the decoder. enable_nested_tensor=False
#     turns the fast path's packing off.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0

"$folder/bin/python" -W ignore - <<'PYTHON'
import torch
from torch.nn import TransformerEncoder, TransformerEncoderLayer

lengths = torch.tensor([3, 6])
padded = torch.arange(6)[None, :] >= lengths[:, None]  # True at padding
words = (~padded).unsqueeze(-1)


def outputs(norm_first, **options):
    torch.manual_seed(0)
    layer = TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first)
    encoder = TransformerEncoder(layer, 2, **options)
    embedded = torch.randn(2, 6, 8)
    found = {"train": encoder.train()(embedded, src_key_padding_mask=padded).detach()}
    found["eval"] = encoder.eval()(embedded, src_key_padding_mask=padded).detach()
    with torch.no_grad():
        found["eval, no_grad"] = encoder(embedded, src_key_padding_mask=padded)
    return found


def difference(one, other):
    return float((one - other).abs().max())


print("torch", torch.__version__)
settings = {
    "default": {"norm_first": False},
    "norm_first": {"norm_first": True},
    "enable_nested_tensor=False": {"norm_first": False, "enable_nested_tensor": False},
}
for name, options in settings.items():
    found = outputs(**options)
    fast = found["eval, no_grad"]
    for mode in ("train", "eval"):
        at_words = difference(found[mode] * words, fast * words)
        mean = difference(found[mode].mean(1), fast.mean(1))
        print(f"{name}, {mode} against no_grad: words differ by {at_words:.6f}, means of all positions by {mean:.6f}")
        assert at_words < 1e-5
        assert (mean > 0.1) == (name == "default"), f"changed: {name}, {mode}"
    if name == "default":
        assert not fast[padded].any(), "changed: zeros at padding"
        assert found["eval"][padded].norm(dim=-1).min() > 1
PYTHON
