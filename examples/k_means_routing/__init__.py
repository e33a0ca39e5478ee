"""PAST and FUTURE by k-means routing: an example of a mechanism in a separate package.

    fairseq-train DATA --user-dir examples/k_means_routing --arch k_means_transformer_tiny \
        --criterion label_smoothed_cross_entropy_with_routing_losses --label-smoothing 0.1 …

Paper: Hao Ren and Hong Lu, Compositional Coding Capsule Network with K-Means Routing for Text Classification, 2018
(arXiv:1810.09177). Here the first centres depend on the decoder's state, so every target step has its own clusters.
"""

from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from fairseq.dataclass import FairseqDataclass
from torch import nn

from capsule_routing import RoutingResult, in_float32
from capsule_routing.modules import HolisticContext, PastFutureRouting, Projected
from fairseq_capsule.extending import add_mechanism
from fairseq_capsule.inspection import Inspection, coupling_entropy, mean_where, named, views_in_file
from fairseq_capsule.mechanisms import Loss, Mechanism
from fairseq_capsule.options import iterations

CLUSTERS, SHARPNESS = ("PAST", "FUTURE"), 4.0


@in_float32
def k_means(values, centres, iterations, padding_mask=None):
    """Spherical k-means: `a = softmax_j(4 cos(v_i, c_j))`, `c_j = Σ_i a_ij v_i / Σ_i a_ij`.

    Args:
        values: `v` `[B, I, D]`.
        centres: the initial `c` `[B, T, J, D]`.
        iterations: how many times to assign values and recompute centres.
        padding_mask: `[B, I]`. True marks values that are ignored.

    Returns:
        `RoutingResult(c [B, T, J, D], a [B, T, I, J])`.
    """
    directions = F.normalize(values, dim=-1).unsqueeze(1)
    for _ in range(iterations):
        shares = (SHARPNESS * directions @ F.normalize(centres, dim=-1).transpose(2, 3)).softmax(-1)
        if padding_mask is not None:
            shares = shares.masked_fill(padding_mask[:, None, :, None], 0)
        centres = shares.transpose(2, 3) @ values.unsqueeze(1) / shares.sum(2).unsqueeze(-1).clamp(min=1e-6)
    return RoutingResult(centres, shares)


class KMeansRouting(PastFutureRouting):
    """Assign the source words to two clusters. The first centres are a linear function of the decoder's state."""

    def __init__(self, source_dim, state_dim, centre_dim, iterations):
        super().__init__()
        self.iterations = iterations
        self.value = nn.Linear(source_dim, centre_dim, bias=False)
        self.centres = nn.Linear(state_dim, len(CLUSTERS) * centre_dim)

    def project(self, source, padding_mask=None):
        return Projected(self.value(source))

    def route(self, projected, state, padding_mask=None):
        centres = self.centres(state).unflatten(-1, (len(CLUSTERS), -1))
        return k_means(projected.values, centres, self.iterations, padding_mask)


@dataclass
class KMeansConfig(FairseqDataclass):
    k_means: bool = field(default=False, metadata={"help": "separate PAST and FUTURE by k-means routing"})
    k_means_iterations: int = iterations(3, "number of iterations of k-means routing")


class KMeans(Mechanism):
    name = "k_means"
    summary = "separates translated from untranslated source words by k-means (Ren and Lu 2018)"
    options = KMeansConfig
    preset = "k_means"
    on = {"k_means": True}
    iterations = "k_means_iterations"
    starts_as_baseline = True
    loss_weights = {"progress": 1.0}

    def decoder(self, config, sizes):
        routing = KMeansRouting(sizes.source, sizes.target, sizes.target // 2, config.k_means_iterations)
        own = {"content_dim": sizes.target // 2, "state_dim": sizes.target, "ffn_dim": 2 * sizes.target}
        return HolisticContext(routing, capsules_per_content=1, **own)

    def keep(self, part, source):
        return part.routing.project(source.states, source.padding_mask)

    def run_decoder(self, part, target, source, kept):
        states, routed = part.context(target.states, kept, source.padding_mask)
        return target._replace(states=states).with_output(self.name, routed)

    def losses(self, model, net_output, sample, weights, options):
        """`Σ_t (p_t − (t−1)/T)²`; `p_t` is the share of PAST in the source at step `t`."""
        shares = net_output[1][self.name].assignment.float().sum(2)  # sums over source words, [B, T, 2]
        past = shares[..., 0] / shares.sum(-1).clamp(min=1e-6)
        valid = sample["target"].ne(model.decoder.dictionary.pad())
        done = (valid.cumsum(1) - 1) / valid.sum(1, keepdim=True)
        return {"progress": Loss(((past - done).square() * valid).sum(), sample["ntokens"])}


class KMeansInspection(Inspection):
    views = views_in_file("k_means", Path(__file__).with_name("views.yaml"))

    def arrays(self, model, sentence):
        if not hasattr(model.decoder, "k_means"):
            return {}
        lengths = torch.tensor([sentence.source.size(1)])
        routed = model(sentence.source, lengths, sentence.previous)[1][KMeans.name]
        axes = {"target": sentence.target_words, "source": sentence.source_words, "cluster": CLUSTERS}
        return {"k_means": named(routed.assignment[0], **axes)}

    def statistics(self, model, source, previous):
        padding = model.decoder.dictionary.pad()
        shares = model(source, source.ne(padding).sum(1), previous)[1][KMeans.name].assignment  # [B, T, I, 2]
        words = shares.sum(-1) > 0  # padding has a share of 0
        valid = words & previous.ne(padding).unsqueeze(-1)
        entropy = coupling_entropy(shares, -1, ~valid.unsqueeze(-1))
        return {"entropy": entropy, "past": mean_where(shares[..., 0], valid)}


add_mechanism(KMeans(), KMeansInspection())
