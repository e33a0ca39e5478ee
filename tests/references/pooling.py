"""Literal pooling of GRET: Algorithm 1 and Eq. 2-9 of Weng et al. (2020) as loops over capsules and words."""

import torch

from tests.references.routing import _squash, _valid


def capsule_pooling(hidden, vote_weight, query, output, iterations, *, padding_mask=None):
    """Pool words `[B, I, d]` to `[B, d]`. `query` and `output` are the two feed-forward networks."""
    vectors = []
    for b in range(len(hidden)):
        words = _valid(hidden.size(1), padding_mask, b)
        votes = [[weight.T @ hidden[b, i] for i in words] for weight in vote_weight]  # Eq. 3
        logits = [[hidden.new_zeros(()) for _ in words] for _ in vote_weight]
        for _ in range(iterations):
            capsules = []
            for k in range(len(vote_weight)):
                coupling = torch.stack(logits[k]).softmax(0)  # Eq. 5: over the words
                capsules.append(_squash(sum(share * vote for share, vote in zip(coupling, votes[k]))))  # Eq. 2
            logits = [  # Eq. 6
                [logit + vote.dot(capsules[k]) for logit, vote in zip(logits[k], votes[k])]
                for k in range(len(vote_weight))
            ]
        guess = query(sum(capsules) / len(capsules))  # Eq. 9
        weights = torch.stack([guess.dot(capsule) for capsule in capsules]).softmax(0)  # Eq. 8
        vectors.append(output(sum(weight * capsule for weight, capsule in zip(weights, capsules))))  # Eq. 7
    return torch.stack(vectors)
