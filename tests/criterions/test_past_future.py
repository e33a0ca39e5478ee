"""The criterion: its terms, its log, its errors, and the cost of terms that are off."""

import math

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data.language_pair_dataset import collate
from fairseq.distributed import LegacyDistributedDataParallel, ModuleProxyWrapper
from fairseq.logging import metrics
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from capsule_routing.errors import UserError
from capsule_routing.losses import past_future
from fairseq_capsule.criterions import RoutingLossesCriterion
from fairseq_capsule.criterions.routing_losses import RoutingLossesConfig
from tests.losses.test_past_future import literal_bags
from tests.references import sentences, zheng2019
from tests.zoo import LENGTHS, build, make_batch, make_sentences, make_task

BATCH = make_batch(make_sentences(LENGTHS))
TASK = make_task()


def criterion(**options):
    return RoutingLossesCriterion(TASK, RoutingLossesConfig(sentence_avg=False, label_smoothing=0.1, **options))


def model_of(arch="gdr_transformer_base", **options):
    return build(arch, options)


@pytest.mark.parametrize(
    "arch, reduction", [("gdr_transformer_base", "mean"), ("gdr_lstm", "sum"), ("gdr_transformer_base", "printed")]
)
def test_the_loss_is_the_sum_of_its_terms(arch, reduction):
    model = model_of(arch, guided_reduction=reduction)
    loss, sample_size, log = criterion(bow_weight=0.5, bca_weight=2)(model, BATCH)
    plain, _, plain_log = LabelSmoothedCrossEntropyCriterion(TASK, False, 0.1)(model, BATCH)
    routed = model(**BATCH["net_input"])[1]["past_future"]
    part, padding = model.decoder.past_future, BATCH["target"].eq(1)
    heads = [[head[name].weight for name in ("past", "future")] for head in (part.bow, part.bca)]
    embeddings, capsules = model.decoder.output_embeddings, (routed.past, routed.future)
    bow = literal_bags(*capsules, *heads[0], embeddings, BATCH["target"], padding, reduction)
    each = sentences(padding, *capsules, routed.state)
    bca = sum(zheng2019.bca_loss(p, f, *heads[1], z, program=reduction == "mean") for p, f, z in each)
    torch.testing.assert_close(log["bow_loss"] * math.log(2), bow.detach(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(log["bca_loss"], bca.detach(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(loss, plain + 0.5 * bow + 2 * bca, rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(log["nll_loss"], plain_log["nll_loss"])
    assert sample_size == BATCH["ntokens"]


@pytest.mark.parametrize("left_pad_target", [False, True])
def test_the_guided_losses_leave_a_prefix_out(left_pad_target):
    """As fairseq does in the likelihood: the first columns."""
    batch = collate(make_sentences(LENGTHS), pad_idx=1, eos_idx=2, left_pad_target=left_pad_target)
    model, target = model_of(), batch["target"]
    log = criterion(ignore_prefix_size=2)(model, batch)[2]
    routed, part = model(**batch["net_input"])[1]["past_future"], model.decoder.past_future
    bow, bca = ([head[name].weight for name in ("past", "future")] for head in (part.bow, part.bca))
    left_out = target.eq(1)
    left_out[:, :2] = True
    capsules = routed.past, routed.future
    bags = literal_bags(*capsules, *bow, model.decoder.output_embeddings, target, left_out)
    each = sentences(left_out, *capsules, routed.state)
    distances = sum(zheng2019.bca_loss(p, f, *bca, z, program=True) for p, f, z in each)
    torch.testing.assert_close(log["bow_loss"] * math.log(2), bags.detach(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(log["bca_loss"], distances.detach(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(log["bow_count"], (2 - 1 / (~left_out).sum(1)).sum())


def test_without_smoothing_the_mean_over_sentences_is_the_printed_objective():
    """`L(θ)` of §3.3: fairseq divides by the number of words, unless `sentence_avg` is set."""
    model = model_of(guided_reduction="printed").eval()
    config = RoutingLossesConfig(sentence_avg=True, label_smoothing=0.0, bow_weight=0.5, bca_weight=2)
    loss, sample_size, _ = RoutingLossesCriterion(TASK, config)(model, BATCH)
    output = model(**BATCH["net_input"])
    routed, part, padding = output[1]["past_future"], model.decoder.past_future, BATCH["target"].eq(1)
    bow, bca = ([head[name].weight for name in ("past", "future")] for head in (part.bow, part.bca))
    terms = []
    probabilities = model.get_normalized_probs(output, True)
    given = probabilities, routed.past, routed.future, routed.state, BATCH["target"]
    for log_probabilities, past, future, z, y in sentences(padding, *given):
        likelihood = log_probabilities.gather(1, y.unsqueeze(1)).sum()
        bags = zheng2019.bow_loss(past, future, *bow, model.decoder.output_embeddings, y)
        terms.append((likelihood, bags, zheng2019.bca_loss(past, future, *bca, z)))
    torch.testing.assert_close(loss / sample_size, zheng2019.training_loss(*zip(*terms), 0.5, 2), rtol=1e-5, atol=1e-4)


def test_losses_are_logged_as_means_in_bits():
    logs = [
        {"loss": 30.0, "nll_loss": 12.0, "bow_loss": 8.0, "bow_count": 3, "bca_loss": 3.0, "bca_count": 2},
        {"loss": 10.0, "nll_loss": 4.0, "bow_loss": 8.0, "bow_count": 5, "bca_loss": 6.0, "bca_count": 1},
    ]
    with metrics.aggregate() as aggregated:
        RoutingLossesCriterion.reduce_metrics([{**log, "ntokens": 4, "sample_size": 4} for log in logs])
    values = aggregated.get_smoothed_values()
    assert values["bow_loss"] == 2.0 and values["bca_loss"] == 3.0  # bits per word of the bags; per sentence
    assert values["loss"] == pytest.approx(40 / 8 / math.log(2), abs=1e-3)
    assert values["ppl"] == pytest.approx(2 ** (16 / 8 / math.log(2)), abs=0.02)


@pytest.mark.parametrize("reduction", ["mean", "sum", "printed"])
def test_a_uniform_prediction_of_the_bags_costs_the_bits_of_a_word(reduction):
    model = model_of(guided_reduction=reduction)
    with torch.no_grad():
        for head in model.decoder.past_future.bow.values():
            head.weight.zero_()
    with metrics.aggregate() as aggregated:
        RoutingLossesCriterion.reduce_metrics([criterion()(model, BATCH)[2]])
    words = len(model.decoder.output_embeddings)
    assert aggregated.get_smoothed_values()["bow_loss"] == pytest.approx(math.log2(words), abs=1e-3)


def test_a_weight_of_zero_costs_nothing(monkeypatch):
    def never(*_, **__):
        raise AssertionError("computed")

    monkeypatch.setattr(past_future, "bags_of_words", never)
    log = criterion(bow_weight=0)(model_of(guided_heads="bca"), BATCH)[2]
    assert "bca_loss" in log and "bow_loss" not in log
    monkeypatch.setattr(past_future, "content_agreement_loss", never)
    log = criterion(bow_weight=0, bca_weight=0)(build("capsule_transformer"), BATCH)[2]
    assert not {"bow_loss", "bca_loss"} & set(log)


def test_the_bag_of_words_is_exact_while_validating():
    model, exact, estimated = model_of(), criterion(), criterion(bow_steps=0.25)
    with torch.no_grad():
        whole = exact(model.eval(), BATCH)[2]["bow_loss"]
        assert torch.equal(estimated(model, BATCH)[2]["bow_loss"], whole)
        assert not torch.equal(estimated(model.train(), BATCH)[2]["bow_loss"], whole)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"bow_weight": -1}, "--bow-weight must be at least 0, not -1"),
        ({"bca_weight": float("nan")}, "--bca-weight must be at least 0, not nan"),
        ({"bow_steps": 1.5}, "--bow-steps must be at most 1, not 1.5"),
    ],
)
def test_wrong_values_are_named(options, message):
    with pytest.raises(UserError, match=message):
        criterion(**options)


def test_only_losses_are_logged_as_losses():
    log = {"loss": 1.0, "nll_loss": 1.0, "ntokens": 4, "sample_size": 4, "routing_entropy_count": 3}
    with metrics.aggregate() as aggregated:
        RoutingLossesCriterion.reduce_metrics([log])
    assert "routing_entropy_loss" not in aggregated.get_smoothed_values()


@pytest.fixture
def process_group():
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield distributed.group.WORLD
    distributed.destroy_process_group()


def test_the_heads_take_part_in_the_forward_pass(process_group):
    """So PyTorch may search for unused parameters, which it does in the output of the forward pass."""
    for wrapped in (
        DistributedDataParallel(model_of().train(), find_unused_parameters=True),
        DistributedDataParallel(model_of().train()),
        LegacyDistributedDataParallel(model_of().train(), process_group),
    ):
        criterion()(ModuleProxyWrapper(wrapped), BATCH)[0].backward()
        heads = wrapped.module.decoder.past_future
        assert all(pair[name].weight.grad.abs().sum() > 0 for pair in (heads.bow, heads.bca) for name in pair)
