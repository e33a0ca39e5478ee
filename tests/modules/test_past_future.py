import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capsule_routing.modules import GuidedDynamicRouting, HolisticContext, PastFutureAttention, PastFutureClassifier
from tests.references import assert_same, sentences, stacked, zheng2019
from tests.references import padded as fill

SOURCE, STATE = 5, 7


def make(kind, **options):
    torch.manual_seed(1)
    modules = {
        "gdr": lambda: GuidedDynamicRouting(SOURCE, STATE, **{"num_capsules": 6, "capsule_dim": 3, **options}),
        "clf": lambda: PastFutureClassifier(SOURCE, STATE, **{"content_dim": 6, "inner_dim": 3, **options}),
        "attn": lambda: PastFutureAttention(SOURCE, STATE, **{"content_dim": 6, **options}),
    }
    return modules[kind]().double()


def inputs(batch=3, words=4, steps=3, padded=True):
    torch.manual_seed(2)
    source = torch.randn(batch, words, SOURCE, dtype=torch.float64, requires_grad=True)
    state = torch.randn(batch, steps, STATE, dtype=torch.float64, requires_grad=True)
    mask = torch.zeros(batch, words, dtype=torch.bool)
    if padded:
        mask[0, :2] = mask[1, -1] = True
    return source, state, mask


every_kind = pytest.mark.parametrize("kind", ["gdr", "clf", "attn"])


@pytest.mark.parametrize(
    "num_capsules, capsule_dim, iterations, padded", [(6, 3, 3, True), (4, 2, 1, True), (2, 1, 4, False)]
)
def test_guided_routing_equals_the_loops_of_the_paper(num_capsules, capsule_dim, iterations, padded):
    module = make("gdr", num_capsules=num_capsules, capsule_dim=capsule_dim, iterations=iterations)
    source, state, mask = inputs(padded=padded)
    mask = mask if padded else None
    w_b, w = module.agreement_weight, module.agreement_vector
    if iterations == 1:  # the agreement of the last iteration changes nothing
        w_b, w = torch.zeros(capsule_dim, STATE + 2 * capsule_dim).double(), torch.zeros(capsule_dim).double()
    transforms = module.vote_weight.transpose(1, 2)
    want = [], []
    for (words,), states in zip(sentences(mask, source), state):
        steps = [zheng2019.guided_routing(z, words, transforms, w_b, w, iterations) for z in states]
        for results, of_steps in zip(want, zip(*steps)):
            results.append(stacked(of_steps))
    want = torch.stack(want[0]), fill(mask, want[1], 1)
    assert_same(module(source, state, mask), want, [source, state, *module.parameters()])


def test_capsules_compete_for_a_word():
    """§3.1 says that the assignment probabilities of a word sum to 1, and prints a sum over words."""
    module = make("gdr")
    source, state, _ = inputs(padded=False)
    arguments = state[0, 0], source[0], module.vote_weight.transpose(1, 2), *tuple(module.parameters())[1:], 3
    of_capsules, _ = zheng2019.guided_routing(*arguments)
    of_words, _ = zheng2019.guided_routing(*arguments, over="words")
    got = module(source, state).capsules[0, 0]
    torch.testing.assert_close(got, stacked(of_capsules), rtol=1e-10, atol=1e-10)
    assert (got - stacked(of_words)).abs().max() > 1e-3


def test_the_holistic_context_equals_its_equation():
    routing = make("gdr")
    options = dict(capsules_per_content=2, content_dim=6, state_dim=STATE, ffn_dim=4)
    module = HolisticContext(routing, **options).double()
    torch.nn.init.normal_(module.feed_forward[2].weight)
    source, state, _ = inputs(padded=False)
    got, routed = module.context(state, routing.project(source))
    parameters = tuple(routing.parameters())
    omega, _ = zheng2019.guided_routing(
        state[1, 2], source[1], parameters[0].transpose(1, 2), *parameters[1:], routing.iterations
    )
    past, future, redundant = zheng2019.groups(omega, 2, 2)
    want = zheng2019.holistic_context(state[1, 2], past, future, module.feed_forward)
    assert len(redundant) == 2
    close = dict(rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(got[1, 2], want, **close)
    torch.testing.assert_close((routed.past[1, 2], routed.future[1, 2]), (torch.cat(past), torch.cat(future)), **close)


def test_guided_routing_has_the_specified_parameters():
    module = GuidedDynamicRouting(source_dim=5, state_dim=7, num_capsules=6, capsule_dim=3)
    shapes = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
    assert shapes == {"vote_weight": (6, 5, 3), "agreement_weight": (3, 13), "agreement_vector": (3,)}
    assert module.iterations == 3
    assert [name for name, _ in GuidedDynamicRouting(5, 7, 6, 3, iterations=1).named_parameters()] == ["vote_weight"]


@every_kind
def test_padding_changes_nothing(kind):
    module = make(kind)
    source, state, mask = inputs()
    capsules, coupling = module(source, state, mask)
    assert not coupling[0, :, :2].any() and not coupling[1, :, -1].any()
    alone = module(source[:1, 2:], state[:1])
    torch.testing.assert_close(capsules[:1], alone.capsules, rtol=1e-10, atol=1e-10)
    (capsules.sum() + coupling.square().sum()).backward()
    assert not source.grad[mask].any() and source.grad[~mask].any()


@every_kind
def test_a_sentence_of_only_padding_gives_zeros(kind):
    source, state, mask = inputs()
    mask[1] = True
    capsules, coupling = make(kind)(source, state, mask)
    assert not capsules[1].any() and not coupling[1].any()
    capsules.sum().backward()
    assert torch.isfinite(source.grad).all()


@every_kind
def test_routing_in_two_halves_equals_the_forward_pass(kind):
    module = make(kind)
    source, state, mask = inputs()
    projected = module.project(source, mask)
    for got, want in zip(module.route(projected, state, mask)[:2], module(source, state, mask)[:2], strict=True):
        assert torch.equal(got, want)
    last = module.route(projected, state[:, -1:], mask)  # a single step, as in decoding
    torch.testing.assert_close(last.capsules, module(source, state, mask).capsules[:, -1:])


@pytest.mark.parametrize("redundant, columns", [(True, 3), (False, 2)])
def test_the_classifier_equals_its_equations(redundant, columns):
    module = make("clf", redundant=redundant)
    source, state, mask = inputs()
    capsules, coupling = module(source, state, mask)
    assert capsules.shape == (3, 3, 2, 6) and coupling.shape == (3, 3, 4, columns)
    b, t = 2, 1
    hidden = [torch.tanh(module.state_projection(state[b, t]) + module.source_projection(h)) for h in source[b]]
    classes = torch.stack([torch.softmax(module.class_weight @ row, 0) for row in hidden])
    torch.testing.assert_close(coupling[b, t], classes)
    total = sum(classes[i, 1] * (module.vote_weight[1].T @ source[b, i]) for i in range(4))
    norm = total.norm()
    torch.testing.assert_close(capsules[b, t, 1], total * norm / (1 + norm**2))


def test_the_two_attentions_equal_their_equations():
    module = make("attn")
    source, state, _ = inputs(padded=False)
    capsules, coupling = module(source, state)
    assert capsules.shape == (3, 3, 2, 6) and coupling.shape == (3, 3, 4, 2)
    b, t = 1, 2
    query = module.query_weight[1].T @ state[b, t]
    logits = torch.stack([query.dot(module.key_weight[1].T @ h) for h in source[b]]) / 6**0.5
    torch.testing.assert_close(coupling[b, t, :, 1], logits.softmax(0))
    values = torch.stack([module.value_weight[1].T @ h for h in source[b]])
    torch.testing.assert_close(capsules[b, t, 1], logits.softmax(0) @ values)


@settings(max_examples=12)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4), st.integers(0, 2))
def test_guided_routing_keeps_its_properties(words, steps, iterations, redundant):
    module = make("gdr", num_capsules=4 + redundant, iterations=iterations)
    source, state, _ = inputs(words=words, steps=steps, padded=False)
    capsules, coupling = module(source, state)
    assert capsules.shape == (3, steps, 4 + redundant, 3) and coupling.shape == (3, steps, words, 4 + redundant)
    torch.testing.assert_close(coupling.sum(-1), torch.ones_like(coupling[..., 0]))
    assert (capsules.norm(dim=-1) < 1).all()
    order = torch.randperm(words)
    permuted = module(source[:, order], state)
    torch.testing.assert_close(permuted.capsules, capsules)
    torch.testing.assert_close(permuted.coupling, coupling[:, :, order])


@every_kind
def test_half_precision_is_routed_in_float32(kind):
    module = make(kind).half()
    source, state, mask = inputs()
    capsules, coupling = module(source.half(), 30 * state.half(), mask)
    assert capsules.dtype == coupling.dtype == torch.float16
    assert torch.isfinite(capsules).all()


def test_numbers_below_one_are_refused():
    with pytest.raises(ValueError, match="iterations must be at least 1, not 0"):
        make("gdr", iterations=0)


@pytest.mark.parametrize("kind, count", [("gdr", 2), ("clf", 1), ("attn", 1)])
def test_past_is_the_first_capsules_and_future_the_next(kind, count):
    """In the order of the coupling, which `assignment` adds up."""
    source, state, mask = inputs()
    routing = make(kind)
    context = HolisticContext(routing, capsules_per_content=count, content_dim=6, state_dim=STATE, ffn_dim=4).double()
    routed = routing(source, state, mask)
    _, output = context.context(state, routing.project(source, mask), mask)
    torch.testing.assert_close(output.past, routed.capsules[:, :, :count].flatten(2))
    torch.testing.assert_close(output.future, routed.capsules[:, :, count : 2 * count].flatten(2))
    torch.testing.assert_close(output.assignment[..., 0], routed.coupling[..., :count].sum(-1))
    torch.testing.assert_close(output.assignment[..., 1], routed.coupling[..., count : 2 * count].sum(-1))
