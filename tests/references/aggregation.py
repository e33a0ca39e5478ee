"""Literal aggregation of CapsNMT: Eq. 7-14 of Wang et al. (2019) as loops over children and parents."""

import math

import torch

from tests.references.routing import _shares, _squash, _valid


def position(number, size):
    """Return the sinusoid of a position, sines before cosines, as in fairseq."""
    half = size // 2
    frequencies = [math.exp(-math.log(10000) * k / max(1, half - 1)) for k in range(half)]
    values = [math.sin(number * f) for f in frequencies] + [math.cos(number * f) for f in frequencies]
    return torch.tensor(values + [0.0] * (size - 2 * half), dtype=torch.float64)


def capsule_aggregation(hidden, weights, score, *, padding_mask=None, position_aware=True, leaky=False):
    """Aggregate states `[B, I, d]`. `weights` has a list of `M` matrices for each iteration; `score` is `g` or None."""
    size, parents = hidden.size(-1), len(weights[0])
    results, couplings = [], torch.zeros(*hidden.shape[:2], parents, dtype=hidden.dtype)
    for b in range(len(hidden)):
        words = _valid(hidden.size(1), padding_mask, b)
        children = [hidden[b, i] + position_aware * position(place, size) for place, i in enumerate(words, 1)]
        places = [position_aware * position(place, size) for place in range(1, parents + 1)]
        logits = [[hidden.new_zeros(()) for _ in range(parents)] for _ in words]
        for matrices in weights:
            votes = [[(child @ matrix).relu() for matrix in matrices] for child in children]  # Eq. 7
            coupling = _shares(logits, "leaky" if leaky else "output", len(words), parents)  # Eq. 11
            capsules = [  # Eq. 8-10
                _squash(sum(coupling[m][n] * votes[m][n] for m in range(len(words)))) + places[n]
                for n in range(parents)
            ]
            for m, child in enumerate(children):
                for n, capsule in enumerate(capsules):
                    agreement = score(capsule) @ score(child) if score else capsule @ votes[m][n]  # Eq. 14, Eq. 12
                    logits[m][n] = logits[m][n] + agreement
        results.append(torch.stack(capsules))
        for m, i in enumerate(words):
            couplings[b, i] = torch.stack(coupling[m])
    return torch.stack(results), couplings
