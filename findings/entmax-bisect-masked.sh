#!/usr/bin/env bash
# entmax: entmax_bisect of a row in which all positions are masked by -1e9 is NaN; entmax15, sparsemax and softmax are uniform.
#
# Expected: entmax_bisect(alpha=1.5) is entmax15 by another algorithm, and a constant that is added to all logits changes nothing.
# Seen: at logits near 0 both agree to 1e-6. With 100 added they differ by 0.05 in bfloat16, with 1,000 the row is NaN there;
#     in float32 it is NaN with -1e9, the usual mask, added to all.
# Why: sparsemax and entmax15 subtract the maximum first. The bisection looks for its threshold between the maximum minus 1
#     and the maximum; where neighbouring floats are farther apart than that, no position is above it, and it divides 0 by 0.
# Consequence: a learned alpha needs the bisection. A decoder step whose memory is padding alone, or an empty source in a
#     batch, then makes the whole gradient NaN, where a Transformer with softmax goes on.
# Instead: subtract the maximum of each row before entmax_bisect, in float32.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 numpy entmax==1.3

"$folder/bin/python" - <<'PYTHON'
from importlib.metadata import version

import torch
from entmax import entmax15, entmax_bisect, sparsemax


def bisected(logits, dim):
    return entmax_bisect(logits, alpha=1.5, dim=dim)


def rounded(row):
    return [round(value, 2) for value in row.tolist()]


logits = torch.tensor([1.0, 2.0, 0.0, 0.5])
functions = {"softmax": torch.softmax, "sparsemax": sparsemax, "entmax15": entmax15, "entmax_bisect": bisected}
print("entmax", version("entmax"), "torch", torch.__version__)
for dtype, shift in ((torch.float32, 0), (torch.float32, -1e9), (torch.bfloat16, 100), (torch.bfloat16, 1000)):
    rows = {name: function((logits + shift).to(dtype), dim=-1) for name, function in functions.items()}
    print(dtype, f"logits{shift:+g}:", ", ".join(f"{name} {rounded(row)}" for name, row in rows.items()))
    broken = {name for name, row in rows.items() if row.isnan().any()}
    assert broken == ({"entmax_bisect"} if abs(shift) >= 1000 else set()), "changed"
    if shift == 0:
        assert torch.allclose(rows["entmax15"], rows["entmax_bisect"], atol=1e-6), "changed"
    if shift == 100:
        assert (rows["entmax15"] - rows["entmax_bisect"]).abs().max() > 0.03, "changed"
after = functions["entmax_bisect"](logits - 1e9 - (logits - 1e9).max(), dim=-1)
print("entmax_bisect of -1e9, the maximum subtracted:", rounded(after))
assert not after.isnan().any(), "changed"
PYTHON
