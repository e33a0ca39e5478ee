"""PAST and FUTURE: separate translated from untranslated source words at each target step (Zheng et al. 2019)."""

import functools
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel

from capsule_routing import from_options
from capsule_routing.errors import UserError
from capsule_routing.losses import Loss, guided_losses
from capsule_routing.modules import HolisticContext, Projected
from fairseq_capsule.mechanisms.attaching import leave_out_agreements
from fairseq_capsule.mechanisms.base import Mechanism, Sizes, Source, Target
from fairseq_capsule.options import iterations, setting

SEPARATIONS = ChoiceEnum(["gdr", "clf", "attn", "none"])
HEADS = ChoiceEnum(["none", "bow", "bca", "both"])
REDUCTIONS = ChoiceEnum(["mean", "sum", "printed"])


@dataclass
class PastFutureConfig(FairseqDataclass):
    """Options for PAST and FUTURE."""

    past_future: SEPARATIONS = setting(
        "none",
        "how PAST and FUTURE are separated: gdr (guided dynamic routing), clf (a classifier), attn (two "
        "attentions) or none (Zheng et al., Fig. 6)",
    )
    past_future_capsules: int = setting(2, "capsules for PAST; FUTURE has the same number", lowest=1)
    redundant_capsules: int = setting(
        2, "capsules for words that are neither; 0: none (Zheng et al., Table 1)", lowest=0
    )
    past_future_capsule_dim: Optional[int] = setting(
        None, "size of these capsules (default: half of the decoder's output size)", lowest=1
    )
    past_future_iterations: int = iterations(3, "iterations of guided dynamic routing")
    past_future_ffn_dim: Optional[int] = setting(
        None, "inner size of the feed-forward layers for PAST and FUTURE (default: twice the output size)", lowest=1
    )
    guided_heads: HEADS = setting("none", "guided losses for which the model has parameters (Zheng et al., §3.3)")
    guided_reduction: REDUCTIONS = setting(
        "mean",
        "form of the guided losses. mean: over the words of a bag, and over the dimensions of the distance "
        "between mapped capsules and states (as the authors' code); printed: as the paper prints them, sums, with "
        "the current word in both bags; sum: the same, with the current word in FUTURE only",
    )


@dataclass
class GuidedLossesConfig(FairseqDataclass):
    """Options of the criterion for the losses of PAST and FUTURE."""

    bow_weight: float = setting(1.0, "weight of the bag-of-words loss; 0: off", lowest=0)
    bca_weight: float = setting(1.0, "weight of the content agreement loss; 0: off", lowest=0)
    bow_steps: float = setting(
        1.0, "share of target steps, chosen at random, for the estimate of the bag-of-words loss", above=0, highest=1
    )


class PastAndFuture(Mechanism):
    """Capsules of translated and of untranslated source words that change the decoder's output (§3)."""

    name = "past_future"
    summary = (
        "separates the source words at every target step into translated and untranslated ones (Zheng et al. 2019)"
    )
    options = PastFutureConfig
    on = {"past_future": "gdr", "guided_heads": "both"}
    iterations = "past_future_iterations"
    starts_as_baseline = True
    loss_weights = {"bow": GuidedLossesConfig.bow_weight, "bca": GuidedLossesConfig.bca_weight}

    def check(self, config: Any) -> None:
        if config.past_future == "none" and config.guided_heads != "none":
            raise UserError(f"--guided-heads {config.guided_heads} needs --past-future gdr, clf or attn")
        if getattr(config, "adaptive_softmax_cutoff", None) and config.guided_heads != "none":
            raise UserError("--adaptive-softmax-cutoff does not work with guided losses; use --guided-heads none")

    def iterates(self, config: Any) -> bool:
        return str(config.past_future) == "gdr"

    def decoder(self, config: Any, sizes: Sizes) -> HolisticContext:
        part = from_options.past_future(config, sizes.source, sizes.target)
        if config.past_future == "gdr":
            part.routing.register_load_state_dict_pre_hook(functools.partial(leave_out_agreements, "agreement_"))
        return part

    def keep(self, part: Any, source: Source) -> Projected:
        projected: Projected = part.routing.project(source.states, source.padding_mask)
        if projected.exponentials is None or torch.is_grad_enabled():
            return projected
        return projected._replace(keys=None)  # only their exponentials are read

    def run_decoder(self, part: Any, target: Target, source: Source, kept: Any) -> Target:
        """Add PAST and FUTURE to the decoder's states, and a `PastFutureOutput` to the outputs."""
        states, routed = part.context(target.states, kept, source.padding_mask)
        if target.incremental_state is None:
            routed = part.with_heads(routed)
        return target._replace(states=states).with_output(self.name, routed)

    def losses(
        self,
        model: BaseFairseqModel,
        net_output: Any,
        sample: Dict[str, Any],
        weights: Mapping[str, float],
        options: Any,
    ) -> Dict[str, Loss]:
        """Compute the bag-of-words loss in nats and the content agreement loss, a squared distance (§3.3).

        The model determines their form (`--guided-reduction`); `guided_losses` states what the log shows. At validation
        the bag-of-words loss uses all steps. The first columns of the target, `--ignore-prefix-size`, are left out.
        """
        target, part = sample["target"], model.decoder.past_future
        left_out = target.eq(model.decoder.dictionary.pad())
        left_out[:, : options.ignore_prefix_size] = True  # as in fairseq's likelihood
        routed, heads = net_output[1][self.name], {}
        if weights["bow"]:
            heads["bow"] = routed.heads.get("bow") or part.predicted_bags(routed)
        if weights["bca"]:
            heads["bca"] = routed.heads.get("bca") or tuple(part.bca.parameters())
        return guided_losses(
            routed._replace(heads=heads),
            target,
            left_out,
            reduction=part.reduction,
            steps=options.bow_steps if model.training else 1.0,
        )


PAST_FUTURE = PastAndFuture()
