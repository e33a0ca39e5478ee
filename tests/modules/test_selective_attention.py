import math

import pytest
import torch

from capsule_routing.modules import QueryKeyNorm, SelectiveAttention
from tests.references.selection import normed_logits, selective_logits

B, H, L, D = 3, 3, 6, 4
CAUSAL = pytest.mark.parametrize("causal", [False, True], ids=["encoder", "decoder"])


def _factors():
    """Return queries, keys and the padding mask: on the right in the second sentence, on the left in the third."""
    torch.manual_seed(1)
    mask = torch.zeros(B, L, dtype=torch.bool)
    mask[1, 3:] = mask[2, :2] = True
    queries, keys = (torch.randn(B, H, L, D, dtype=torch.float64, requires_grad=True) for _ in range(2))
    return queries, keys, mask


def _logits(queries, keys, mask):
    queries, keys = (rows.masked_fill(mask[:, None, :, None], 0) for rows in (queries, keys))
    return queries @ keys.transpose(2, 3)


def _compare(fast, literal, inputs):
    """Compare results and their gradients."""
    torch.testing.assert_close(fast, literal, rtol=0, atol=1e-13)
    weights = torch.randn_like(fast)
    gradients = (torch.autograd.grad((result * weights).sum(), inputs, retain_graph=True) for result in (fast, literal))
    for ours, expected in zip(*gradients):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)


@CAUSAL
def test_selection_equals_the_literal_formula(causal):
    queries, keys, mask = _factors()
    logits = _logits(queries, keys, mask)
    fast, literal = SelectiveAttention(causal)(logits, mask), selective_logits(logits, mask, causal)
    _compare(fast, literal, [queries, keys])
    whole = SelectiveAttention(causal)(logits[:1])
    torch.testing.assert_close(whole, literal[:1], rtol=0, atol=1e-13)


def test_the_norm_equals_the_literal_formula():
    queries, keys, _ = _factors()
    queries, keys = queries[:1].detach().requires_grad_(), keys[:1].detach().requires_grad_()
    norm = QueryKeyNorm(H).double()
    torch.nn.init.normal_(norm.scale)
    changed, changed_keys = norm(queries / math.sqrt(D), keys)
    literal = normed_logits(queries / math.sqrt(D), keys, norm.scale)
    _compare(changed @ changed_keys.transpose(2, 3), literal, [queries, keys, norm.scale])


@pytest.mark.parametrize("words, padded", [(1, True), (2, False)])
def test_new_words_give_the_same(words, padded):
    queries, keys, mask = _factors()
    mask = mask if padded else torch.zeros_like(mask)
    logits = _logits(queries, keys, mask).detach()
    selection, earlier = SelectiveAttention(True), None
    whole = selection(logits, mask)
    for start in range(0, L, words):
        stop = start + words
        seen = mask[:, :stop] if padded else None
        rows, earlier = selection.forward_next(logits[:, :, start:stop, :stop], seen, earlier)
        torch.testing.assert_close(rows, whole[:, :, start:stop, :stop], rtol=0, atol=1e-13)


def test_sums_of_a_long_sentence_are_exact_in_half_precision():
    torch.manual_seed(1)
    logits = (0.1 * torch.rand(1, 2, 400, 400)).half()
    selection, earlier = SelectiveAttention(True), None
    expected = selection(logits.double()).half()
    torch.testing.assert_close(selection(logits), expected)
    for l in range(400):
        row, earlier = selection.forward_next(logits[:, :, l : l + 1, : l + 1], None, earlier)
    assert row.dtype == torch.float16
    torch.testing.assert_close(row[:, :, 0], expected[:, :, -1])
