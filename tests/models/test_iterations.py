"""A trained model with another number of routing iterations."""

import pytest
import torch

from tests.zoo import LENGTHS, build, logits_of, make_batch, make_sentences

SHARED = {"aggregation_weights": "shared"}
BATCH = make_batch(make_sentences(LENGTHS))


@pytest.mark.parametrize(
    "arch, option, options, routing",
    [
        ("gdr_transformer_base", "past_future_iterations", {}, "decoder.past_future.routing"),
        ("gdr_lstm", "past_future_iterations", {}, "decoder.past_future.routing"),
        ("capsnmt", "aggregation_iterations", SHARED, "encoder.aggregation"),
        ("gret_transformer_base", "global_iterations", {}, "encoder.global_representation.poolings.0"),
    ],
)
@pytest.mark.parametrize("number", [1, 5])
def test_another_number_of_iterations_uses_the_trained_weights(arch, option, options, routing, number):
    trained = build(arch, options, seed=1)
    other = build(arch, {**options, option: number}, seed=2)
    assert other.get_submodule(routing).iterations == number
    other.load_state_dict(trained.state_dict())
    weights = trained.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in other.state_dict().items())
    assert not torch.equal(logits_of(other, BATCH), logits_of(trained, BATCH))


@pytest.mark.parametrize(
    "arch, option, options",
    [("gdr_transformer_base", "past_future_iterations", {}), ("capsnmt", "aggregation_iterations", SHARED)],
)
def test_a_model_trained_with_one_iteration_refuses_more(arch, option, options):
    trained = build(arch, {**options, option: 1}).state_dict()
    with pytest.raises(RuntimeError, match="Missing key"):
        build(arch, {**options, option: 3}).load_state_dict(trained)


def test_unused_agreement_weights_are_accepted_only_with_one_iteration():
    """With another scoring instead of another number of iterations, unexpected parameters are named."""
    trained = build("capsnmt", SHARED).state_dict()
    with pytest.raises(RuntimeError, match="score"):
        build("capsnmt", {**SHARED, "aggregation_scoring": "votes"}).load_state_dict(trained)
