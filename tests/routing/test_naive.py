"""The fast routings give the results and gradients of the naive ones. Small ones equal the loops, too."""

import inspect

import pytest
import torch

from capsule_routing.functions import naive
from capsule_routing.functions.horizontal.chunk import causal_routing
from fairseq_capsule import routing
from tests.references import routing as reference
from tests.routing.test_attention_routing import attention_inputs, without_padding
from tests.routing.test_chunk import last_tokens
from tests.routing.test_dynamic import COMPETITIONS, masks, same_with_gradient

NAMES = sorted(
    name for name in routing.__all__ if getattr(getattr(naive, name, None), "__module__", "") == naive.__name__
)


def random_tensors(*shapes):
    torch.manual_seed(1)
    return [torch.randn(shape, dtype=torch.float64) for shape in shapes]


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_have_one_signature(name):
    assert [*inspect.signature(getattr(naive, name)).parameters] == [
        *inspect.signature(getattr(routing, name)).parameters
    ]


def test_every_routing_has_a_naive_form():
    routings = {name for name in routing.__all__ if "rout" in name.lower()} - {"RoutingResult"}
    assert routings | {"squash", "additive_scores"} == set(NAMES)


@pytest.mark.parametrize("dim", [-1, 0])
def test_squash(dim):
    (s,) = random_tensors((6, 5, 4))
    s[2] = 0
    same_with_gradient(lambda x: (routing.squash(x, dim),), lambda x: (naive.squash(x, dim),), s)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("competition", COMPETITIONS)
def test_dynamic_routing(competition, iterations, masked):
    votes, logits = random_tensors((3, 40, 7, 5), (3, 40, 7))
    options = dict(padding_mask=masks((3, 40))[0] if masked else None, competition=competition, initial_logits=logits)
    same_with_gradient(
        lambda v: routing.dynamic_routing(v, iterations, **options),
        lambda v: naive.dynamic_routing(v, iterations, **options),
        votes,
    )


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("iterations", [1, 2, 4])
@pytest.mark.parametrize("length", [7, 90])
def test_routings_of_attention_logits(length, iterations, masked):
    mask = masks((3, length))[0] if masked else None

    def outputs(module):
        def function(q, k):
            q, k = without_padding(mask, q, k)
            logits, options = q @ k.mT, dict(iterations=iterations, padding_mask=mask)
            horizontal = [
                module.horizontal_routing(logits, causal=causal, factors=factors, **options)
                for causal in (False, True)
                for factors in (None, (q, k))
            ]
            return (*module.vertical_routing(logits, **options), *horizontal)

        return function

    same_with_gradient(outputs(routing), outputs(naive), *attention_inputs(length=length))


@pytest.mark.parametrize("length, block, rows", [(90, 16, 32), (130, 64, 64)])
def test_causal_routing_in_blocks(length, block, rows):
    same_with_gradient(
        lambda q, k: (causal_routing(q, k, 3, block=block, rows=rows),),
        lambda q, k: (naive.horizontal_routing(q @ k.mT, 3, causal=True),),
        *attention_inputs(batch=1, length=length),
    )


@pytest.mark.parametrize("length, block", [(5, 8), (50, 16)])
def test_the_last_token(length, block):
    q, k = attention_inputs(length=length)
    row, logits = last_tokens(q, k, block)
    for module in (routing, naive):
        last = module.route_last_token(row, q / 0.3, k, logits, 3, scale=0.3)
        loops = reference.horizontal_routing(q[:1, :2, :5] @ k[:1, :2, :5].mT, 3, causal=True)[:, :, -1:]
        if length == 5:
            small = module.route_last_token(row[:1, :2], None, None, logits[:1, :2], 3) - row[:1, :2]
            torch.testing.assert_close(small, loops, rtol=0, atol=1e-12)
        else:
            expected = naive.route_last_token(row, q, k, logits, 3)
            torch.testing.assert_close(last, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("iterations", [3, 5])
def test_guided_routing(iterations, masked):
    shapes = (3, 12, 6, 4), (3, 12, 6, 4), (3, 6, 4), (3, 9, 4), (4, 4), (4,)
    mask = masks((3, 12))[0] if masked else None

    def outputs(module):
        def function(votes, *others):
            votes = votes if mask is None else votes.masked_fill(mask[:, :, None, None], 0)
            return module.guided_routing(votes, *others, iterations, padding_mask=mask)

        return function

    same_with_gradient(outputs(routing), outputs(naive), *random_tensors(*shapes))
