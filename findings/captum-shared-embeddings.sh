#!/usr/bin/env bash
# captum: where source and target share one embedding module, the attributions of the source are all zero.
#
# Expected: LayerIntegratedGradients on the embeddings says how much each source word contributes; or it refuses a layer that
#     runs twice in one forward pass.
# Seen: it returns one vector for each target word, all zero, also where the source changes the score. With source and target
#     as inputs it attributes a score of the target translated to itself. LayerGradientXActivation returns the target's
#     attributions. Nothing warns. With a module for each side the attributions add up to the difference of the scores.
# Why: a hook keeps the output of the last call, and the target is embedded last. Integrated gradients then put the points of
#     the path into every call of the layer, so that both sides get the same vectors.
# Consequence: many models with one vocabulary embed both sides by one module. Where both sides have the same length, the
#     picture looks plausible: source words carry the numbers of the target words at their positions.
# Instead: give each side a module of its own with the same weight, or attribute to the embedded words as inputs. Ask for the
#     convergence delta: here it is the whole difference of the scores.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 captum==0.9.0

"$folder/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from captum.attr import LayerGradientXActivation, LayerIntegratedGradients
from torch import nn


class Translator(nn.Module):
    """The log probability of the next target word, from two GRUs."""

    def __init__(self, shared):
        super().__init__()
        torch.manual_seed(0)
        self.source_embed = nn.Embedding(10, 4)
        self.target_embed = self.source_embed if shared else nn.Embedding(10, 4)
        self.target_embed.weight = self.source_embed.weight  # the same numbers in both models
        torch.manual_seed(1)
        self.encoder, self.decoder = nn.GRU(4, 4, batch_first=True), nn.GRU(4, 4, batch_first=True)
        self.output = nn.Linear(4, 10)

    def forward(self, source, target):
        state = self.encoder(self.source_embed(source))[1]
        return self.output(self.decoder(self.target_embed(target), state)[0])[:, -1].log_softmax(-1)


def numbers(attributions):
    return [f"{value:+.4f}" for value in attributions.sum(-1)[0].tolist()]


print("captum", version("captum"), "torch", torch.__version__)
NEXT = 3
source, target = torch.tensor([[3, 4, 5]]), torch.tensor([[1, 6, 7, 2]])
empty_source, empty_target = torch.zeros_like(source), torch.zeros_like(target)
found = {}
for shared in False, True:
    model = Translator(shared).eval()
    gradients = LayerIntegratedGradients(model, model.source_embed)
    attributions, delta = gradients.attribute(
        source, empty_source, additional_forward_args=(target,), target=NEXT, n_steps=200, return_convergence_delta=True
    )
    difference = float((model(source, target) - model(empty_source, target))[0, NEXT].detach())
    found[shared] = attributions
    name = "one module" if shared else "two modules"
    print(f"{name}: difference of the scores {difference:+.4f}, convergence delta {delta.item():+.4f}")
    print("    integrated gradients", *numbers(attributions))
    product = LayerGradientXActivation(model, model.source_embed)
    attributions = product.attribute(source, additional_forward_args=(target,), target=NEXT)
    print("    gradient x activation", *numbers(attributions))
    assert abs(difference) > 1e-3
    assert attributions.shape[1] == (target if shared else source).shape[1], "changed: gradient x activation"
assert found[False].shape == (1, 3, 4)
assert found[True].shape == (1, 4, 4) and not found[True].any(), "changed: integrated gradients"

both = gradients.attribute((source, target), (empty_source, empty_target), target=NEXT, n_steps=200)
both = both[0] if isinstance(both, tuple) else both
itself = float((model(target, target) - model(empty_target, empty_target))[0, NEXT].detach())
pair = float((model(source, target) - model(empty_source, empty_target))[0, NEXT].detach())
print(f"one module, both as inputs: {both.sum():+.4f}; the pair {pair:+.4f}, the target and itself {itself:+.4f}")
assert abs(float(both.sum()) - itself) < 1e-3 < abs(pair - itself), "changed: both as inputs"
PYTHON
