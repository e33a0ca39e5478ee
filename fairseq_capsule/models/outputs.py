"""One form of what encoders return and of output embeddings, for models of fairseq and of this package; eval mode."""

from contextlib import contextmanager
from typing import Any, Iterator, Tuple

import torch
from torch import Tensor, nn


def encode(model: Any, tokens: Tensor, **options: Any) -> Any:
    """Return the output of a model's encoder for source tokens `[B, I]`, padded on either side."""
    return model.encoder(tokens, tokens.ne(model.encoder.dictionary.pad()).sum(1), **options)


def encoder_states(encoded: Any) -> Tuple[Tensor, Tensor]:
    """Return the states `[B, I, C]` and the padding mask `[B, I]` (True marks padding) from an encoder's output.

    Both are in the order of the source tokens. Only fairseq's own `lstm` has its padding always on the right.
    """
    if isinstance(encoded, tuple):
        return encoded[0].transpose(0, 1), encoded[3].t()
    return encoded["encoder_out"][0].transpose(0, 1), encoded["encoder_padding_mask"][0]


def output_embeddings(model: Any) -> Tensor:
    """Return `E` `[V, C]` of a model of this package or of fairseq's Transformer or LSTM."""
    decoder = model.decoder
    if hasattr(decoder, "output_embeddings"):
        return decoder.output_embeddings
    if hasattr(decoder, "output_projection"):
        return decoder.output_projection.weight
    return decoder.embed_tokens.weight if decoder.share_input_output_embed else decoder.fc_out.weight


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Run a block in eval mode without gradients, then restore each module's mode and the CPU's random numbers.

    fairseq draws random numbers of the CPU for layer dropout in eval mode too. Those of a GPU are not restored.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        for module, training in modes:
            module.training = training
