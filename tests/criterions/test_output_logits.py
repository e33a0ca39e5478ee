"""The loss without logits: equal to that with logits, for every architecture and option, and where logits are kept."""

from argparse import Namespace

import pytest
import torch
from fairseq import utils
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data.language_pair_dataset import collate
from fairseq.distributed import LegacyDistributedDataParallel, ModuleProxyWrapper
from fairseq.models import build_model
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parametrizations

from fairseq_capsule.criterions import RoutingLossesCriterion
from fairseq_capsule.criterions.routing_losses import RoutingLossesConfig
from fairseq_capsule.mechanisms.attaching import loss_heads
from fairseq_capsule.models.output_layers import output_layer
from tests.zoo import CASES, LENGTHS, PLAIN, PLAIN_OPTIONS, build, case_name, make_batch, make_sentences, make_task

SENTENCES = make_sentences(LENGTHS)
BATCH = make_batch(SENTENCES)
PADDED_LEFT = collate(SENTENCES, pad_idx=1, eos_idx=2, left_pad_source=False, left_pad_target=True)
TASK = make_task()
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """fairseq computes the softmax of a model in float64 in float32."""

    def log_softmax(logits, dim, onnx_trace=False):
        return logits.log_softmax(dim, dtype=torch.promote_types(logits.dtype, torch.float32))

    monkeypatch.setattr(utils, "log_softmax", log_softmax)


def make(model, kind=RoutingLossesCriterion, **options):
    losses = {name for _, name, _ in loss_heads(model)}
    weights = {f"{name}_weight": 0.7 * (name in losses) for name in ("bow", "bca")}
    options = {"sentence_avg": False, "label_smoothing": 0.1, **weights, **options}
    return kind(TASK, RoutingLossesConfig(**options))


def results(model, batches, criterion=None, **options):
    """Return the losses of batches, what is logged, and the gradients summed over the batches."""
    torch.manual_seed(1)
    model.zero_grad()
    values, criterion = [], criterion or make(model, **options)
    for batch in batches:
        loss, number, log = criterion(model, batch)
        loss.backward()
        values.append((loss.detach(), number, log))
    return values, {name: item.grad for name, item in model.named_parameters() if item.grad is not None}


def assert_equal_without_logits(model, *batches, **options):
    assert output_layer(model) is not None
    kept = results(model, batches, output_logits="kept", **options)
    assert kept[1]
    torch.testing.assert_close(results(model, batches, output_logits="blocks", **options), kept, **CLOSE)


@pytest.mark.parametrize("arch, options", [*CASES, *((PLAIN, options) for options in PLAIN_OPTIONS)], ids=case_name)
def test_losses_and_gradients_are_equal(arch, options):
    model = build(arch, options).double().train()
    recurrent = "lstm" in arch or "capsnmt" in arch or "simple" in arch  # they refuse targets padded on the left
    assert_equal_without_logits(model, BATCH, *([] if recurrent else [PADDED_LEFT]))


@pytest.mark.parametrize("arch", ["gdr_transformer_base", "gdr_lstm"])  # the LSTM's output layer has a bias
@pytest.mark.parametrize(
    "options", [{"ignore_prefix_size": 1}, {"label_smoothing": 0.0}, {"sentence_avg": True}, {"bow_steps": 0.5}]
)
def test_they_are_equal_with_options_of_the_criterion(arch, options):
    assert_equal_without_logits(build(arch).double().train(), BATCH, **options)


def test_they_are_equal_for_fairseq_s_own_transformer():
    options = {"encoder_embed_dim": 16, "encoder_layers": 1, "decoder_layers": 1, "criterion": None}
    model = build_model(Namespace(arch="transformer", **options), TASK).double().train()
    assert_equal_without_logits(model, BATCH)


def test_they_are_equal_while_validating():
    model = build("gdr_transformer_base").double().eval()
    with torch.no_grad():
        kept, blocks = (make(model, output_logits=form)(model, BATCH) for form in ("kept", "blocks"))
    torch.testing.assert_close(blocks, kept, **CLOSE)


def test_no_logits_are_kept():
    task = make_task(3000)
    model = build("gdr_transformer_base", task=task).train()
    words = BATCH["target"].numel()
    size = len(model.decoder.output_embeddings)

    def largest(form):
        kept = []
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda kept: kept):
            make(model, output_logits=form)(model, BATCH)
        return max(tensor.numel() for tensor in kept)

    assert largest("kept") == max(size * words, model.decoder.output_embeddings.numel())
    assert largest("blocks") == model.decoder.output_embeddings.numel()


class Doubled(nn.Linear):
    def forward(self, states):
        return 2 * super().forward(states)


class OtherLoss(RoutingLossesCriterion):
    def compute_loss(self, model, net_output, sample, reduce=True):
        loss, nll_loss = super().compute_loss(model, net_output, sample, reduce)
        return 2 * loss, nll_loss


def with_another_method(model):
    layer = model.decoder.output_projection
    layer.forward = lambda features: 2 * nn.functional.linear(features, layer.weight)


def with_an_adapter(model):
    weight = model.decoder.output_projection.weight
    model.decoder.output_projection = Doubled(*weight.t().shape, bias=False)
    model.decoder.output_projection.weight = weight


def with_other_logits(model):
    kind = type(model.decoder)
    model.decoder.__class__ = type("Other", (kind,), {"output_layer": lambda self, x: 2 * kind.output_layer(self, x)})


def with_other_probabilities(model):
    kind = type(model)
    halved = {"get_normalized_probs": lambda self, *args, **named: kind.get_normalized_probs(self, *args, **named) / 2}
    model.__class__ = type("Other", (kind,), halved)


CHANGES = {
    "hook": lambda model: model.decoder.output_projection.register_forward_hook(lambda *given: 2 * given[2]),
    "hook of the decoder": lambda model: model.decoder.register_forward_hook(lambda *given: (2 * given[2][0], {})),
    "hook of the model": lambda model: model.register_forward_hook(lambda *given: (2 * given[2][0], given[2][1])),
    "method of the layer": with_another_method,
    "parametrisation": lambda model: parametrizations.spectral_norm(model.decoder.output_projection),
    "adapter": with_an_adapter,
    "other logits": with_other_logits,
    "other probabilities": with_other_probabilities,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_model_that_changes_its_logits_keeps_them(change):
    model = build("capsule_transformer")
    change(model)
    assert output_layer(model) is None
    loss = make(model, output_logits="blocks")(model, BATCH)[0]
    assert torch.equal(loss, LabelSmoothedCrossEntropyCriterion(TASK, False, 0.1)(model, BATCH)[0])


def test_adaptive_softmax_keeps_its_logits():
    assert output_layer(build("capsule_transformer", {"adaptive_softmax_cutoff": "10,20"})) is None


def test_a_criterion_with_another_loss_or_accuracy_keeps_the_logits():
    model = build("capsule_transformer")
    plain, other = make(model)(model, BATCH), make(model, OtherLoss)(model, BATCH)
    torch.testing.assert_close(other[0], 2 * plain[0])
    log = make(model, report_accuracy=True)(model, BATCH)[2]
    assert log["total"] == BATCH["ntokens"] and 0 <= log["n_correct"] <= log["total"]


@pytest.fixture
def process_group():
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield distributed.group.WORLD
    distributed.destroy_process_group()


@pytest.mark.parametrize("arch", ["gdr_transformer_base", "gdr_lstm", "capsnmt"])
def test_wrapped_models_have_the_gradients_of_all_parameters(arch, process_group):
    """Also if the output layer, which the forward pass does not run, has parameters of its own."""
    expected = results(build(arch).train(), [BATCH, BATCH])
    wrappers = {
        "ddp": lambda model: DistributedDataParallel(model),
        "searching": lambda model: DistributedDataParallel(model, find_unused_parameters=True),
        "legacy": lambda model: LegacyDistributedDataParallel(model, process_group),
    }
    for name, wrapper in wrappers.items():
        model = build(arch).train()
        wrapped = ModuleProxyWrapper(wrapper(model))
        assert (output_layer(wrapped) is None) == (name == "searching")
        values, _ = results(wrapped, [BATCH, BATCH], make(model))
        gradients = {name: item.grad for name, item in model.named_parameters() if item.grad is not None}
        torch.testing.assert_close((values, gradients), expected, rtol=1e-4, atol=1e-4)
