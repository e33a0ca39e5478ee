"""Two controls for Dynamic Past and Future (GDR, Zheng et al. 2019): parts of it without routing.

    fairseq-train DATA --user-dir examples/controls --arch extra_ffn_transformer_tiny …
    fairseq-train DATA --user-dir examples/controls --arch state_losses_transformer_tiny \
        --criterion label_smoothed_cross_entropy_with_state_losses --label-smoothing 0.1 …

- `extra_ffn`: as many parameters as GDR with both losses has (0.3% more at tiny size), in feed-forward layers after
  the decoder.
- `state_losses`: both guided losses, predicted from the decoder's state alone. The translation does not read the
  predictions.

If a control gains as much as GDR, the gain is not one of separating the source into PAST and FUTURE.
"""

import math
from dataclasses import dataclass, field

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterionConfig
from fairseq.dataclass import FairseqDataclass
from torch import nn

from fairseq_capsule.criterions import LoggedLoss, RoutingLossesCriterion
from fairseq_capsule.extending import add_mechanism
from fairseq_capsule.losses import mean_bag_of_words_loss, mean_content_agreement_loss
from fairseq_capsule.models import Mechanism
from fairseq_capsule.modules.layers import feed_forward


@dataclass
class ExtraFFNConfig(FairseqDataclass):
    extra_ffn: bool = field(default=False, metadata={"help": "feed-forward layers after the decoder"})


class ExtraFFN(Mechanism):
    """`o = z + FeedForward(z)`; GDR adds 16C² + 3.5C parameters to a decoder of size C, this 16C² + 9C."""

    name = "extra_ffn"
    summary = "adds feed-forward layers with as many parameters as GDR, without routing"
    options = ExtraFFNConfig
    off = {"extra_ffn": False}
    preset = "extra_ffn"
    on = {"extra_ffn": True}

    def build_decoder(self, decoder, config, source_dim, state_dim):
        # The last layer starts at 0, as in GDR, so that a fresh model translates as its baseline.
        decoder.extra_ffn = feed_forward(state_dim, 8 * state_dim, state_dim, zero=True)

    def decode(self, decoder, features, source, incremental_state):
        return features + decoder.extra_ffn(features), None


@dataclass
class StateLossesConfig(FairseqDataclass):
    state_losses: bool = field(default=False, metadata={"help": "predict bags and contents from the decoder's state"})


class StateHeads(nn.Module):
    """The heads of both losses, as GDR has them, for states `[B, T, C]` in place of PAST and FUTURE."""

    def __init__(self, size):
        super().__init__()
        self.bow, self.bca = (
            nn.ModuleDict({content: nn.Linear(size, size, bias=False) for content in ("past", "future")})
            for _ in range(2)
        )


class StateLosses(Mechanism):
    name = "state_losses"
    summary = "predicts what is translated and what is not from the decoder's state, in training only"
    options = StateLossesConfig
    off = {"state_losses": False}
    preset = "state_losses"
    on = {"state_losses": True}
    criterion = "label_smoothed_cross_entropy_with_state_losses"

    def losses(self, config):
        return {"bow_weight": 1.0, "bca_weight": 1.0}

    def build_decoder(self, decoder, config, source_dim, state_dim):
        decoder.state_losses = StateHeads(state_dim)

    def decode(self, decoder, features, source, incremental_state):
        return features, features


add_mechanism(ExtraFFN())
add_mechanism(StateLosses())


@dataclass
class StateLossesCriterionConfig(LabelSmoothedCrossEntropyCriterionConfig):
    bow_weight: float = field(default=1.0, metadata={"help": "weight of the bag-of-words loss; 0 turns it off"})
    bca_weight: float = field(default=1.0, metadata={"help": "weight of the content agreement loss; 0 turns it off"})


@register_criterion(StateLosses.criterion, dataclass=StateLossesCriterionConfig)
class StateLossesCriterion(RoutingLossesCriterion):
    """Label-smoothed NLL `+ λ1 L_BoW + λ2 L_BCA`, the means of GDR's losses with `Ω^P_t = Ω^F_t = z_t`."""

    logged = {"bow": LoggedLoss("nsentences", math.log(2)), "bca": LoggedLoss("nsentences", 1.0)}

    def routing_losses(self, model, net_output, sample):
        state, heads = net_output[1][StateLosses.name], model.decoder.state_losses
        target = sample["target"]
        padding_mask = target.eq(self.padding_idx)
        losses = {}
        if self.weights["bow"]:
            bags = heads.bow["past"](state), heads.bow["future"](state)
            losses["bow"] = mean_bag_of_words_loss(*bags, model.decoder.output_embeddings, target, padding_mask)
        if self.weights["bca"]:
            weights = heads.bca["past"].weight, heads.bca["future"].weight
            losses["bca"] = mean_content_agreement_loss(state, state, state, *weights, padding_mask)
        return losses
