#!/usr/bin/env bash
# torch: cross entropy that leaves padding out by a weight of 0 trains on it as soon as labels are smoothed.
#
# Expected: weight[PAD] = 0 removes padded positions, as ignore_index=PAD does; label_smoothing=0.1 changes nothing of that.
# Seen: without smoothing both forms have equal losses and gradients. With it, the weighted form has a gradient at padded
#     positions, and the loss of a sentence depends on how long the others of its batch are.
# Why: the term of the smoothed labels is weighted by the class it predicts, not by the class of the target, so a padded
#     position still has the other classes in its sum. The divisor does not count it. Only ignore_index removes a position.
# Consequence: old translation code that makes the padding's weight 0 gets another loss with other batches once somebody
#     turns smoothing on; perplexities of it rise with the share of padding.
# Instead: ignore_index for padding, and weight for classes alone.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 numpy

"$folder/bin/python" - <<'PYTHON'
import torch
from torch.nn.functional import cross_entropy

PAD = 0
torch.manual_seed(1)
logits = torch.randn(6, 8, dtype=torch.float64, requires_grad=True)
labels = torch.tensor([3, 5, 7, PAD, PAD, PAD])
weight = torch.ones(8, dtype=torch.float64)
weight[PAD] = 0

print("torch", torch.__version__)
for smoothing in (0.0, 0.1):
    for name, options in (("weight", {"weight": weight}), ("ignore_index", {"ignore_index": PAD})):
        loss = cross_entropy(logits, labels, label_smoothing=smoothing, **options)
        shorter = cross_entropy(logits[:4], labels[:4], label_smoothing=smoothing, **options)
        (gradient,) = torch.autograd.grad(loss, logits)
        padded = gradient[3:].abs().sum()
        print(f"smoothing {smoothing}, {name}: loss {loss:.4f}, with less padding {shorter:.4f}, gradient of padding {padded:.4f}")
        trains_on_padding = name == "weight" and smoothing > 0
        assert bool(padded > 1e-3) == trains_on_padding, "changed"
        assert torch.isclose(loss, shorter) != trains_on_padding, "changed"
PYTHON
