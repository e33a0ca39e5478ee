"""A golden run of each system: 50 updates from a fixed seed give the losses that they gave when this file was written.

A change of these numbers is a change of what the system computes, of its initialisation, or of the order of its random
numbers. It needs an entry in CHANGELOG.md.
"""

import pytest
import torch

from fairseq_capsule.testing.small_models import (
    LENGTHS,
    build_small,
    make_batch,
    make_criterion,
    make_sentences,
    make_task,
)

# The loss of a batch, divided by its tokens, at updates 1, 10 and 50.
LOSSES = {
    "capsule_transformer_tiny": (4.4373, 2.6672, 0.9066),
    "gdr_transformer_tiny": (5.5443, 3.5567, 1.5634),
    "gdr_lstm": (4.7787, 4.1856, 2.2585),
    "gret_transformer_tiny": (4.3596, 2.6669, 0.8538),
    "capsnmt_tiny": (6.6125, 4.5174, 1.8861),
    "simple_aggregation_tiny": (4.6969, 3.2458, 1.9791),
}


def losses_of(arch):
    task = make_task()
    model = build_small(arch, {"dropout": 0.1}, task).train()
    criterion = make_criterion(model, task)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    batch = make_batch(make_sentences(LENGTHS))
    torch.manual_seed(1)
    for _ in range(50):
        optimizer.zero_grad()
        loss, tokens, _ = criterion(model, batch)
        (loss / tokens).backward()
        optimizer.step()
        yield loss.item() / tokens


@pytest.mark.parametrize("arch", LOSSES)
def test_a_golden_run(arch):
    losses = list(losses_of(arch))
    assert [losses[index] for index in (0, 9, 49)] == pytest.approx(LOSSES[arch], rel=1e-3)
