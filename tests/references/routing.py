"""Literal routings: the equations of the papers as loops over sentences and capsules, with the package's signatures."""

import torch


def squash(s, dim=-1):
    result = torch.zeros_like(s)
    moved, out = s.movedim(dim, -1), result.movedim(dim, -1)
    for index in torch.cartesian_prod(*(torch.arange(size) for size in moved.shape[:-1])).reshape(-1, moved.dim() - 1):
        vector = moved[tuple(index)]
        if vector.abs().max() > 0:
            norm = vector.dot(vector).sqrt()
            out[tuple(index)] = norm**2 / (1 + norm**2) * vector / norm
    return result


def _squash(vector):
    square = vector.dot(vector)
    return vector * square.sqrt() / (1 + square) if square > 0 else vector * 0


def _shares(logits, competition, n_inputs, n_outputs):
    """Return the coupling of valid inputs and outputs. `logits` is a list of rows of scalars."""
    coupling = [[None] * n_outputs for _ in range(n_inputs)]
    for m in range(n_inputs):
        for n in range(n_outputs):
            if competition == "input":
                competing = [logits[other][n].exp() for other in range(n_inputs)]
            else:
                competing = [logits[m][other].exp() for other in range(n_outputs)]
            leak = 1 if competition == "leaky" else 0
            coupling[m][n] = logits[m][n].exp() / (sum(competing) + leak)
    return coupling


def route(votes, iterations, competition="output"):
    """Algorithm 1. `votes` has M rows of N vectors for each iteration. Returns capsules, coupling and logits."""
    n_inputs, n_outputs = len(votes[0]), len(votes[0][0])
    zero = votes[0][0][0].sum() * 0
    logits = [[zero for _ in range(n_outputs)] for _ in range(n_inputs)]
    for iteration in range(iterations):
        vote = votes[iteration]
        coupling = _shares(logits, competition, n_inputs, n_outputs)
        capsules = [_squash(sum(coupling[m][n] * vote[m][n] for m in range(n_inputs))) for n in range(n_outputs)]
        logits = [[logits[m][n] + capsules[n].dot(vote[m][n]) for n in range(n_outputs)] for m in range(n_inputs)]
    return capsules, coupling, logits


def dynamic_routing(votes, iterations, *, padding_mask=None, competition="output"):
    """Route votes `[B, M, N, D]`, or a list of them. Returns capsules and coupling, which is 0 at padded inputs."""
    votes = [votes] * iterations if torch.is_tensor(votes) else votes
    batch, n_inputs, n_outputs, size = votes[0].shape
    capsules = votes[0].new_zeros(batch, n_outputs, size)
    coupling = votes[0].new_zeros(batch, n_inputs, n_outputs)
    for b in range(batch):
        inputs = _valid(n_inputs, padding_mask, b)
        if not inputs:
            continue
        c, r, _ = route([[[*v[b, m]] for m in inputs] for v in votes], iterations, competition)
        capsules[b] = torch.stack(c)
        for i, m in enumerate(inputs):
            coupling[b, m] = torch.stack(r[i])
    return capsules, coupling


def vertical_routing(logits, iterations, *, padding_mask=None, key_padding_mask=None):
    batch, heads, length, keys = logits.shape
    omega = logits.new_zeros(batch, length, keys)
    weights = logits.new_zeros(batch, heads, length)
    for b in range(batch):
        queries = _valid(length, padding_mask, b)
        kept = _valid(keys, key_padding_mask, b)
        if not queries or not kept:
            continue
        votes = [[logits[b, h, l][kept] for l in queries] for h in range(heads)]
        capsules, _, b_weights = route([votes] * iterations, iterations)
        for j, l in enumerate(queries):
            omega[b, l, kept] = capsules[j]
            for h in range(heads):
                weights[b, h, l] = b_weights[h][j]
    return omega, weights


def horizontal_routing(logits, iterations, *, padding_mask=None, key_padding_mask=None, causal=False, factors=None):
    batch, heads, length, keys = logits.shape
    omega = torch.zeros_like(logits)
    for b in range(batch):
        queries = _valid(length, padding_mask, b)
        kept = _valid(keys, key_padding_mask, b)
        for l in queries:
            tokens = [t for t in queries if t <= l]
            votes = []
            for t in tokens:
                seen = torch.tensor([float(k in kept and not (causal and k > t)) for k in range(keys)])
                votes.append([logits[b, h, t] * seen.to(logits) for h in range(heads)])
            capsules, _, _ = route([votes] * iterations, iterations)
            for h in range(heads):
                omega[b, h, l] = capsules[h]
    return omega


def _valid(length, mask, b):
    return [i for i in range(length) if mask is None or not mask[b, i]]


def guided_routing(source, state, vote_weight, agreement_weight, agreement_vector, iterations, *, padding_mask=None):
    """Algorithm 1 of Zheng et al. (2019), step by step. Returns capsules `[B, T, J, D]` and coupling `[B, T, I, J]`."""
    batch, words, _ = source.shape
    steps, (outputs, _, size) = state.size(1), vote_weight.shape
    capsules = source.new_zeros(batch, steps, outputs, size)
    coupling = source.new_zeros(batch, steps, words, outputs)
    for b in range(batch):
        kept = _valid(words, padding_mask, b)
        if not kept:
            continue
        votes = [[vote_weight[j].T @ source[b, i] for j in range(outputs)] for i in kept]  # Eq. 5
        for t in range(steps):
            zero = source.new_zeros(())
            logits = [[zero for _ in range(outputs)] for _ in kept]
            for iteration in range(iterations):
                shares = _shares(logits, "output", len(kept), outputs)  # Eq. 6
                omega = [
                    _squash(sum(shares[m][j] * votes[m][j] for m in range(len(kept)))) for j in range(outputs)
                ]  # Eq. 4
                if iteration == iterations - 1:
                    break
                for m in range(len(kept)):  # Eq. 7
                    for j in range(outputs):
                        inputs = torch.cat([state[b, t], votes[m][j], omega[j]])
                        logits[m][j] = logits[m][j] + agreement_vector.dot(torch.tanh(agreement_weight @ inputs))
            for j in range(outputs):
                capsules[b, t, j] = omega[j]
                for m, i in enumerate(kept):
                    coupling[b, t, i, j] = shares[m][j]
    return capsules, coupling
