"""Weng et al. (2020), GRET: one sentence, plain loops, written from the paper alone.

A vector is a tensor, everything above it a list.

Where the paper leaves something open:

- Equation 3 transforms a state by W_k, Algorithm 1 does not, and equation 6 takes the agreement with h_i where
  equation 2 sums the transformed state: `agreement="states"` (equation 6) or `"votes"` (Sabour et al.). Table 3 prints
  no new parameters for the capsules, so no W_k; but without a W_k all capsules are equal, since their logits start
  equal.
- Equation 5 is a softmax of b_k, the row of capsule k: over the words (`over="words"`). Sabour et al., to whom a
  footnote refers for details, take it over the capsules (`over="capsules"`).
- Equation 9 prints s where it defines s-hat. Equations 7 and 9 write FFN: one network or two.
- s^0 of equation 10 is not given; here it is 0. The paper cites Cho et al. (2014) for the GRU, which resets the state
  before its matrix (`reset="before"`); cuDNN and PyTorch reset after it (`reset="after"`).
- Equation 12 is a sigmoid of two vectors: of a linear map of both, one value for each entry (`*` in equation 13) or
  one for the state. Equation 13 writes s_j and g where 12 has s and g_j.
- The FFN of equation 14 is the output layer, or a feed-forward network before it.
"""

import torch

from tests.references.sabour2017 import softmax, squash, zeros


def capsules(h, transforms, iterations, over="words", agreement="states"):
    """Algorithm 1, equations 2 to 6: the capsules of one layer and the last couplings, `c[k][i]`."""
    words, outputs = range(len(h)), range(len(transforms))
    votes = [[transforms[k] @ h[i] for i in words] for k in outputs]  # equation 3
    compared = votes if agreement == "votes" else [h for _ in outputs]
    b = zeros(len(transforms), len(h))
    for _ in range(iterations):
        if over == "words":
            c = [softmax(b[k]) for k in outputs]  # equation 5
        else:
            columns = [softmax([b[k][i] for k in outputs]) for i in words]
            c = [[columns[i][k] for i in words] for k in outputs]
        u = [squash(sum(c[k][i] * votes[k][i] for i in words)) for k in outputs]  # equation 2
        for k in outputs:
            for i in words:
                b[k][i] = b[k][i] + compared[k][i].dot(u[k])  # equation 6
    return u, c


def attentive_pooling(u, query_network, output_network):
    """Equations 7 to 9: the two networks are the FFN of equation 9 and that of equation 7."""
    query = query_network(sum(u) / len(u))  # equation 9
    attention = softmax([query.dot(capsule) for capsule in u])  # equation 8
    return output_network(sum(a * capsule for a, capsule in zip(attention, u, strict=True)))  # equation 7


def gru(x, state, w, u, input_bias, state_bias, reset="before"):
    """Cho et al. (2014): `w`, `u` and the biases hold the parts "r" (reset), "z" (update) and "h" (candidate)."""
    r = (w["r"] @ x + input_bias["r"] + u["r"] @ state + state_bias["r"]).sigmoid()
    z = (w["z"] @ x + input_bias["z"] + u["z"] @ state + state_bias["z"]).sigmoid()
    if reset == "before":
        remembered = u["h"] @ (r * state) + state_bias["h"]
    else:
        remembered = r * (u["h"] @ state + state_bias["h"])
    candidate = (w["h"] @ x + input_bias["h"] + remembered).tanh()
    return z * state + (1 - z) * candidate


def layer_wise_recurrence(pooled, cell):
    """Equation 10 over the layers, from a state of zeros; `cell(x, state)` is the GRU."""
    state = torch.zeros_like(pooled[0])
    for x in pooled:
        state = cell(x, state)
    return state


def context_gate(r, s, weight, bias):
    """Equations 12 and 13: the new decoder state and the gate."""
    gate = (weight @ torch.cat([r, s]) + bias).sigmoid()  # equation 12
    return r + s * gate, gate  # equation 13


def bag_of_words_precision(scores, targets, top):
    """Table 5: the share of the distinct target words among the `top` words of the predictor."""
    chosen = sorted(range(len(scores)), key=lambda word: -scores[word])[:top]
    return len(set(targets).intersection(chosen)) / len(set(targets))
