"""Aggregation of a source sentence into a fixed number of capsules: CapsNMT (Wang et al. 2019)."""

import functools
import math
from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import nn

from capsule_routing.modules import CapsuleAggregation, SimpleAggregation
from fairseq_capsule.mechanisms.attaching import leave_out_agreements
from fairseq_capsule.mechanisms.base import Mechanism, Sizes, Source
from fairseq_capsule.options import iterations, setting

AGGREGATIONS = ChoiceEnum(["capsule", "simple"])
VOTE_WEIGHTS = ChoiceEnum(["own", "shared"])
POSITIONS = ChoiceEnum(["routing", "result", "none"])
SCORINGS = ChoiceEnum(["separable", "votes"])


@dataclass
class AggregationConfig(FairseqDataclass):
    """Options for the aggregation of a sentence."""

    aggregation: AGGREGATIONS = setting(
        "simple", "capsule: routing to capsules; simple: the baseline of four plain vectors"
    )
    aggregation_capsules: int = setting(6, "number of capsules that represent a sentence", lowest=2)
    aggregation_iterations: int = iterations(3, "routing iterations")
    aggregation_weights: VOTE_WEIGHTS = setting(
        "own", "own: separate vote weights for each iteration; shared: the same for all"
    )
    aggregation_positions: POSITIONS = setting(
        "routing",
        "where sinusoidal positions are added. routing: to the words, and to the capsules where the "
        "agreements read them; result: also to the capsules that the decoder reads; none: nowhere",
    )
    aggregation_scoring: SCORINGS = setting(
        "separable", "agreements by a separate network (separable) or from the votes (votes)"
    )
    aggregation_scale: Optional[float] = setting(
        1.0,
        "factor for the capsules that the decoder reads, without their positions. 1: the squashed capsule itself, as "
        "the paper prints it; null in a configuration: the square root of their size",
        above=0,
    )
    leaky_softmax: bool = setting(False, "a word may go to no capsule (preprint of 2018)")


class Aggregation(Mechanism):
    """Routing of the source words to a few capsules, which are all that the decoder reads (§3); only in `capsnmt`."""

    name = "aggregation"
    summary = "makes a fixed number of capsules from a source of any length (CapsNMT, Wang et al. 2019)"
    options = AggregationConfig
    on = {"aggregation": "capsule"}
    iterations = "aggregation_iterations"

    def encoder(self, config: Any, sizes: Sizes) -> nn.Module:
        if config.aggregation == "simple":
            return SimpleAggregation()
        aggregation = CapsuleAggregation(
            sizes.source,
            config.aggregation_capsules,
            config.aggregation_iterations,
            share_weights=config.aggregation_weights == "shared",
            position_aware=config.aggregation_positions != "none",
            result_positions=config.aggregation_positions == "result",
            separable_scoring=config.aggregation_scoring == "separable",
            leaky=config.leaky_softmax,
            capsule_scale=config.aggregation_scale or math.sqrt(sizes.source),
        )
        aggregation.register_load_state_dict_pre_hook(functools.partial(leave_out_agreements, "score."))
        return aggregation

    def run_encoder(self, part: Any, source: Source) -> Source:
        """Replace the states of the words by the capsules, which have no padding."""
        capsules = part(source.states, source.padding_mask).capsules
        return source._replace(states=capsules, padding_mask=capsules.new_zeros(capsules.shape[:2], dtype=torch.bool))


AGGREGATION = Aggregation()
