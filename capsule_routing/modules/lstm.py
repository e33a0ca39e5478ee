"""LSTM layers with a residual connection and a layer norm around each (Wang et al. 2019, Fig. 1)."""

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from capsule_routing.modules.layers import normal_, parameter

LSTMState = Tuple[Tensor, Tensor]
Sequences = Any  # a tensor `[B, L, size]` or a PackedSequence


class LSTMLayer(nn.Module):
    """`LayerNorm(u + LSTM(u))`, `u = input_norm(x)`. Half of a bidirectional output is computed from right to left.

    Args:
        size: of the input and the output; even in a bidirectional layer, otherwise a ValueError is raised.
        dropout: a module that is applied to the LSTM's output; none by default.
        input_norm: a module that is applied to the input, a tensor `[B, L, size]`; none by default.
    """

    def __init__(
        self,
        size: int,
        bidirectional: bool = False,
        dropout: Optional[nn.Module] = None,
        input_norm: Optional[nn.Module] = None,
    ):
        super().__init__()
        if bidirectional and size % 2:
            raise ValueError(f"size must be even in a bidirectional LSTM, not {size}")
        hidden = size // 2 if bidirectional else size
        self.lstm = nn.LSTM(size, hidden, batch_first=True, bidirectional=bidirectional)
        self.norm = nn.LayerNorm(size)
        self.dropout = dropout or nn.Identity()
        self.input_norm = input_norm or nn.Identity()

    def forward(self, inputs: Sequences, state: Optional[LSTMState] = None) -> Tuple[Sequences, Optional[LSTMState]]:
        """Process all steps of `[B, L, size]`, or of a packed sequence, at once.

        `state` are the hidden and cell states before the first step, `[1, B, size]` (`[2, B, size/2]` in a
        bidirectional layer), zeros by default. Returns the outputs, packed if the inputs were, and the last state.
        """
        inputs = self.input_norm(inputs)
        if isinstance(inputs, PackedSequence):
            outputs, state = self.lstm(inputs, state)
            data = self.norm(inputs.data + self.dropout(outputs.data))
            return PackedSequence(data, *inputs[1:]), state
        if state is not None and inputs.size(1) == 1 and not self.lstm.bidirectional:
            # A single decoding step. The fused call would rearrange all weights for it.
            hidden, cell = torch.lstm_cell(inputs[:, 0], [part[0] for part in state], *self.lstm.all_weights[0])
            outputs, state = hidden.unsqueeze(1), (hidden.unsqueeze(0), cell.unsqueeze(0))
        else:
            outputs, state = self.lstm(inputs, state)
        return self.norm(inputs + self.dropout(outputs)), state


class AttentiveLSTMLayer(nn.Module):
    """An LSTM layer that adds attention over capsules to each input.

        u_t = input_norm(y_t + Σ_j a_tj c_j),   a_t = softmax_j(v · tanh(W_s s_{t-1} + W_c c_j))
        output_t = LayerNorm(u_t + LSTM(u_t))

    The steps are sequential. The caller computes `W_c c_j` once for each sentence (`keys`). The arguments are those of
    `LSTMLayer`; `input_norm` is applied to the sum.
    """

    def __init__(self, size: int, dropout: Optional[nn.Module] = None, input_norm: Optional[nn.Module] = None):
        super().__init__()
        self.cell = nn.LSTMCell(size, size)
        self.query = nn.Linear(size, size, bias=False)
        self.key = nn.Linear(size, size, bias=False)
        self.vector = parameter(size)
        self.reset_parameters()
        self.norm = nn.LayerNorm(size)
        self.dropout = dropout or nn.Identity()
        self.input_norm = input_norm or nn.Identity()

    def reset_parameters(self) -> None:
        normal_(self.vector)

    def forward(
        self, inputs: Tensor, capsules: Tensor, keys: Tensor, state: Optional[LSTMState] = None
    ) -> Tuple[Tensor, LSTMState]:
        """Process all steps of `y` `[B, T, size]` in order, with `state` and result as for `LSTMLayer`.

        `capsules` are `c` and `keys` are `W_c c`, before or after scaling, both `[B, M, size]`.
        """
        hidden, cell = (part[0] for part in state) if state else (torch.zeros_like(inputs[:, 0]),) * 2
        pairs: List[Tuple[Tensor, Tensor]] = []  # the LSTM's input and output at each step
        for step in inputs.unbind(1):
            scores = torch.tanh(self.query(hidden).unsqueeze(1) + keys) @ self.vector
            step = self.input_norm(step + torch.bmm(scores.softmax(-1).unsqueeze(1), capsules).squeeze(1))
            hidden, cell = self.cell(step, (hidden, cell))
            pairs.append((step, hidden))
        joined, outputs = (torch.stack(parts, 1) for parts in zip(*pairs))
        output = self.norm(joined + self.dropout(outputs))
        return output, (hidden.unsqueeze(0), cell.unsqueeze(0))


def read_both_ways(layers: nn.ModuleList, inputs: Tensor, lengths: Tensor) -> Tensor:
    """Run bidirectional `LSTMLayer`s on inputs with padding after `lengths` `[B]` ≥ 1: `[B, L, size]`, 0 at padding."""
    packed = pack_padded_sequence(inputs, lengths.cpu(), batch_first=True, enforce_sorted=False)
    for layer in layers:
        packed, _ = layer(packed)
    # torch would also sort the lengths back, and synchronise with the GPU to read the order.
    outputs, _ = pad_packed_sequence(PackedSequence(*packed[:2]), batch_first=True, total_length=inputs.size(1))
    return outputs[packed.unsorted_indices]
