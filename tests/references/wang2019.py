"""Wang et al. (2019), CapsNMT: one sentence, plain loops, written from the paper alone.

A vector is a tensor, everything above it a list.

Where the paper leaves something open:

- Equation 9 prints i and j the other way round than equation 7. A parent is the sum of what its children send.
- Equation 11 is a softmax over k, the parents. The preprint of 2018 says "across the child capsules" and takes the
  Leaky-Softmax of Zhao et al.; the paper does not.
- The transform of equations 7, 8 and 12 is shared by the iterations or one for each (section 3.2 finds the second
  better).
- Positional encodings are added to child and parent capsules. Where in the loop is not said: here to the children
  before everything, and to a parent after its squashing, so that the output of the encoder has them too
  (`parents="output"`), or only where a parent is compared (`parents="scoring"`), or before its squashing
  (`parents="input"`).
- Vaswani et al. alternate sines and cosines; other programs put all sines first. Positions count from 0 or from 1.
- Equation 14 writes h_i^t though children do not change, and g once: one network scores both sides.
- Equation 5 feeds y_t. A decoder that predicts y_t can only be fed the word before ("shifted right" in figure 1). "The
  traditional attention function" is additive (Bahdanau et al.) or a dot product; C is a matrix of M rows there, though
  the text calls it a concatenation.
- The size of a direction of the BiLSTM is not given, nor whether biases exist.
"""

import math

import torch

from tests.references.sabour2017 import softmax, squash, zeros


def leaky_softmax(scores):
    """The preprint's softmax: one more score of 0, whose share goes to no parent."""
    return softmax([*scores, torch.zeros_like(scores[0])])[:-1]


def lstm_cell(x, state, w, u, bias):
    """One step of an LSTM; `w`, `u` and `bias` hold the parts "i", "f", "g" and "o"; `state` is (hidden, cell)."""
    hidden, cell = state
    i, f, g, o = (w[gate] @ x + u[gate] @ hidden + bias[gate] for gate in "ifgo")
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def bidirectional(inputs, forward, backward, size):
    """Equation 1: both directions from zeros, side by side; `forward` and `backward` are steps (x, state) -> state."""
    start = torch.zeros(size, dtype=torch.float64)
    outputs = []
    for step, order in ((forward, range(len(inputs))), (backward, reversed(range(len(inputs))))):
        state, hidden = (start, start), {}
        for t in order:
            state = step(inputs[t], state)
            hidden[t] = state[0]
        outputs.append(hidden)
    return [torch.cat([outputs[0][t], outputs[1][t]]) for t in range(len(inputs))]


def simple_aggregation(h):
    """Equations 2 to 4: the maximum, the mean, the first and the last state."""
    maximum = torch.stack([max(state[d] for state in h) for d in range(len(h[0]))])
    return [maximum, sum(h) / len(h), h[0], h[-1]]


def sinusoid(position, size, layout="alternating"):
    """The positional encoding as Vaswani et al. (2017) print it, or (`layout="halves"`) as their program has it."""
    half = size // 2
    if layout == "alternating":
        angles = [position / 10000 ** (2 * i / size) for i in range(half)]
        values = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
    else:
        angles = [position / 10000 ** (i / (half - 1)) for i in range(half)]
        values = [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]
    return torch.tensor(values + [0.0] * (size - 2 * half), dtype=torch.float64)


def capsule_layer(h, transforms, score=None, positions=None, parents="output", coupling=softmax):
    """Algorithm 1, equations 7 to 14: the parents and the last couplings, `alpha[i][j]`.

    Args:
        h: the child capsules.
        transforms: `transforms[t][j]` is W_j of iteration t; the same list for each t shares the weights.
        score: g of equation 14; without it the agreement is that of equation 12.
        positions: the positional encoding of place 1, 2, ...; without it none is added.
        parents: where the positions of the parents are added.
        coupling: the softmax of equation 11, or `leaky_softmax`.
    """
    children, outputs = range(len(h)), range(len(transforms[0]))
    if positions is not None:
        h = [h[i] + positions(i + 1) for i in children]
    places = [torch.zeros_like(h[0]) if positions is None else positions(j + 1) for j in outputs]
    b = zeros(len(children), len(outputs))
    for of_iteration in transforms:
        alpha = [coupling(b[i]) for i in children]  # equation 11
        f = [[(h[i] @ of_iteration[j]).relu() for j in outputs] for i in children]  # equation 8
        capsules, compared = [], []
        for j in outputs:
            v = sum(alpha[i][j] * f[i][j] for i in children)  # equations 7 and 9
            c = squash(v + places[j]) if parents == "input" else squash(v)  # equation 10
            capsules.append(c + places[j] if parents == "output" else c)
            compared.append(c if parents == "input" else c + places[j])
        for i in children:
            for j in outputs:
                agreement = compared[j].dot(f[i][j]) if score is None else score(compared[j]).dot(score(h[i]))
                b[i][j] = b[i][j] + agreement  # equations 12 and 14
    return capsules, alpha


def additive_attention(capsules, state, w_capsule, w_state, v):
    """ATT of equation 5, as in Bahdanau et al. (2014): the weighted sum of the capsules."""
    weights = softmax([v.dot((w_capsule @ c + w_state @ state).tanh()) for c in capsules])
    return sum(weight * c for weight, c in zip(weights, capsules, strict=True))


def concatenation(capsules, w_c):
    """The context of the preprint: a projection of all capsules side by side."""
    return w_c @ torch.cat(list(capsules))


def decoder(embeddings, context, cells, norms, input_norm=None):
    """Equation 5 and figure 1: the states of the last layer.

    Args:
        embeddings: the word before each target word.
        context: what is added to the embedding, a function of the first layer's state before.
        cells: a step `(x, state) -> state` of each layer.
        norms: the layer norm after the residual connection of each layer.
        input_norm: the norm after the projection layer of figure 1; None is the reading without it.
    """
    start = torch.zeros_like(embeddings[0])
    states, outputs = [(start, start) for _ in cells], []
    for embedding in embeddings:
        x = embedding + context(states[0][0])
        if input_norm is not None:
            x = input_norm(x)
        for n, (cell, norm) in enumerate(zip(cells, norms, strict=True)):
            states[n] = cell(x, states[n])
            x = norm(x + states[n][0])
        outputs.append(x)
    return outputs


def layer_norm(x, weight, bias):
    """Ba et al. (2016)."""
    centred = x - x.mean()
    return centred / (centred.square().mean() + 1e-5).sqrt() * weight + bias
