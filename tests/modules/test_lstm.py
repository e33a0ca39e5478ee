"""LSTM layers: bidirectional layers over padded sentences, and a layer with attention."""

import torch

from capsule_routing.modules.lstm import AttentiveLSTMLayer, LSTMLayer, read_both_ways


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


def test_attention_equals_its_equations():
    torch.manual_seed(1)
    layer = AttentiveLSTMLayer(5).double().eval()
    inputs, capsules = torch.randn(2, 4, 5).double(), torch.randn(2, 3, 5).double()
    outputs, (hidden, cell) = layer(inputs, capsules, layer.key(capsules))
    w_ih, w_hh, b = layer.cell.weight_ih, layer.cell.weight_hh, layer.cell.bias_ih + layer.cell.bias_hh
    for b_index in range(2):
        s, c = torch.zeros(5).double(), torch.zeros(5).double()
        for t in range(4):
            scores = [
                layer.vector @ torch.tanh(layer.query.weight @ s + layer.key.weight @ k) for k in capsules[b_index]
            ]
            shares = torch.stack(scores).softmax(0)
            u = inputs[b_index, t] + sum(share * k for share, k in zip(shares, capsules[b_index]))
            i, f, g, o = (w_ih @ u + w_hh @ s + b).chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            s = o.sigmoid() * c.tanh()
            torch.testing.assert_close(outputs[b_index, t], layer.norm(u + s), rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(hidden[0, b_index], s)
        torch.testing.assert_close(cell[0, b_index], c)
    _, state = layer(inputs[:, :3], capsules, layer.key(capsules))
    last, _ = layer(inputs[:, 3:], capsules, layer.key(capsules), state)
    torch.testing.assert_close(last, outputs[:, 3:], rtol=1e-10, atol=1e-10)
