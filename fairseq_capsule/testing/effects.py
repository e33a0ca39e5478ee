"""The invariant that a mechanism changes what a model computes."""

from typing import Any, Mapping

import torch
from fairseq.criterions import FairseqCriterion
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from fairseq_capsule.mechanisms.base import Mechanism, active_mechanisms, parts_of
from fairseq_capsule.models.attention import SplitAttention
from fairseq_capsule.models.base import changed_parameters
from fairseq_capsule.testing import small_models as small
from fairseq_capsule.testing.small_models import PRESET, Options, build_small, logits_of


def check_on_changes_logits(arch: str, options: Options = PRESET) -> None:
    """Check that each mechanism of a model has an effect, with random parameters.

    - The logits differ from those of a model without it that has the same other parameters.
    - Each parameter of its parts changes the logits or the loss.
    - A part in place of `W_O` is no affine map of the heads. `W_O` could be the same map.
    """
    task = small.make_task()
    model = build_small(arch, options, task)
    batch = small.make_batch(small.make_sentences(small.LENGTHS))
    criterion = small.make_criterion(model, task)
    logits = _logits(model, batch)
    for mechanism in active_mechanisms(model.cfg):
        off = _without(mechanism, model, arch, options)
        assert not _is_close(_logits(off, batch), logits), f"{mechanism.name} has no effect"
        for part in parts_of(model, mechanism):
            idle = [name for name, value in part.named_parameters() if _is_idle(value, model, criterion, batch)]
            assert not idle, f"{mechanism.name}: parameters of {type(part).__name__} have no effect: {idle}"
    for attention in model.modules():
        if isinstance(attention, SplitAttention) and attention.combines_heads:
            part = getattr(attention, attention.combines_heads)
            affine = _is_affine(part, attention.num_heads, attention.head_dim)
            assert not affine, f"{attention.combines_heads} combines the heads as `W_O` can"


def _logits(model: BaseFairseqModel, batch: Mapping[str, Any]) -> Tensor:
    """Return the logits of the words. Those of padding differ between fairseq's attention and ours."""
    return logits_of(model, batch)[batch["target"].ne(model.decoder.dictionary.pad())]


def _without(mechanism: Mechanism, model: BaseFairseqModel, arch: str, options: Options) -> BaseFairseqModel:
    """Return the model without a mechanism, with the same other parameters."""
    off = build_small(arch, {**options, **mechanism.off})
    own, others = off.state_dict(), model.state_dict()
    missing = sorted(own.keys() - others.keys() - changed_parameters(model)[1])
    assert not missing, f"{mechanism.name} removes parameters of the model: {missing}"
    same = [name for name in own.keys() & others.keys() if own[name].shape == others[name].shape]
    off.load_state_dict({**own, **{name: others[name] for name in same}})
    return off


@torch.no_grad()
def _is_idle(parameter: Tensor, model: BaseFairseqModel, criterion: FairseqCriterion, batch: Mapping[str, Any]) -> bool:
    """Return whether another value of a parameter changes neither the logits nor the loss."""
    results, kept = [], parameter.clone()
    for change in (torch.zeros_like(parameter), torch.randn_like(parameter)):
        parameter.add_(change)
        results.append((_logits(model, batch), criterion(model, batch)[0]))
    parameter.copy_(kept)
    return all(_is_close(before, after) for before, after in zip(*results))


@torch.no_grad()
def _is_affine(part: nn.Module, heads: int, size: int) -> bool:
    """Return whether a part that combines heads `[B, L, H, d]` is an affine map of them."""
    left, right = torch.randn(2, 2, 3, heads, size)
    return _is_close(part(left + right) + part(0 * left), part(left) + part(right))


def _is_close(left: Tensor, right: Tensor) -> bool:
    """Return whether two results differ by rounding alone."""
    return torch.allclose(left, right, rtol=5e-6, atol=5e-6)
