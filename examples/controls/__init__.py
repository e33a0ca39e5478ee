"""Two controls for Dynamic Past and Future (GDR, Zheng et al. 2019): parts of it without routing.

    fairseq-train DATA --user-dir examples/controls --arch extra_ffn_transformer_tiny …
    fairseq-train DATA --user-dir examples/controls --arch state_losses_transformer_tiny \
        --criterion label_smoothed_cross_entropy_with_routing_losses --label-smoothing 0.1 …

- `extra_ffn`: as many parameters as GDR with both losses has (0.3% more at tiny size), in feed-forward layers after
  the decoder.
- `state_losses`: both guided losses, predicted from the decoder's state alone. The translation does not read the
  predictions.

If a control gains as much as GDR, the gain is not one of separating the source into PAST and FUTURE.
"""

import math
from dataclasses import dataclass, field

from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from torch import nn

from capsule_routing.losses import bags_of_words, content_agreement_loss
from capsule_routing.modules.layers import feed_forward
from fairseq_capsule.criterions import RoutingLossesCriterion
from fairseq_capsule.criterions.routing_losses import RoutingLossesConfig
from fairseq_capsule.extending import add_mechanism
from fairseq_capsule.mechanisms import Loss, Mechanism


@dataclass
class ExtraFFNConfig(FairseqDataclass):
    extra_ffn: bool = field(default=False, metadata={"help": "feed-forward layers after the decoder"})


class ExtraFFN(Mechanism):
    """`o = z + FeedForward(z)`; GDR adds 16C² + 3.5C parameters to a decoder of size C, this 16C² + 9C."""

    name = "extra_ffn"
    summary = "adds feed-forward layers with as many parameters as GDR, without routing"
    options = ExtraFFNConfig
    preset = "extra_ffn"
    on = {"extra_ffn": True}
    starts_as_baseline = True

    def decoder(self, config, sizes):
        # The last layer starts at 0, as in GDR, so that a fresh model translates as its baseline.
        return feed_forward(sizes.target, 8 * sizes.target, sizes.target, zero=True)

    def run_decoder(self, part, target, source, kept):
        return target._replace(states=target.states + part(target.states))


@dataclass
class StateLossesConfig(FairseqDataclass):
    state_losses: bool = field(default=False, metadata={"help": "predict bags and contents from the decoder's state"})


class StateHeads(nn.Module):
    """The heads of both losses, as GDR has them, for states `[B, T, C]` in place of PAST and FUTURE."""

    def __init__(self, size):
        super().__init__()
        self.state_bow, self.state_bca = (
            nn.ModuleDict({content: nn.Linear(size, size, bias=False) for content in ("past", "future")})
            for _ in range(2)
        )

    def forward(self, states):
        bags = [head(states) for head in self.state_bow.values()]
        weights = [weight.view_as(weight) for weight in self.state_bca.parameters()]  # the loss applies them itself
        return states, bags, weights


class StateLosses(Mechanism):
    """The means of GDR's losses with `Ω^P_t = Ω^F_t = z_t`."""

    name = "state_losses"
    summary = "predicts what is translated and what is not from the decoder's state, in training only"
    options = StateLossesConfig
    preset = "state_losses"
    on = {"state_losses": True}
    starts_as_baseline = True
    loss_weights = {"state_bow": 1.0, "state_bca": 1.0}

    def decoder(self, config, sizes):
        return StateHeads(sizes.target)

    def run_decoder(self, part, target, source, kept):
        return target.with_output(self.name, part(target.states))

    def losses(self, model, net_output, sample, weights, options):
        state, bags, agreements = net_output[1][self.name]
        target = sample["target"]
        mask = target.eq(model.decoder.dictionary.pad())
        losses = {}
        if weights["state_bow"]:
            value = bags_of_words(*bags, target, mask)
            losses["state_bow"] = Loss(value, len(target), math.log(2))
        if weights["state_bca"]:
            value = content_agreement_loss(state, state, state, *agreements, mask)
            losses["state_bca"] = Loss(value, len(target))
        return losses


add_mechanism(ExtraFFN())
add_mechanism(StateLosses())


@register_criterion("label_smoothed_cross_entropy_with_state_losses", dataclass=RoutingLossesConfig)
class StateLossesCriterion(RoutingLossesCriterion):
    """The criterion under the name that the settings of trained controls have."""
