"""Which source words a model takes for translated, step by step (Zheng et al. 2019, Fig. 4)."""

from typing import List

import torch
from torch import Tensor

from fairseq_capsule.errors import UserError

CONTENTS = ("PAST", "FUTURE", "redundant")


@torch.no_grad()
def past_future_assignment(model: torch.nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """Where each source word went at each step of a translation, by one pass over the finished translation.

    Args:
        model: one with PAST and FUTURE, of this package.
        source: a sentence's tokens `[I]`, end of sentence included.
        target: its translation's `[T]`, end of sentence included.

    Returns:
        Shares `[T, I, 3]` of PAST, FUTURE and redundant, or `[T, I, 2]` where nothing is redundant. Before step `t`
        the words `target[:t]` are translated.

    Raises:
        UserError: the model has no PAST and FUTURE.
    """
    if getattr(model.decoder, "past_future", None) is None:
        raise UserError("the model has no PAST and FUTURE to show: it was trained with --past-future none")
    training = model.training
    model.eval()
    previous = target.roll(1)  # a decoder begins with the end of sentence
    lengths = torch.tensor([len(source)], device=source.device)
    routed = model(source.unsqueeze(0), lengths, previous.unsqueeze(0))[1]["past_future"]
    model.train(training)
    return routed.assignment[0]


def contents(assignment: Tensor) -> List[str]:
    """The names of the contents that an assignment's last dimension holds."""
    return list(CONTENTS[: assignment.size(-1)])
