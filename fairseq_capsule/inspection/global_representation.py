"""The vector of the whole source sentence and how the decoder uses it: GRET (Weng et al. 2020)."""

from typing import Any, Dict, Optional, Sequence, Tuple

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from capsule_routing.modules import CapsulePooling, ContextGate
from fairseq_capsule.inspection.statistics import Statistics, added_up, capsule_norms, coupling_entropy, mean_where
from fairseq_capsule.inspection.views import Inspection, NamedArray, Sentence, by_layer, named, numbers, views_in_file
from fairseq_capsule.models.outputs import encode


class GlobalRepresentationInspection(Inspection):
    """The capsules of each encoder layer, and the gate of each target word.

    Arrays:
        `global_coupling` `[layer, iteration, source, capsule]`: the share of each word in a capsule.
        `global_weights` `[layer, capsule]`: the weight of each capsule in the layer's vector.
        `global_gate` `[target, dimension]` and its mean `global_gate_mean` `[target]`.
    """

    views = views_in_file("global_representation")

    def arrays(self, model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
        part = getattr(model.encoder, "global_representation", None)
        if part is None:
            return {}
        layers, _, gate = _inputs(model, sentence.source, sentence.previous)
        arrays = _poolings(part.poolings, layers, sentence.source_words)
        if gate is not None:
            steps = sentence.target_words
            arrays["global_gate"] = named(gate[0], target=steps, dimension=numbers(gate.size(2)))
            arrays["global_gate_mean"] = named(gate[0].mean(1), target=steps)
        return arrays

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """Return the mean of the gate and, over all layers, the entropy of the couplings and the norms of the capsules.

        The entropy of a capsule is over the words.
        """
        states, mask, gate = _inputs(model, source, previous)
        poolings = model.encoder.global_representation.poolings
        layers = []
        for pooling, state in zip(poolings, states[-len(poolings) :]):
            if isinstance(pooling, CapsulePooling):
                routed = pooling.capsules(state, mask)
                norm, dead = capsule_norms(routed.capsules)
                entropy = coupling_entropy(routed.coupling, -2, mask.unsqueeze(-1))
                layers.append({"entropy": entropy, "norm": norm, "dead": dead})
        statistics = added_up(layers)
        if gate is not None:
            statistics["gate"] = mean_where(gate, previous.ne(model.decoder.padding_idx).unsqueeze(-1))
        return statistics


def _inputs(
    model: BaseFairseqModel, source: Tensor, previous: Tensor
) -> Tuple[Sequence[Tensor], Tensor, Optional[Tensor]]:
    """Return what the poolings read, the layers `[B, I, C]` and the mask `[B, I]`, and the gate `[B, T, C]`, or None.

    Other mechanisms may have changed what both read, so it is recorded while the model runs.
    """
    pooling, gate = model.encoder.global_representation, model.decoder.context_gate
    read: Dict[nn.Module, Any] = {}
    hooks = [
        part.register_forward_pre_hook(lambda part, inputs: read.update({part: inputs})) for part in (pooling, gate)
    ]
    try:
        model.decoder.extract_features(previous, encode(model, source))
    finally:
        for hook in hooks:
            hook.remove()
    return (*read[pooling], gate.gate(*read[gate]) if isinstance(gate, ContextGate) else None)


def _poolings(poolings: Sequence[nn.Module], states: Sequence[Tensor], words: Tuple[str, ...]) -> Dict[str, NamedArray]:
    of_capsules = [pooling for pooling in poolings if isinstance(pooling, CapsulePooling)]  # all of them, or none
    if not of_capsules:
        return {}
    couplings, weights = [], []
    first = len(states) - len(of_capsules)  # without aggregation only the last layer has a pooling
    for number, (pooling, state) in enumerate(zip(of_capsules, states[first:]), start=first + 1):
        routed = [pooling.capsules(state, iterations=count) for count in range(1, pooling.iterations + 1)]
        couplings.append((number, torch.stack([result.coupling for result in routed], dim=1)))
        if pooling.query is not None:
            weights.append((number, pooling.weights(routed[-1].capsules)))
    _, iterations, _, capsules = (numbers(size) for size in couplings[0][1].shape)
    arrays = {"global_coupling": by_layer(couplings, iteration=iterations, source=words, capsule=capsules)}
    return {**arrays, "global_weights": by_layer(weights, capsule=capsules)} if weights else arrays
