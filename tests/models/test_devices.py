"""Tests without a GPU that the models can run on one. They use torch's meta device, which has tensors without values.

As on a GPU, a tensor on the CPU cannot be combined with a tensor on the meta device. Reading a value from a GPU waits
for all its work. Here such reads return a constant, and they are counted.
"""

import functools
from argparse import Namespace

import pytest
import torch
from fairseq.models import build_model
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.zoo import (
    LSTMS,
    OPTIONS,
    SMALL,
    SYSTEMS,
    build,
    case_name,
    make_batch,
    make_criterion,
    make_sentences,
    make_task,
)

LENGTHS = [(4, 2), (2, 3)]
BEAM, LONGEST = 3, 5  # with the end of sentence
aten = torch.ops.aten
CASES = [(arch, {}) for arch in SYSTEMS] + [pytest.param(*case, marks=pytest.mark.slow) for case in OPTIONS]
TAKES_CPU_TENSORS = {aten.index.Tensor, aten.copy_.default, aten._pack_padded_sequence.default}


class Synchronisations(TorchDispatchMode):
    """Returns constants if a value is read from the meta device, and counts these reads in `count`.

    Booleans are True, integers and tensors that are copied to the CPU are `LONGEST`, and all elements are nonzero.
    """

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [part for part in tree_leaves((args, kwargs)) if isinstance(part, torch.Tensor)]
        if function not in TAKES_CPU_TENSORS and any(tensor.is_meta for tensor in tensors):
            # Not all kernels of the meta device raise an error.
            assert all(tensor.is_meta or not tensor.dim() for tensor in tensors), f"{function} on two devices"
        if args and isinstance(args[0], torch.Tensor) and args[0].is_meta:
            if function is aten._local_scalar_dense.default:
                self.count += 1
                return {torch.bool: True, torch.int64: LONGEST}.get(args[0].dtype, 1.0)
            if function is aten._to_copy.default and torch.device(kwargs.get("device") or "meta").type == "cpu":
                self.count += 1
                return torch.full(args[0].shape, LONGEST, dtype=kwargs.get("dtype") or args[0].dtype)
            if function is aten.equal.default:
                self.count += 1
                return args[0].shape == args[1].shape
            if function is aten.nonzero.default:
                self.count += 1
                return args[0].new_empty(args[0].numel(), args[0].dim(), dtype=torch.long)
            if function is aten.index.Tensor:
                self.count += sum(index is not None and index.dtype == torch.bool for index in args[1])
        return function(*args, **kwargs)


def to_meta(batch):
    return {
        name: to_meta(part) if isinstance(part, dict) else part.to("meta") if isinstance(part, torch.Tensor) else part
        for name, part in batch.items()
    }


def training(model, task) -> int:
    """Return the number of value reads in a training step."""
    batch, criterion = to_meta(make_batch(make_sentences(LENGTHS))), make_criterion(model, task)
    with Synchronisations() as asked:
        criterion(model.train(), batch)[0].backward()
    assert all(parameter.grad.is_meta for parameter in model.parameters())
    return asked.count


@torch.no_grad()
def decoding(model) -> list:
    """Return the number of value reads in each of three decoding steps."""
    model.eval()
    if hasattr(model, "set_beam_size"):
        model.set_beam_size(BEAM)
    source = to_meta(make_batch(make_sentences(LENGTHS))["net_input"])
    order = torch.arange(len(LENGTHS), device="meta").repeat_interleave(BEAM)
    words = torch.zeros(len(order), 3, dtype=torch.long, device="meta")
    state: dict = {}
    counts = []
    with Synchronisations():
        encoded = model.encoder.reorder_encoder_out(model.encoder(source["src_tokens"], source["src_lengths"]), order)
    for step in range(3):
        with Synchronisations() as asked:
            if step:
                same = torch.arange(len(order), device="meta")
                model.decoder.reorder_incremental_state_scripting(state, same)
                encoded = model.encoder.reorder_encoder_out(encoded, same)
            logits = model.decoder(words[:, : step + 1], encoder_out=encoded, incremental_state=state)[0]
        assert logits.is_meta
        counts.append(asked.count)
    return counts


@functools.cache
def fairseqs_own(arch: str) -> tuple:
    """Return the numbers of fairseq's model: for a training step and for the third decoding step."""
    task = make_task()
    model = build_model(Namespace(**SMALL, arch=arch, criterion=None), task).to("meta")
    return training(model, task), decoding(model)[-1]


@pytest.mark.parametrize("arch, options", CASES, ids=case_name)
def test_models_run_on_another_device_without_further_synchronisations(arch, options):
    """No tensor is made on the CPU, and a model has at most one more synchronisation than the model of fairseq."""
    task = make_task()
    model = build(arch, options, task).to("meta")
    of_training, of_decoding = fairseqs_own("lstm" if arch in LSTMS else "transformer")
    assert training(model, task) <= of_training + 1
    assert max(decoding(model)[1:]) <= of_decoding + 1
