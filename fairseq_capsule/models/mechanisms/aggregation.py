"""A source sentence as a fixed number of capsules: CapsNMT's aggregation (Wang et al. 2019)."""

import math
from dataclasses import dataclass, field
from typing import Any, Dict, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.agreements import allow_other_iterations
from fairseq_capsule.models.mechanism import Mechanism, register_mechanism
from fairseq_capsule.models.statistics import Statistics, capsule_norms, coupling_entropy
from fairseq_capsule.models.views import NamedArray, Panel, Sentence, View, named, numbers
from fairseq_capsule.modules import CapsuleAggregation, SimpleAggregation

AGGREGATIONS = ChoiceEnum(["capsule", "simple"])
VOTE_WEIGHTS = ChoiceEnum(["own", "shared"])
POSITIONS = ChoiceEnum(["routing", "result", "none"])
SCORINGS = ChoiceEnum(["separable", "votes"])


@dataclass
class AggregationConfig(FairseqDataclass):
    """The options of what makes capsules of a sentence."""

    aggregation: AGGREGATIONS = field(
        default="capsule", metadata={"help": "routing to capsules, or the rival of four plain vectors"}
    )
    aggregation_capsules: int = field(default=6, metadata={"help": "capsules that stand for a sentence"})
    aggregation_iterations: int = field(default=3, metadata={"help": "routing iterations"})
    aggregation_weights: VOTE_WEIGHTS = field(
        default="own", metadata={"help": "votes of each iteration by weights of its own, or by shared ones"}
    )
    aggregation_positions: POSITIONS = field(
        default="routing",
        metadata={
            "help": "where sinusoids of their positions are added: to children, and to parents where agreements read "
            "them; to what the decoder reads too; nowhere"
        },
    )
    aggregation_scoring: SCORINGS = field(
        default="separable", metadata={"help": "agreements by a network of their own, or of the votes themselves"}
    )
    aggregation_scale: Optional[float] = field(
        default=None,
        metadata={
            "help": "what a capsule is multiplied by when the decoder reads it, its position aside (default: the "
            "square root of its size, the norm of the encoder's states; 1: as it was squashed)"
        },
    )
    leaky_softmax: bool = field(
        default=False, metadata={"help": "words may stay with no capsule (the preprint of 2018)"}
    )


class Aggregation(Mechanism):
    """The words of a source are routed to a few capsules, which are all that the decoder reads (§3).

    `capsnmt` builds it; in a Transformer it has no place. Its array: `capsule_coupling` `[iteration, source, capsule]`,
    the share of each word that went to each capsule.
    """

    name = "aggregation"
    summary = "makes a fixed number of capsules of a source of any length (CapsNMT, Wang et al. 2019)"
    options = AggregationConfig
    off = {"aggregation": "simple"}
    iterations = "aggregation_iterations"
    views = (
        View(
            "capsules",
            "Capsules",
            "How the source words are routed to the capsules, which are all that the decoder reads.",
            (
                Panel(
                    "capsule_coupling",
                    "words in capsules",
                    "source",
                    "capsule",
                    "coupling",
                    caption="How much of each source word, a row, goes to each capsule, a column, after the chosen "
                    "iteration. In a trained model the first iteration is nearly uniform, and in the last one words "
                    "of a kind share a capsule. One colour in the last iteration (1/{capsule} each) means that "
                    "nothing is learnt.",
                    distribution="capsule",
                ),
            ),
        ),
    )

    def check(self, config: Any) -> None:
        if config.aggregation_capsules < 2:
            raise UserError(f"--aggregation-capsules must be at least 2, rivals, not {config.aggregation_capsules}")
        if config.aggregation_scale is not None and config.aggregation_scale <= 0:
            raise UserError(f"--aggregation-scale must be above 0, not {config.aggregation_scale}")

    def arrays(self, model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
        aggregation = getattr(model.encoder, "aggregation", None)
        if not isinstance(aggregation, CapsuleAggregation):
            return {}
        counts = range(1, aggregation.iterations + 1)
        coupling = torch.cat([model.encoder.aggregate(sentence.source, count).coupling for count in counts])
        axes = {"iteration": numbers(len(coupling)), "source": sentence.source_words}
        return {"capsule_coupling": named(coupling, **axes, capsule=numbers(coupling.size(-1)))}

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """The entropy of each word's couplings, and the norms of the capsules as they were squashed."""
        aggregation = model.encoder.aggregation
        routed = model.encoder.aggregate(source)
        norm, dead = capsule_norms(aggregation.squashed(routed.capsules))
        padding = source.eq(model.encoder.dictionary.pad()).unsqueeze(-1)
        return {"entropy": coupling_entropy(routed.coupling, -1, padding), "norm": norm, "dead": dead}


def build_aggregation(config: Any) -> nn.Module:
    """The aggregation that a config asks for."""
    if config.aggregation == "simple":
        return SimpleAggregation()
    aggregation = CapsuleAggregation(
        config.encoder_embed_dim,
        config.aggregation_capsules,
        config.aggregation_iterations,
        share_weights=config.aggregation_weights == "shared",
        position_aware=config.aggregation_positions != "none",
        result_positions=config.aggregation_positions == "result",
        separable_scoring=config.aggregation_scoring == "separable",
        leaky=config.leaky_softmax,
        capsule_scale=config.aggregation_scale or math.sqrt(config.encoder_embed_dim),
    )
    _refuse_other_votes(aggregation, own=config.aggregation_weights == "own")
    allow_other_iterations(aggregation, "--aggregation-iterations", "--aggregation-scoring votes")
    return aggregation


def _refuse_other_votes(aggregation: CapsuleAggregation, own: bool) -> None:
    """Refuse a checkpoint whose weights of votes are of another kind, or of other iterations."""

    def before_loading(module, state_dict, prefix, *_):
        saved = state_dict.get(f"{prefix}vote_weight")
        wanted = len(module.vote_weight)
        if saved is None or len(saved) == wanted:
            return
        trained = len(saved)
        if trained == 1 or not own:
            there = "of its own for each iteration" if trained > 1 else "shared by all iterations, or for one alone"
            raise UserError(
                f"--aggregation-weights: the checkpoint has weights {there}, the model is to have "
                f"{'ones of its own for each' if own else 'shared ones'}"
            )
        raise UserError(
            f"--aggregation-iterations: the checkpoint has votes of its own for {trained} iterations, not "
            f"{wanted}; only with --aggregation-weights shared can another number be taken"
        )

    aggregation.register_load_state_dict_pre_hook(before_loading)


AGGREGATION = register_mechanism(Aggregation())
