"""Whether the models are ready for a GPU, tested without one, on torch's meta device, whose tensors have no values.

A tensor made on the CPU does not go with those of the meta device, as it would not with a GPU's. Where a value is asked
for, a GPU would have to finish all that it was given: such questions are answered with a constant, and counted.
"""

from argparse import Namespace
from contextlib import nullcontext

import pytest
import torch
from fairseq.models import build_model
from torch.utils._python_dispatch import TorchDispatchMode

from tests.zoo import (
    CASES,
    LENGTHS,
    LSTMS,
    OFF,
    SMALL,
    build,
    case_name,
    make_batch,
    make_criterion,
    make_sentences,
    make_task,
)

BEAM, LONGEST = 3, 1 + max(source for source, _ in LENGTHS)
aten = torch.ops.aten

every_case = pytest.mark.parametrize("arch, options", CASES, ids=case_name)


class Synchronisations(TorchDispatchMode):
    """Answers questions for values on the meta device, and counts them in `count`.

    A truth is True; lengths that are copied to the CPU are those of the longest sentence.
    """

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if args and isinstance(args[0], torch.Tensor) and args[0].is_meta:
            if function is aten._local_scalar_dense.default:
                self.count += 1
                return {torch.bool: True, torch.int64: LONGEST}.get(args[0].dtype, 1.0)
            if function is aten._to_copy.default and torch.device(kwargs.get("device") or "meta").type == "cpu":
                self.count += 1
                return torch.full(args[0].shape, LONGEST, dtype=kwargs.get("dtype") or args[0].dtype)
            boolean = function is aten.index.Tensor and any(i is not None and i.dtype == torch.bool for i in args[1])
            if function is aten.nonzero.default or function is aten.masked_select.default or boolean:
                raise AssertionError(f"{function}: how many elements there are is known to the GPU alone")
        return function(*args, **kwargs)


def to_meta(batch):
    return {
        name: to_meta(part) if isinstance(part, dict) else part.to("meta") if isinstance(part, torch.Tensor) else part
        for name, part in batch.items()
    }


def synchronisations(model, task) -> dict:
    """How often values are asked for: in a `training` step, and in the second and the third step of `decoding`."""
    model, batch = model.to("meta"), to_meta(make_batch(make_sentences(LENGTHS)))
    criterion = make_criterion(model.train(), task)
    with Synchronisations() as asked:
        criterion(model, batch)[0].backward()
    training = asked.count
    assert all(parameter.grad.is_meta for parameter in model.parameters())

    model.eval()
    if hasattr(model, "set_beam_size"):
        model.set_beam_size(BEAM)
    source = batch["net_input"]["src_tokens"], batch["net_input"]["src_lengths"]
    order = torch.arange(len(LENGTHS), device="meta").repeat_interleave(BEAM)
    words = torch.zeros(len(order), 3, dtype=torch.long, device="meta")
    state: dict = {}
    with torch.no_grad(), Synchronisations() as asked:
        encoded = model.encoder.reorder_encoder_out(model.encoder(*source), order)
        for step in range(3):
            if step:
                model.decoder.reorder_incremental_state_scripting(state, torch.arange(len(order), device="meta"))
            else:
                first = asked
            logits = model.decoder(words[:, : step + 1], encoder_out=encoded, incremental_state=state)[0]
            if not step:
                at_first = first.count
    assert logits.is_meta
    return {"training": training, "decoding": asked.count - at_first}
