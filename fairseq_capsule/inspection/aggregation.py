"""The capsules that a source sentence is aggregated into: CapsNMT (Wang et al. 2019)."""

from typing import Dict

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

from capsule_routing.modules import CapsuleAggregation
from fairseq_capsule.inspection.statistics import Statistics, capsule_norms, coupling_entropy
from fairseq_capsule.inspection.views import Inspection, NamedArray, Sentence, named, numbers, views_in_file


class AggregationInspection(Inspection):
    """The routing of the source words to the capsules that the decoder reads.

    Array: `capsule_coupling` `[iteration, source, capsule]`, the share of each word in each capsule.
    """

    views = views_in_file("aggregation")

    def arrays(self, model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
        aggregation = getattr(model.encoder, "aggregation", None)
        if not isinstance(aggregation, CapsuleAggregation):
            return {}
        counts = range(1, aggregation.iterations + 1)
        coupling = torch.cat([model.encoder.aggregate(sentence.source, count).coupling for count in counts])
        axes = {"iteration": numbers(len(coupling)), "source": sentence.source_words}
        return {"capsule_coupling": named(coupling, **axes, capsule=numbers(coupling.size(-1)))}

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """Return the entropy of each word's couplings, and the norms of the squashed capsules."""
        aggregation = model.encoder.aggregation
        routed = model.encoder.aggregate(source)
        norm, dead = capsule_norms(aggregation.squashed(routed.capsules))
        padding = source.eq(model.encoder.dictionary.pad()).unsqueeze(-1)
        return {"entropy": coupling_entropy(routed.coupling, -1, padding), "norm": norm, "dead": dead}
