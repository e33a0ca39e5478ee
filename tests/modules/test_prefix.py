"""What decoding keeps of a prefix: reordering, growing, and two continuations of one prefix."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from capsule_routing.functions import LONGEST_BLOCK, route_last_token
from capsule_routing.functions.horizontal.chunk import BLOCK
from capsule_routing.modules.prefix import GrowingRows, RowHistory, extend

MODES = {"gradients": torch.enable_grad, "no gradients": torch.no_grad, "inference": torch.inference_mode}


@given(st.lists(st.lists(st.integers(0, 2), max_size=3), max_size=6), st.integers(0, 100))
def test_a_history_in_order_equals_rows_that_were_reordered_at_once(orders, seed):
    """After each step the rows are reordered any number of times, and their number changes."""
    generator = torch.Generator().manual_seed(seed)
    history, expected, rows = RowHistory(), [], 3
    for numbers in orders:
        new = torch.randn(rows, 2, generator=generator)
        history, expected = history.append(new), [*expected, new]
        for number in numbers:
            order = torch.randint(rows, (number + 1,), generator=generator)
            history, expected = history.index_select(0, order), [each[order] for each in expected]
            rows = len(order)
    found = history.in_order()
    assert len(found) == len(expected)
    assert all(torch.equal(*pair) for pair in zip(found, expected))


def test_a_history_keeps_no_tensor_of_its_caller_as_an_order():
    """A caller may write every order into the same tensor."""
    history = RowHistory().append(torch.arange(3))
    order = torch.tensor([2, 1, 0])
    history = history.index_select(0, order)
    order.fill_(1)
    assert history.in_order()[0].tolist() == [2, 1, 0]


@torch.no_grad()
@pytest.mark.parametrize("length", [BLOCK - 1, BLOCK, BLOCK + 1])
def test_growing_rows_are_not_copied_and_end_with_zeros(length):
    rows = torch.randn(2, 3, length, 4)
    growing = GrowingRows(rows)
    storages = set()
    for _ in range(BLOCK + 2):
        row = torch.randn(2, 3, 1, 3)
        rows = torch.cat([rows, torch.nn.functional.pad(row, (0, 1))], dim=2)
        growing = growing.append(row)
        storages.add(growing.whole.data_ptr())
        assert torch.equal(growing.rows, rows)
        assert growing.whole.size(2) % BLOCK == 0 and not growing.whole[:, :, growing.length :].any()
    assert len(storages) <= 3  # the tensor is copied only if it is full
    order = torch.tensor([1, 1, 0])
    start = growing.index_select(0, order)
    growing.append(row)
    reordered = start.append(row[order])
    assert reordered.whole.data_ptr() == start.whole.data_ptr()
    assert torch.equal(reordered.rows, torch.cat([rows, torch.nn.functional.pad(row, (0, 1))], dim=2)[order])


@given(
    st.lists(st.tuples(st.integers(0, 99), st.booleans(), st.sampled_from(sorted(MODES))), max_size=12),
    st.integers(BLOCK - 3, BLOCK + 3),
)
def test_any_prefix_can_be_continued_and_reordered_in_any_mode(operations, length):
    """A prefix does not change, and places of 0 follow a new one, whatever happens to the others."""
    rows = torch.arange(2.0 * length).view(2, 1, length, 1) + 1
    made = [(GrowingRows(rows), rows)]
    for number, (choice, reorders, mode) in enumerate(operations):
        growing, rows = made[choice % len(made)]
        with MODES[mode]():
            if reorders:
                order = torch.tensor([1, 0])
                growing, rows = growing.index_select(0, order), rows[order]
            else:
                row = torch.full((2, 1, 1, 1), -1.0 - number, requires_grad=torch.is_grad_enabled())
                growing, rows = growing.append(row), torch.cat([rows, row], dim=2)
            assert not growing.whole[:, :, growing.length :].any()
        made.append((growing, rows))
    for growing, rows in made:
        assert torch.equal(growing.rows, rows) and growing.rows.requires_grad == rows.requires_grad


def test_a_step_without_gradients_does_not_disturb_an_earlier_backward_pass():
    weights = torch.randn(BLOCK + 2, requires_grad=True)
    start = GrowingRows(torch.randn(1, 1, BLOCK + 1, 1)).append(torch.randn(1, 1, 1, 1))
    loss = (start.rows.flatten() * weights).sum()
    with torch.no_grad():
        start.append(torch.randn(1, 1, 1, 1))
    loss.backward()
    assert torch.equal(weights.grad, start.rows.flatten())


@pytest.mark.parametrize("gradients", [False, True])
def test_a_prefix_can_be_continued_twice(gradients):
    """The second continuation does not change the first one."""
    with torch.set_grad_enabled(gradients):
        start = GrowingRows(torch.randn(1, 1, BLOCK + 1, 2))
        one, two = torch.randn(2, 1, 1, 1, 2)
        first = start.append(one)
        second = start.append(two)
        third = first.append(two)
    assert torch.equal(first.rows[:, :, -1:], one) and torch.equal(second.rows[:, :, -1:], two)
    assert torch.equal(third.rows[:, :, -2:], torch.cat([one, two], dim=2))
    assert start.length == BLOCK + 1 and torch.equal(start.rows, second.rows[:, :, :-1])


def test_gradients_flow_through_a_prefix():
    """The gradient of each last row, on both sides of the end of the single block, equals that without a cache."""
    torch.manual_seed(1)
    length = LONGEST_BLOCK + 2
    q, k, v = torch.randn(3, 1, 2, length, 3, dtype=torch.float64, requires_grad=True)

    def last_rows():
        prefix = None
        for t in range(length):
            step = extend(prefix, *(rows[:, :, t : t + 1] for rows in (q, k, v)), 0.5)
            prefix = step.prefix
            if t >= LONGEST_BLOCK - 1:
                yield route_last_token(step.row, step.queries, step.keys, step.logits, 2, scale=0.5), step.values

    for t, (row, values) in enumerate(last_rows(), start=LONGEST_BLOCK):
        queries, keys = q[:, :, :t], k[:, :, :t]
        logits = 0.5 * queries @ keys.mT
        expected = route_last_token(logits[:, :, -1:], None, None, logits.tril(), 2)
        torch.testing.assert_close(row, expected, rtol=0, atol=1e-12)
        assert torch.equal(values, v[:, :, :t])
        found = torch.autograd.grad(row.square().sum() + values.sum(), (q, k, v), retain_graph=True)
        wanted = torch.autograd.grad(expected.square().sum() + v[:, :, :t].sum(), (q, k, v))
        for pair in zip(found, wanted):
            torch.testing.assert_close(*pair, rtol=0, atol=1e-10)
