"""What all four papers take from Sabour, Frosst and Hinton (2017): the squashing and the couplings."""

import torch


def squash(s):
    """Equation 1: scale a vector to the length |s|^2 / (1 + |s|^2)."""
    length = s.dot(s).sqrt()
    return length**2 / (1 + length**2) * s / length


def softmax(scores):
    """The softmax of a list of scalars, as a list."""
    total = sum(score.exp() for score in scores)
    return [score.exp() / total for score in scores]


def zeros(rows, columns):
    """The routing logits at the start."""
    return [[torch.zeros((), dtype=torch.float64) for _ in range(columns)] for _ in range(rows)]
