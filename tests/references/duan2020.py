"""Duan, Cao and Zhao (2020), Capsule-Transformer: one sentence, plain loops, written from the paper alone.

A vector is a tensor, everything above it a list. `e[l][h]` is the attention vector of word `l` on head `h` (equation
5).

Where the paper leaves something open:

- Equation 11 takes the vote weights "calculated in the last iteration": after that iteration's update (as Algorithm 1
  returns them, `last="updated"`), or those that its softmax used (`last="used"`).
- The bias of equation 11 is a vector of H or one number. 1.6K new parameters in six layers of 16 heads (6 * (16 * 16 +
  16) = 1632) mean a vector.
- Section 3.4.3 puts a forward mask on the cube before the routing. A masked score cannot be minus infinity there,
  since every capsule with it would be infinite: it is 0 in the votes, and minus infinity in the softmax of equation 4.
- The number of iterations T, and whether gradients pass through all of them, are not stated. Here they do.
- A sentence is never padded.
"""

import torch

from tests.references.sabour2017 import softmax, squash, zeros


def attention_vectors(queries, keys, forward_mask=False):
    """Equation 5: scaled dot products; `queries[h][l]` and `keys[h][l]` are vectors. A masked score is 0."""
    heads, length = len(queries), len(queries[0])
    e = [[None] * heads for _ in range(length)]
    for h in range(heads):
        for q in range(length):
            scores = []
            for k in range(length):
                score = queries[h][q].dot(keys[h][k]) / len(queries[h][q]) ** 0.5
                scores.append(score * 0 if forward_mask and k > q else score)
            e[q][h] = torch.stack(scores)
    return e


def routing(votes, iterations):
    """Algorithm 1, equations 6 and 7: the output capsules, the weights R and the vote weights B.

    B are those that the last iteration's softmax used ("used"), and those with its update ("updated").
    """
    logits = zeros(len(votes), len(votes[0]))
    for _ in range(iterations):
        used = [list(row) for row in logits]
        weights = [softmax(row) for row in logits]
        capsules = []
        for n in range(len(votes[0])):
            s = sum(weights[m][n] * votes[m][n] for m in range(len(votes)))
            capsules.append(squash(s))
        for m in range(len(votes)):
            for n in range(len(votes[0])):
                logits[m][n] = logits[m][n] + capsules[n].dot(votes[m][n])
    return capsules, weights, {"used": used, "updated": logits}


def vertical_capsules(e, iterations):
    """Equations 8 and 9: the capsule of each word, and the vote weights `[h][l]`, as `routing` returns them."""
    votes = [[e[l][h] for l in range(len(e))] for h in range(len(e[0]))]  # equation 8
    capsules, _, logits = routing(votes, iterations)  # equation 9
    return capsules, logits


def vertical_routing(e, iterations, weight, bias, last="updated"):
    """Algorithm 2, equations 10 and 11: what is added to head `h` of word `l`, as `omega[l][h]`."""
    capsules, logits = vertical_capsules(e, iterations)
    sums = torch.stack([sum(of_words) for of_words in logits[last]])
    acceptance = softmax(list(weight @ sums + bias))  # equation 11
    return [[share * capsule for share in acceptance] for capsule in capsules]  # equation 10


def horizontal_routing(e, iterations):
    """Algorithm 3, equations 12 to 14: word `l` gets the capsules routed from the words up to it, as `omega[l][h]`."""
    omega = []
    for l in range(len(e)):
        votes = [[e[t][h] for h in range(len(e[0]))] for t in range(l + 1)]  # equation 12
        omega.append(routing(votes, iterations)[0])  # equation 14
    return omega


def routed_vectors(e, iterations, weight=None, bias=None, horizontal=True, last="updated"):
    """Section 3.2: both output capsules added to the attention vectors. Vertical routing runs with a `weight`."""
    parts = [e]
    if weight is not None:
        parts.append(vertical_routing(e, iterations, weight, bias, last))
    if horizontal:
        parts.append(horizontal_routing(e, iterations))
    return [[sum(part[l][h] for part in parts) for h in range(len(e[0]))] for l in range(len(e))]


def attention(vectors, values, forward_mask=False):
    """Equations 2 to 4: the outputs of the heads side by side, one vector for each word. `values[h][l]` is a vector."""
    outputs = []
    for l in range(len(vectors)):
        seen = l + 1 if forward_mask else len(vectors)
        heads = []
        for h in range(len(values)):
            weights = softmax(list(vectors[l][h][:seen]))  # equation 4
            heads.append(sum(weights[k] * values[h][k] for k in range(seen)))  # equation 2
        outputs.append(torch.cat(heads))  # equation 3
    return outputs
