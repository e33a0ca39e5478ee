"""PAST and FUTURE: separate translated from untranslated source words at each target step (Zheng et al. 2019)."""

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Tuple

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import FairseqDecoder
from torch import Tensor

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.mechanism import EncodedSource, IncrementalState, Mechanism, register_mechanism
from fairseq_capsule.models.past_future import build_past_future
from fairseq_capsule.modules import PastFutureOutput

PAST_FUTURE = ChoiceEnum(["gdr", "clf", "attn", "none"])
GUIDED_HEADS = ChoiceEnum(["none", "bow", "bca", "both"])
GUIDED_REDUCTIONS = ChoiceEnum(["mean", "sum"])


@dataclass
class PastFutureConfig(FairseqDataclass):
    """Options for PAST and FUTURE."""

    past_future: PAST_FUTURE = field(
        default="none",
        metadata={
            "help": "how PAST and FUTURE are separated: gdr (guided dynamic routing), clf (a classifier), attn (two "
            "attentions) or none (Zheng et al., Fig. 6)"
        },
    )
    past_future_capsules: int = field(default=2, metadata={"help": "capsules for PAST; FUTURE has the same number"})
    redundant_capsules: int = field(
        default=2,
        metadata={"help": "capsules for words that are neither; 0: none (Zheng et al., Table 1)", "lowest": 0},
    )
    past_future_capsule_dim: Optional[int] = field(
        default=None, metadata={"help": "size of these capsules (default: half of the decoder's output size)"}
    )
    past_future_iterations: int = field(default=3, metadata={"help": "iterations of guided dynamic routing"})
    past_future_ffn_dim: Optional[int] = field(
        default=None,
        metadata={"help": "inner size of the feed-forward layers for PAST and FUTURE (default: twice the output size)"},
    )
    guided_heads: GUIDED_HEADS = field(
        default="none", metadata={"help": "guided losses for which the model has parameters (Zheng et al., §3.3)"}
    )
    guided_reduction: GUIDED_REDUCTIONS = field(
        default="mean",
        metadata={
            "help": "form of the guided losses. mean: over the words of a bag, and over the dimensions of the distance "
            "between mapped capsules and states (as the authors' code); sum: as the paper prints them"
        },
    )


class PastAndFuture(Mechanism):
    """Capsules of translated and of untranslated source words that change the decoder's output (§3)."""

    name = "past_future"
    summary = (
        "separates the source words at every target step into translated and untranslated ones (Zheng et al. 2019)"
    )
    options = PastFutureConfig
    off = {"past_future": "none", "guided_heads": "none"}
    preset = "gdr"
    on = {"past_future": "gdr", "guided_heads": "both"}
    on_lstm = True
    iterations = "past_future_iterations"
    criterion = "label_smoothed_cross_entropy_with_guided_losses"

    def routes(self, config: Any) -> bool:
        return self.known_to(config) and str(config.past_future) == "gdr"

    def check(self, config: Any) -> None:
        if config.past_future == "none" and config.guided_heads != "none":
            raise UserError(f"--guided-heads {config.guided_heads} needs --past-future gdr, clf or attn")
        if getattr(config, "adaptive_softmax_cutoff", None) and config.guided_heads != "none":
            raise UserError("--adaptive-softmax-cutoff does not work with guided losses; use --guided-heads none")

    def losses(self, config: Any) -> Mapping[str, float]:
        weights = {name: float(config.guided_heads in (name, "both")) for name in ("bow", "bca")}
        return {f"{name}_weight": weight for name, weight in weights.items()} if any(weights.values()) else {}

    def build_decoder(self, decoder: FairseqDecoder, config: Any, source_dim: int, state_dim: int) -> None:
        decoder.past_future = build_past_future(config, source_dim, state_dim)

    def decode(
        self,
        decoder: FairseqDecoder,
        features: Tensor,
        source: EncodedSource,
        incremental_state: Optional[IncrementalState],
    ) -> Tuple[Tensor, PastFutureOutput]:
        return decoder.past_future(features, source.states, source.padding_mask, incremental_state)


PAST_FUTURE_MECHANISM = register_mechanism(PastAndFuture())
