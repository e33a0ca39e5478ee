"""Literal decoder of CapsNMT: Eq. 5 and Fig. 1 of Wang et al. (2019) as loops over sentences, steps and layers."""

import torch


def layer_norm(vector, weight, bias):
    centred = vector - vector.mean()
    return centred / (centred.square().mean() + 1e-5).sqrt() * weight + bias


def lstm_step(vector, hidden, cell, w_ih, w_hh, b_ih, b_hh):
    i, f, g, o = (w_ih @ vector + b_ih + w_hh @ hidden + b_hh).chunk(4)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def attention(capsules, keys, hidden, parameters):
    """`ATT(C, s_{t-1})`, additive attention over capsules `[M, d]` whose keys are those of capsules `keys`."""
    query = parameters["layers.0.query.weight"] @ hidden
    scores = [
        parameters["layers.0.vector"] @ torch.tanh(query + parameters["layers.0.key.weight"] @ key) for key in keys
    ]
    shares = torch.stack(scores).softmax(0)
    return sum(share * capsule for share, capsule in zip(shares, capsules))


def capsnmt_features(parameters, tokens, capsules, *, layers, scale, context, norms):
    """Return the states `[B, T, d]` of the last layer.

    Args:
        parameters: the decoder's, by name.
        tokens: what the decoder reads, `[B, T]`.
        capsules: `[B, M, d]`, already multiplied by `scale`.
        layers: the number of LSTM layers.
        context: "attention" or "concat".
        norms: "both" or "after".
    """
    features = []
    for b in range(len(tokens)):
        hidden = [torch.zeros_like(capsules[0, 0]) for _ in range(layers)]
        cells = list(hidden)
        for token in tokens[b]:
            if context == "attention":
                added = attention(capsules[b], capsules[b] / scale, hidden[0], parameters)
            else:
                added = parameters["context.weight"] @ torch.cat(list(capsules[b]))
            state = parameters["embed_tokens.weight"][token] + added  # u_t
            if norms == "both":
                state = layer_norm(
                    state, parameters["layers.0.input_norm.weight"], parameters["layers.0.input_norm.bias"]
                )
            for number in range(layers):
                name, end = ("cell", "") if number == 0 and context == "attention" else ("lstm", "_l0")
                weights = [
                    parameters[f"layers.{number}.{name}.{kind}{end}"]
                    for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                ]
                hidden[number], cells[number] = lstm_step(state, hidden[number], cells[number], *weights)
                norm = [parameters[f"layers.{number}.norm.{kind}"] for kind in ("weight", "bias")]
                state = layer_norm(state + hidden[number], *norm)
            features.append(state)
    return torch.stack(features).view(*tokens.shape, -1)
