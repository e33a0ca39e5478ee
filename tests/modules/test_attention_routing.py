import pytest
import torch

from capsule_routing.functions import vertical_routing
from capsule_routing.modules import AttentionRouting, attention_routing
from tests.references import assert_same, duan2020, padded, stacked
from tests.routing.test_attention_routing import attention_inputs, scaled, vectors_of, without_padding
from tests.routing.test_dynamic import masks


@pytest.mark.parametrize("last", ["updated", "used"])
@pytest.mark.parametrize("masked", [False, True])
def test_the_forward_pass_equals_the_loops(masked, last):
    """Both capsules are added. The vote weights of Eq. 11 are those that Algorithm 1 returns, with the last update."""
    mask = masks((3, 7))[0] if masked else None
    inputs = [part.requires_grad_() for part in attention_inputs(heads=3)]
    q, k = scaled(mask, *inputs)
    routing = AttentionRouting(3).double()
    with torch.no_grad():
        routing.acceptance.weight.normal_()
        routing.acceptance.bias.normal_()
    parameters = routing.acceptance.weight, routing.acceptance.bias
    each = [duan2020.routed_vectors(e, 3, *parameters, last=last) for e in vectors_of(mask, *inputs)]
    want = padded(mask, [stacked(e).transpose(0, 1) for e in each], 1, 2)
    got = routing(q @ k.mT, mask, (q, k))
    if last == "used":
        assert (got - want).abs().max() > 1e-3
    else:
        assert_same([got], [want], [*inputs, *parameters])


@pytest.mark.parametrize("sizes", [[1] * 7, [4, 3]])
def test_new_positions_equal_those_of_the_whole_sentence(sizes):
    q, k = attention_inputs()
    logits = q @ k.mT
    routing, earlier, length = AttentionRouting(3, vertical=False, causal=True), None, 0
    expected = routing(logits)
    for size in sizes:
        length += size
        if earlier is not None:  # beam search reorders what is kept
            order = torch.randperm(len(logits))
            logits, expected, earlier = logits[order], expected[order], earlier.index_select(0, order)
        row, earlier = routing.forward_next(logits[:, :, length - size : length, :length], None, earlier)
        seen = torch.ones(size, length, dtype=torch.bool).tril(length - size)
        torch.testing.assert_close(
            row[..., seen], expected[:, :, length - size : length, :length][..., seen], rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("compiled, autocast", [(False, True), (True, False)])
def test_a_routing_that_is_computed_again_has_the_same_gradients_and_saves_less(monkeypatch, compiled, autocast):
    mask = masks((3, 7))[0]
    q, k = (rows.float().requires_grad_() for rows in without_padding(mask, *attention_inputs(heads=4)))
    routing = AttentionRouting(4)
    torch.nn.init.normal_(routing.acceptance.weight)
    results, saved = [], []
    for longest in (6, 7):
        monkeypatch.setattr(attention_routing, "LONGEST_SAVED", longest)
        torch.compiler.reset()
        run = torch.compile(routing, fullgraph=True, backend="aot_eager") if compiled else routing
        kept = []
        hooks = torch.autograd.graph.saved_tensors_hooks(lambda part: kept.append(part.numel()) or part, lambda x: x)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast), hooks:
            routed = run(q @ k.mT, mask, (q, k))
        saved.append(sum(kept))
        results.append((routed, *torch.autograd.grad(routed.square().sum(), (q, k, *routing.parameters()))))
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want)
    assert saved[0] < saved[1] / 2


def test_long_sentences_in_half_precision_are_finite():
    """Vote weights summed over 512 words are beyond float16."""
    torch.manual_seed(1)
    routed = AttentionRouting(8).half()((5 + 2 * torch.randn(1, 8, 512, 512)).half())
    assert routed.dtype == torch.float16
    assert torch.isfinite(routed).all()


def test_a_new_module_gives_every_head_the_same_share():
    q, k = attention_inputs(heads=4)
    logits = (q @ k.transpose(2, 3)).float()
    vertical = AttentionRouting(4, horizontal=False).capsules(logits)[0]
    torch.testing.assert_close(vertical, vertical[:, :1].expand_as(vertical))
    torch.testing.assert_close(4 * vertical[:, 0], vertical_routing(logits, 3)[0])


def test_a_causal_routing_has_no_vertical_part():
    with pytest.raises(ValueError, match="would show later words"):
        AttentionRouting(4, causal=True)
