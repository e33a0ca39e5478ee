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


def lstm_cell(x, state, w, u, bias):
    """One step of an LSTM; `w`, `u` and `bias` hold the parts "i", "f", "g" and "o"; `state` is (hidden, cell)."""
    hidden, cell = state
    part = {gate: w[gate] @ x + u[gate] @ hidden + bias[gate] for gate in "ifgo"}
    cell = part["f"].sigmoid() * cell + part["i"].sigmoid() * part["g"].tanh()
    return part["o"].sigmoid() * cell.tanh(), cell


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
    """The positional encoding of Vaswani et al. (2017), or all sines before all cosines (`layout="halves"`)."""
    angles = [position / 10000 ** (2 * i / size) for i in range(size // 2)]
    if layout == "alternating":
        values = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
    else:
        values = [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]
    return torch.tensor(values, dtype=torch.float64)


def capsule_layer(h, transforms, iterations, score=None, child_positions=None, parent_positions=None, parents="output"):
    """Algorithm 1, equations 7 to 14: the parents and the last couplings, `alpha[i][j]`.

    Args:
        h: the child capsules.
        transforms: `transforms[t][j]` is W_j of iteration t; the same list for each t shares the weights.
        iterations: the number T of iterations.
        score: g of equation 14; the agreement is that of equation 12 without it.
        child_positions: a vector for each child, or None.
        parent_positions: a vector for each parent, or None.
        parents: where the vectors of the parents are added.
    """
    if child_positions is not None:
        h = [state + position for state, position in zip(h, child_positions, strict=True)]
    children, outputs = range(len(h)), range(len(transforms[0]))
    b = zeros(len(h), len(transforms[0]))
    for t in range(iterations):
        alpha = [softmax(b[i]) for i in children]  # equation 11
        f = [[(h[i] @ transforms[t][j]).relu() for j in outputs] for i in children]  # equation 8
        capsules = []
        for j in outputs:
            v = sum(alpha[i][j] * f[i][j] for i in children)  # equations 7 and 9
            if parent_positions is not None and parents == "input":
                v = v + parent_positions[j]
            c = squash(v)  # equation 10
            if parent_positions is not None and parents == "output":
                c = c + parent_positions[j]
            capsules.append(c)
        for i in children:
            for j in outputs:
                c = capsules[j]
                if parent_positions is not None and parents == "scoring":
                    c = c + parent_positions[j]
                agreement = c.dot(f[i][j]) if score is None else score(c).dot(score(h[i]))
                b[i][j] = b[i][j] + agreement  # equations 12 and 14
    return capsules, alpha


def additive_attention(capsules, state, w_capsule, w_state, v):
    """Bahdanau et al. (2014): the weighted sum of the capsules and its weights."""
    weights = softmax([v.dot((w_capsule @ c + w_state @ state).tanh()) for c in capsules])
    return sum(weight * c for weight, c in zip(weights, capsules, strict=True)), weights


def decoder(capsules, embeddings, attention, cell, size):
    """Equation 5: the states of a decoder that is fed `embeddings`; `attention(capsules, state)` returns a context."""
    start = torch.zeros(size, dtype=torch.float64)
    state, outputs = (start, start), []
    for embedding in embeddings:
        state = cell(attention(capsules, state[0]) + embedding, state)
        outputs.append(state[0])
    return outputs
