"""LSTM layers: bidirectional layers over padded sentences, and a layer with attention."""

import torch

from capsule_routing.modules.lstm import AttentiveLSTMLayer, LSTMLayer, read_both_ways
from tests.references import assert_same, stacked, wang2019


def test_padding_is_never_read():
    torch.manual_seed(1)
    layers = torch.nn.ModuleList(LSTMLayer(6, bidirectional=True) for _ in range(2)).eval()
    inputs = torch.randn(3, 5, 6)
    together = read_both_ways(layers, inputs, torch.tensor([3, 5, 1]))
    for row, length in enumerate((3, 5, 1)):
        alone = inputs[row : row + 1, :length]
        for layer in layers:
            alone = layer(alone)[0]
        torch.testing.assert_close(together[row, :length], alone[0])
        assert not together[row, length:].any()


def test_a_returned_state_continues_the_sentence():
    layer = LSTMLayer(6).eval()
    inputs = torch.randn(2, 4, 6)
    whole, _ = layer(inputs)
    first, state = layer(inputs[:, :3])
    last, _ = layer(inputs[:, 3:], state)
    torch.testing.assert_close(torch.cat([first, last], 1), whole)


def cell_of(weight_ih, weight_hh, bias_ih, bias_hh):
    """A step of the loops with the parameters of PyTorch."""
    parts = [dict(zip("ifgo", part.chunk(4))) for part in (weight_ih, weight_hh, bias_ih + bias_hh)]
    return lambda x, state: wang2019.lstm_cell(x, state, *parts)


def norm_of(norm):
    return lambda x: wang2019.layer_norm(x, norm.weight, norm.bias)


def test_both_directions_equal_the_loops():
    torch.manual_seed(1)
    layers = torch.nn.ModuleList(LSTMLayer(6, bidirectional=True) for _ in range(2)).double().eval()
    inputs = torch.randn(3, 5, 6, dtype=torch.float64, requires_grad=True)
    want = []
    for states, length in zip(inputs, (3, 5, 1)):
        states = list(states[:length])
        for layer in layers:
            steps = [cell_of(*parameters) for parameters in layer.lstm.all_weights]
            outputs = wang2019.bidirectional(states, *steps, size=3)
            states = [norm_of(layer.norm)(x + output) for x, output in zip(states, outputs)]
        want.append(torch.cat([torch.stack(states), inputs.new_zeros(5 - length, 6)]))
    got = read_both_ways(layers, inputs, torch.tensor([3, 5, 1]))
    assert_same([got], [torch.stack(want)], [inputs, *layers.parameters()])


def test_attention_equals_the_loops():
    torch.manual_seed(1)
    layer = AttentiveLSTMLayer(5).double().eval()
    inputs, capsules = (torch.randn(2, size, 5, dtype=torch.float64, requires_grad=True) for size in (4, 3))
    cell = cell_of(layer.cell.weight_ih, layer.cell.weight_hh, layer.cell.bias_ih, layer.cell.bias_hh)
    weights = layer.key.weight, layer.query.weight, layer.vector
    want = [
        wang2019.decoder(
            embeddings,
            lambda state: wang2019.additive_attention(of_sentence, state, *weights),
            [cell],
            [norm_of(layer.norm)],
        )
        for embeddings, of_sentence in zip(inputs, capsules)
    ]
    outputs, _ = layer(inputs, capsules, layer.key(capsules))
    assert_same([outputs], [stacked(want)], [inputs, capsules, *layer.parameters()])
    _, state = layer(inputs[:, :3], capsules, layer.key(capsules))
    last, _ = layer(inputs[:, 3:], capsules, layer.key(capsules), state)
    torch.testing.assert_close(last, outputs[:, 3:], rtol=1e-10, atol=1e-10)
