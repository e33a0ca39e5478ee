"""Aggregation of the outputs of all layers by routing, in the encoder and in the decoder: an example.

    fairseq-train DATA --user-dir examples/layer_aggregation --arch layer_aggregation_transformer_tiny …

After Dou et al. 2019, Dynamic Layer Aggregation for Neural Machine Translation with Routing-by-Agreement
(arXiv:1902.05770). Ours: the capsules are mapped to the size of a state and added to the last layer's output. The map
starts at 0, so that a fresh model translates as its baseline. No score of the paper is claimed.
"""

from dataclasses import dataclass, field

import torch
from fairseq.dataclass import FairseqDataclass
from torch import nn

from capsule_routing import dynamic_routing
from capsule_routing.errors import UserError
from fairseq_capsule.extending import add_mechanism
from fairseq_capsule.mechanisms import Mechanism
from fairseq_capsule.options import iterations


class LayerAggregation(nn.Module):
    """`h^L_i + W [Ω_1; …; Ω_N]`: at each position the outputs of all layers vote for `N` capsules.

    Args:
        size: `C`, of a state.
        layers: `L`.
        capsules: `N`, a divisor of `C`.
        iterations: routing iterations.
    """

    def __init__(self, size, layers, capsules, iterations):
        super().__init__()
        self.capsules, self.iterations = capsules, iterations
        self.votes = nn.ModuleList(nn.Linear(size, size, bias=False) for _ in range(layers))
        self.output = nn.Linear(size, size)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, states, layers):
        """Add the capsules of layers `[B, L, C]` to the states `[B, L, C]`."""
        votes = torch.stack([vote(layer) for vote, layer in zip(self.votes, layers)], 2)
        routed = dynamic_routing(votes.unflatten(-1, (self.capsules, -1)), self.iterations)
        return states + self.output(routed.capsules.flatten(2))


@dataclass
class LayerAggregationConfig(FairseqDataclass):
    layer_aggregation: bool = field(default=False, metadata={"help": "aggregate the outputs of all layers by routing"})
    layer_aggregation_capsules: int = field(default=4, metadata={"help": "capsules of a position", "lowest": 1})
    layer_aggregation_iterations: int = iterations(3, "iterations of this routing")


class AllLayers(Mechanism):
    name = "layer_aggregation"
    summary = "aggregates the outputs of all layers of encoder and decoder by routing (Dou et al. 2019)"
    options = LayerAggregationConfig
    preset = "layer_aggregation"
    on = {"layer_aggregation": True}
    iterations = "layer_aggregation_iterations"
    reads_layers = ("encoder", "decoder")
    starts_as_baseline = True

    def check(self, config):
        for size in (config.encoder_embed_dim, config.decoder_embed_dim):
            if config.layer_aggregation and size % config.layer_aggregation_capsules:
                raise UserError(f"--layer-aggregation-capsules {config.layer_aggregation_capsules} must divide {size}")
        if config.layer_aggregation and config.decoder_output_dim not in (None, config.decoder_embed_dim):
            raise UserError("--decoder-output-dim must be --decoder-embed-dim, because layers have this size")

    def encoder(self, config, sizes):
        return LayerAggregation(sizes.source, sizes.source_layers, *_routing(config))

    def run_encoder(self, part, source):
        return source._replace(states=part(source.states, source.layers))

    def decoder(self, config, sizes):
        return LayerAggregation(sizes.target, sizes.target_layers, *_routing(config))

    def run_decoder(self, part, target, source, kept):
        return target._replace(states=part(target.states, target.layers))


def _routing(config):
    return config.layer_aggregation_capsules, config.layer_aggregation_iterations


# Before the other mechanisms, so that they read the aggregated states. Those that read layers still get the layers.
LAYER_AGGREGATION = add_mechanism(AllLayers(), before="global_representation")
