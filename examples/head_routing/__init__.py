"""Routing of the heads of every attention to its output, in place of the output projection `W_O`.

An example: copy it for a mechanism of your own.

    fairseq-train DATA --user-dir examples/head_routing --arch head_routing_transformer_tiny …

After Li et al. 2019, Information Aggregation for Multi-Head Attention with Routing-by-Agreement (arXiv:1904.03100),
with dynamic routing (Sabour et al. 2017) or EM routing (Hinton et al. 2018). Ours: the factor of squashed capsules,
input activations of 1, and the inverse temperature `t/r` of iteration `t` of `r`. No score of the paper is claimed.
"""

import math
from dataclasses import dataclass, field

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import nn

from capsule_routing import RoutingResult, dynamic_routing, in_float32
from capsule_routing.errors import UserError
from capsule_routing.modules.layers import xavier
from fairseq_capsule.extending import add_mechanism
from fairseq_capsule.mechanisms import Mechanism
from fairseq_capsule.options import iterations, setting

SMALLEST_VARIANCE = 0.01


@in_float32
def em_routing(votes, cost, threshold, iterations):
    """EM routing of inputs with an activation of 1 (Hinton et al. 2018, Procedure 1). An output is a Gaussian.

    Args:
        votes: `V` `[..., M, N, D]`.
        cost: `β_u` `[N]`, the cost of an output in each dimension.
        threshold: `β_a` `[N]`, what an output may cost.
        iterations: how often means and shares are computed, at least 1.

    Returns:
        `RoutingResult(a μ [..., N, D], R [..., M, N])`: the means times their activations, and the shares.
    """
    shares = votes.new_full(votes.shape[:-1], 1 / votes.size(-2))
    for iteration in range(1, iterations + 1):
        amount = shares.sum(-2).clamp(min=1e-6)  # the M-step: Gaussians of the shares
        means = (shares.unsqueeze(-1) * votes).sum(-3) / amount.unsqueeze(-1)
        distances = (votes - means.unsqueeze(-3)).square()
        variances = (shares.unsqueeze(-1) * distances).sum(-3) / amount.unsqueeze(-1) + SMALLEST_VARIANCE
        costs = (cost.unsqueeze(-1) + 0.5 * variances.log()).sum(-1) * amount
        activations = torch.sigmoid(iteration / iterations * (threshold - costs))
        if iteration < iterations:  # the E-step: shares by the densities of the votes
            exponents = -0.5 * (distances / variances.unsqueeze(-3) + (2 * math.pi * variances).log().unsqueeze(-3))
            shares = torch.softmax(exponents.sum(-1) + activations.clamp(min=1e-6).log().unsqueeze(-2), -1)
    return RoutingResult(activations.unsqueeze(-1) * means, shares)


class HeadRouting(nn.Module):
    """Routes the heads of an attention to `N` capsules, whose concatenation is the output.

    Args:
        heads, head_dim: of the attention.
        capsules: `N`, a divisor of `heads · head_dim`.
        iterations: routing iterations.
        algorithm: "dynamic" or "em".
    """

    def __init__(self, heads, head_dim, capsules, iterations, algorithm):
        super().__init__()
        self.capsules, self.iterations = capsules, iterations
        self.vote_weight = xavier(heads, head_dim, heads * head_dim)
        if algorithm == "em":
            self.cost, self.threshold = (nn.Parameter(torch.zeros(capsules)) for _ in range(2))
        else:
            self.cost = self.threshold = None

    def forward(self, heads):
        """Combine heads `[B, L, H, d]` to `[B, L, C]`."""
        votes = torch.einsum("blhd,hdc->blhc", heads, self.vote_weight).unflatten(-1, (self.capsules, -1))
        if self.cost is not None:
            return em_routing(votes, self.cost, self.threshold, self.iterations).capsules.flatten(2)
        # The norm of a squashed capsule is below 1, that of D numbers of variance 1 is √D.
        return dynamic_routing(votes, self.iterations).capsules.flatten(2) * math.sqrt(votes.size(-1))


@dataclass
class HeadRoutingConfig(FairseqDataclass):
    head_routing: ChoiceEnum(["dynamic", "em", "none"]) = field(
        default="none", metadata={"help": "how the heads of each attention are routed to its output"}
    )
    head_routing_capsules: int = setting(8, "capsules that an attention's output consists of", lowest=1)
    head_routing_iterations: int = iterations(3, "iterations of this routing")


class HeadsToOutput(Mechanism):
    name = "head_routing"
    summary = "routes the heads of every attention to its output (Li et al. 2019)"
    options = HeadRoutingConfig
    preset = "head_routing"
    on = {"head_routing": "dynamic"}
    iterations = "head_routing_iterations"

    def check(self, config):
        for size in (config.encoder_embed_dim, config.decoder_embed_dim):
            if config.head_routing != "none" and size % config.head_routing_capsules:
                raise UserError(f"--head-routing-capsules {config.head_routing_capsules} must divide {size}")

    def attention(self, config, place):
        heads = getattr(config, f"{place.side}_attention_heads")
        size = getattr(config, f"{place.side}_embed_dim")
        routing = config.head_routing_capsules, config.head_routing_iterations, config.head_routing
        return {"heads": HeadRouting(heads, size // heads, *routing)}


HEAD_ROUTING = add_mechanism(HeadsToOutput())
