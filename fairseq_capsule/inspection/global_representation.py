"""The vector of the whole source sentence and how the decoder uses it: GRET (Weng et al. 2020)."""

from typing import Dict, List, Optional, Sequence, Tuple

import torch
from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from capsule_routing.modules import CapsulePooling, ContextGate
from fairseq_capsule.inspection.statistics import Statistics, added_up, capsule_norms, coupling_entropy, mean_where
from fairseq_capsule.inspection.views import Inspection, NamedArray, Sentence, by_layer, named, numbers, views_in_file
from fairseq_capsule.models.outputs import encode, layer_outputs


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
        encoded = encode(model, sentence.source, return_all_hiddens=True)
        arrays = _poolings(part.poolings, layer_outputs(encoded), sentence.source_words)
        gate = _gate(model, sentence.previous, encoded)
        if gate is not None:
            steps = sentence.target_words
            arrays["global_gate"] = named(gate[0], target=steps, dimension=numbers(gate.size(2)))
            arrays["global_gate_mean"] = named(gate[0].mean(1), target=steps)
        return arrays

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """Return the mean of the gate and, over all layers, the entropy of the couplings and the norms of the capsules.

        The entropy of a capsule is over the words.
        """
        mask = source.eq(model.encoder.padding_idx)
        encoded = encode(model, source, return_all_hiddens=True)
        poolings = model.encoder.global_representation.poolings
        layers = []
        for pooling, state in zip(poolings, layer_outputs(encoded)[-len(poolings) :]):
            if isinstance(pooling, CapsulePooling):
                routed = pooling.capsules(state, mask)
                norm, dead = capsule_norms(routed.capsules)
                entropy = coupling_entropy(routed.coupling, -2, mask.unsqueeze(-1))
                layers.append({"entropy": entropy, "norm": norm, "dead": dead})
        statistics = added_up(layers)
        gate = _gate(model, previous, encoded)
        if gate is not None:
            statistics["gate"] = mean_where(gate, previous.ne(model.decoder.padding_idx).unsqueeze(-1))
        return statistics


def _gate(model: BaseFairseqModel, previous: Tensor, encoded: Dict[str, List[Tensor]]) -> Optional[Tensor]:
    """Return the gate `[B, T, C]`, which reads the output of fairseq's decoder; None for a model without a gate."""
    if not isinstance(model.decoder.context_gate, ContextGate):
        return None
    state, _ = TransformerDecoderBase.extract_features(model.decoder, previous, encoded)
    return model.decoder.context_gate.gate(state, encoded["global_representation"][0])


def _poolings(poolings: Sequence[nn.Module], states: List[Tensor], words: Tuple[str, ...]) -> Dict[str, NamedArray]:
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
