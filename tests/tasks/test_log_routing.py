"""--log-routing logs what the routing computes, and costs nothing if it is off."""

import math
from argparse import Namespace

import pytest
import torch
from fairseq.data.language_pair_dataset import collate
from fairseq.logging import metrics

from capsule_routing.errors import UserError
from capsule_routing.modules import AttentionRouting
from fairseq_capsule.inspection import capsule_norms, coupling_entropy, mean_where
from fairseq_capsule.inspection.attention import decoder_attention, encoder_attention
from fairseq_capsule.inspection.attention_routing import routing_statistics
from fairseq_capsule.inspection.past_future import moved_words
from fairseq_capsule.tasks.capsule_translation import log_means, routing_sums
from fairseq_capsule.testing.small_models import small_options
from tests.inspection.test_arrays import Counted
from tests.losses.test_past_future import literal_overlap
from tests.tasks.test_capsule_translation import make_capsule_task
from tests.zoo import LENGTHS, SYSTEMS, build, case_name, make_batch, make_criterion, make_sentences

SENTENCES = make_sentences(LENGTHS)
BATCH = make_batch(SENTENCES)
ROUTING = [(arch, {}) for arch in SYSTEMS if arch not in ("capsule_lstm", "simple_aggregation_base")]
ROUTING += [("gdr_transformer_base", {"past_future": "attn"}), ("gret_transformer_base", {"global_gate": "none"})]


def means(model, *sentences):
    sums = {}
    for sentence in sentences:
        for name, value in routing_sums(model, make_batch(sentence)["net_input"]).items():
            sums[name] = sums.get(name, 0) + value
    with metrics.aggregate() as aggregated:
        log_means([sums], "routing_")
    return aggregated.get_smoothed_values()


@pytest.mark.parametrize("arch, options", ROUTING, ids=case_name)
def test_padding_and_mode_change_nothing(arch, options):
    model = build(arch, options).double().train()
    together, apart = means(model, SENTENCES), means(model, *([sentence] for sentence in SENTENCES))
    assert together.keys() == apart.keys()
    for name, value in together.items():
        # The mean over sentences is a mean over words: sums and counts are added.
        assert value == pytest.approx(apart[name], abs=2e-4), name
    unbounded = "_norm" if options.get("past_future") == "attn" else "_masks"  # no squash; sums of logits
    for name, value in together.items():
        if "_scale_" in name:  # a parameter
            continue
        assert value > 0 or name.endswith(("_dead", "_moved")), name
        assert value <= 1 or name.endswith(unbounded), name


@pytest.mark.parametrize("arch, options", [case for case in ROUTING if "transformer" in case[0]], ids=case_name)
def test_the_side_of_the_padding_changes_nothing(arch, options):
    """An LSTM's decoder refuses targets that are padded on the left."""
    model = build(arch, options).double()
    right, left = (
        routing_sums(model, collate(SENTENCES, pad_idx=1, eos_idx=2, left_pad_target=side)["net_input"])
        for side in (False, True)
    )
    torch.testing.assert_close(left, right)


def test_every_routing_has_entropy_norm_and_dead_capsules():
    for arch, options in ROUTING:
        if arch.startswith("selective"):  # it does not route
            continue
        names = means(build(arch, options), SENTENCES)
        for kind in ("entropy", "norm", "dead"):
            assert any(name.endswith(kind) for name in names), (arch, options, list(names))


def test_overlap_is_that_of_the_targets_bags():
    """The statistics know only what the decoder reads. Sums over two batches are those of the literal computation."""
    model, expected = build("gdr_transformer_tiny").eval(), torch.zeros(4)
    batches = [make_batch(SENTENCES[:2]), make_batch(SENTENCES[2:])]
    for batch in batches:
        routed = model(**batch["net_input"])[1]["past_future"]
        bags, target = model.decoder.past_future.predicted_bags(routed), batch["target"]
        expected += torch.tensor(literal_overlap(*bags, model.decoder.output_embeddings, target, target.eq(1)))
    found = means(model, SENTENCES[:2], SENTENCES[2:])
    assert found["routing_past_future_overlap_past"] == pytest.approx(float(expected[0] / expected[1]), abs=1e-4)
    assert found["routing_past_future_overlap_future"] == pytest.approx(float(expected[2] / expected[3]), abs=1e-4)


def test_a_word_has_moved_if_it_was_future_first_and_past_last():
    """Three words of one sentence: one moves, one stays PAST, one ends as FUTURE. The fourth is padding."""
    past = torch.tensor([[[0.1, 0.9, 0.1, 0.1], [0.2, 0.9, 0.2, 0.2], [0.8, 0.9, 0.3, 0.8], [0.0, 0.0, 0.9, 0.0]]])
    padding = torch.tensor([[False, False, False, True]])
    steps = torch.tensor([[False, False, False, True]])  # the last step is padding
    mean = moved_words(past, 1 - past, padding, steps)
    assert mean.total / mean.number == pytest.approx(1 / 3)
    assert moved_words(past, 1 - past, padding, steps & False).total == 1  # the third word too, the first goes back
    past, steps = past.roll(1, 1), steps.roll(1, 1)  # the first step is padding
    assert moved_words(past, 1 - past, padding, steps) == mean


def test_shares_of_contents_sum_to_one():
    logged = means(build("gdr_transformer_base"), SENTENCES)
    shares = [logged[f"routing_past_future_{content}"] for content in ("past", "future", "redundant")]
    assert sum(shares) == pytest.approx(1, abs=2e-4)
    assert "routing_past_future_past" not in means(build("gdr_transformer_base", {"past_future": "attn"}), SENTENCES)


@pytest.mark.parametrize("selective", ["none", "both"])
def test_attention_norms_are_those_that_the_model_adds(selective):
    """Selective attention changes the logits before they are routed."""
    model = build("capsule_transformer", {"selective_attention": selective, "query_key_norm": selective})
    net_input, added = make_batch(SENTENCES)["net_input"], []
    hooks = [
        module.register_forward_hook(lambda _, logits, routed: added.append(routed - logits[0]))
        for module in model.modules()
        if isinstance(module, AttentionRouting)
    ]
    with torch.no_grad():
        model(**net_input)
    for hook in hooks:
        hook.remove()
    sums = routing_sums(model, net_input)
    source, previous = net_input["src_tokens"], net_input["prev_output_tokens"]
    explained = {
        "encoder": (encoder_attention(model, source), source),
        "decoder": ([own for own, _ in decoder_attention(model, source, previous)], previous),
    }
    shown = [layer for layers, _ in explained.values() for layer in layers]
    assert len(shown) == len(added) == 4
    for layer, expected in zip(shown, added):
        capsules = layer.horizontal if layer.vertical is None else layer.vertical + layer.horizontal
        torch.testing.assert_close(capsules, expected, rtol=1e-4, atol=1e-5)
    for side, (layers, tokens) in explained.items():
        for part in ("vertical", "horizontal") if side == "encoder" else ("horizontal",):
            capsules = torch.stack([getattr(layer, part) for layer in layers], 1)  # [B, layers, H, L, K]
            if part == "vertical":
                capsules = capsules.sum(2, keepdim=True)  # Σ_h λ_h Ω = Ω
            expected = capsules.norm(dim=-1).movedim(3, 1)[tokens != 1].mean()
            name = f"routing_attention_routing_{side}_{part}_norm"
            torch.testing.assert_close(sums[f"{name}_total"] / sums[f"{name}_count"], expected)


def test_the_entropy_of_the_acceptance_equals_a_result_by_hand():
    routing = AttentionRouting(4)
    shares = torch.tensor([0.5, 0.25, 0.125, 0.125])
    routing.acceptance.bias.data.copy_(shares.log())
    padding = torch.tensor([[False] * 5, [True, True, False, False, False]])
    parts = routing_statistics(routing, torch.randn(2, 4, 5, 5), padding)
    (total, number), *_ = (part["acceptance_entropy"] for part in parts if "acceptance_entropy" in part)
    assert (total.item(), number.item()) == (pytest.approx(2 * 1.75 / 2), 2)  # bits, of log2(4)


def test_entropy_equals_a_result_by_hand():
    coupling = torch.tensor([[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.25], [0.0, 0.0]]])
    padding = torch.tensor([[False, False], [False, True]]).unsqueeze(-1)
    # Entropies: uniform 1, decided 0, uniform up to a factor 1. The padded word does not count.
    total, count = coupling_entropy(coupling, -1, padding)
    assert (total.item(), count.item()) == (pytest.approx(2), 3)
    # Over the words of the first sentence: the entropy of (0.5, 1) divided by log 2. The second has one word: 0.
    third = -(math.log(1 / 3) / 3 + 2 / 3 * math.log(2 / 3)) / math.log(2)
    total, count = coupling_entropy(coupling, -2, padding)
    assert (total.item(), count.item()) == (pytest.approx(third + 0, abs=1e-6), 2)


def test_norms_and_means_equal_a_result_by_hand():
    norm, dead = capsule_norms(torch.tensor([[3.0, 4.0], [0.0, 0.009], [9.0, 9.0]]), torch.tensor([False, False, True]))
    assert (norm.total.item(), norm.number.item()) == (pytest.approx(5.009), 2)
    assert (dead.total.item(), dead.number.item()) == (1, 2)
    assert mean_where(torch.tensor([[1.0, 2.0], [5.0, 7.0]]), torch.tensor([[True], [False]])) == (3, 2)


def test_statistics_change_neither_modes_nor_random_numbers():
    model = build("capsule_transformer", {"encoder_layerdrop": 0.5, "decoder_layerdrop": 0.5}).train()
    model.encoder.eval()
    modes = [module.training for module in model.modules()]
    state = torch.get_rng_state()
    routing_sums(model, BATCH["net_input"])
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)


def train_step(interval, update, log=True):
    torch.manual_seed(1)
    task = make_capsule_task(log_routing=log, log_routing_interval=interval)
    model = build("gdr_transformer_base", {"guided_heads": "none", "dropout": 0.1})
    task.model = model
    criterion = make_criterion(model, task)
    optimizer = type("Optimizer", (), {"backward": lambda self, loss: loss.backward()})()
    with Counted() as count:
        _, _, output = task.train_step(BATCH, model, criterion, optimizer, update)
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return count.operations, output, gradients


def test_logging_off_dispatches_nothing_and_on_changes_no_gradient():
    off, output, gradients = train_step(interval=0, update=4, log=False)
    assert not any(key.startswith("routing_") for key in output)
    between, output, _ = train_step(interval=2, update=3)
    assert between == off and not any(key.startswith("routing_") for key in output)
    logged, output, same = train_step(interval=2, update=4)
    assert logged > off and any(key.startswith("routing_past_future_") for key in output)
    assert all(torch.equal(gradients[name], same[name]) for name in gradients if gradients[name] is not None)


def test_nothing_is_printed_between_the_intervals():
    """fairseq prints `None` for a mean that it has reset and that no later batch had."""
    logged = {"routing_a_entropy_total": torch.tensor(3.0), "routing_a_entropy_count": torch.tensor(4)}
    with metrics.aggregate("test") as meters:
        log_means([logged], "routing_")
        assert meters.get_smoothed_values()["routing_a_entropy"] == 0.75
        metrics.reset_meters("test")
        log_means([{}], "routing_")
        metrics.log_scalar("loss", 1.0)
        assert meters.get_smoothed_values() == {"loss": 1.0}
        log_means([logged], "routing_")
        assert meters.get_smoothed_values()["routing_a_entropy"] == 0.75


def build_by_task(arch, options, **log):
    make_capsule_task(**log).build_model(Namespace(arch=arch, **small_options(arch, options)))


def test_a_model_that_routes_nothing_is_refused():
    with pytest.raises(UserError, match="the model has no routing"):
        build_by_task("simple_aggregation_tiny", {}, log_routing=True)


@pytest.mark.parametrize(
    "options, message", [({"log_routing_interval": -1}, "at least 0"), ({"log_routing_interval": 5}, "needs --log-")]
)
def test_wrong_intervals_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        build_by_task("capsule_transformer", {}, **options)
