"""The loss and all its gradients are those of fairseq's model with the criterion, for every architecture and option."""

import fairseq.utils
import pytest
import torch

from tests.huggingface.models import (
    SENTENCES,
    WITH_MECHANISMS,
    WITHOUT_MECHANISMS,
    use_the_precision_of_the_model,
)
from tests.libraries import library
from tests.zoo import ARCHITECTURES, build, case_name, make_batch, make_criterion

library("transformers")
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY  # noqa: E402

from capsule_routing.huggingface import CapsuleForConditionalGeneration  # noqa: E402
from capsule_routing.huggingface.configuration import PRESETS, CapsuleConfig  # noqa: E402
from fairseq_capsule.models import CapsuleTransformerModel  # noqa: E402
from fairseq_capsule_lab.export.to_transformers import exported  # noqa: E402


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.bfloat16, 2e-2)])
def test_a_loss_without_logits_is_that_with_them_also_with_a_bias(dtype, tolerance):
    """Models such as Marian have a bias of the output."""
    torch.manual_seed(1)
    config = CapsuleConfig.preset("gdr_transformer_tiny", vocab_size=30, output_bias=True, label_smoothing=0.1)
    model = CapsuleForConditionalGeneration(config).to(dtype).eval()
    model.decoder.output_projection.bias.data.normal_()
    tokens = torch.randint(4, 30, (3, 6))
    found = []
    for keeps in (True, False):
        output = model(input_ids=tokens, labels=tokens, output_logits=keeps)
        assert (output.logits is not None) == keeps
        found.append([output.loss, *output.losses.values(), *torch.autograd.grad(output.loss, [*model.parameters()])])
    for with_logits, without in zip(*found):
        torch.testing.assert_close(without.double(), with_logits.double(), rtol=tolerance, atol=tolerance)


def test_logits_are_computed_where_the_output_layer_has_hooks():
    config = CapsuleConfig.preset("transformer_tiny", vocab_size=30)
    model = CapsuleForConditionalGeneration(config)
    seen = []
    model.decoder.output_projection.register_forward_hook(lambda *args: seen.append(args))
    tokens = torch.randint(4, 30, (3, 6))
    assert model(input_ids=tokens, labels=tokens, output_logits=False).logits is not None and len(seen) == 1


@pytest.fixture(autouse=True)
def precise(monkeypatch):
    def log_softmax(logits, dim, onnx_trace=False):
        return logits.log_softmax(dim, dtype=torch.promote_types(logits.dtype, torch.float32))

    use_the_precision_of_the_model(monkeypatch)
    monkeypatch.setattr(fairseq.utils, "log_softmax", log_softmax)


# test_logits.py has the same models. Only the gradient shows whether two embeddings are one parameter.
CASES = [*WITH_MECHANISMS]
for arch, options in WITHOUT_MECHANISMS:
    is_fast = "share_decoder_input_output_embed" in options
    CASES.append(pytest.param(arch, options, marks=() if is_fast else pytest.mark.slow))


@pytest.mark.parametrize("arch, options", CASES, ids=case_name)
def test_the_loss_and_its_gradients_are_those_of_fairseq(arch, options):
    model = build(arch, options).double()
    copy, criterion = exported(model), make_criterion(model)
    copy.config.label_smoothing = 0.1
    for left in (True, False):  # padding of the source
        batch = make_batch(SENTENCES, left_pad_source=left, pad_to=14)
        loss, words, log = criterion(model.zero_grad() or model, batch)
        (loss / words).backward()
        copy.zero_grad()
        labels = batch["target"].masked_fill(batch["target"].eq(1), -100)
        output = copy(input_ids=batch["net_input"]["src_tokens"], labels=labels, output_logits=not left)
        assert (output.logits is None) == left
        output.loss.backward()
        torch.testing.assert_close(output.loss, loss / words, rtol=1e-10, atol=1e-10)
        assert output.losses.keys() == log.keys() & {"nll_loss", "bow_loss", "bca_loss"}
        for name, value in output.losses.items():
            if name == "nll_loss":
                expected = log[name] / words / torch.tensor(2.0).double().log()
            else:
                expected = log[name] / log[name.replace("loss", "count")]
            torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)
        ours = dict(copy.named_parameters())
        theirs = dict(model.named_parameters())
        assert ours.keys() == theirs.keys()
        for name, parameter in theirs.items():
            torch.testing.assert_close(ours[name].grad, parameter.grad, rtol=1e-10, atol=1e-10, msg=name)


def test_the_presets_are_the_architectures_of_the_plugin():
    transformers = {name for name in ARCHITECTURES if issubclass(ARCH_MODEL_REGISTRY[name], CapsuleTransformerModel)}
    assert transformers == {name for name in PRESETS if not name.startswith("transformer")}
    for name in transformers:
        theirs, ours = MODEL_DATACLASS_REGISTRY[name](), CapsuleConfig.preset(name)
        for option in CapsuleConfig.__dataclass_fields__.keys() & vars(theirs).keys() - {"encoder_routing_layers"}:
            value = getattr(theirs, option)
            if value is not None and option not in ("activation", "label_smoothing"):
                assert getattr(ours, option) == value, (name, option)


def test_a_fresh_model_starts_with_the_distributions_of_fairseq():
    shape = {"decoder_input_dim": 24, "decoder_output_dim": 32, "decoder_learned_pos": True}
    shape |= {"encoder_embed_dim": 32, "decoder_embed_dim": 40, "decoder_attention_heads": 5}
    mechanisms = {"past_future": "gdr", "guided_heads": "both", "global_representation": "capsule"}
    model = build("capsule_transformer", {**shape, **mechanisms}, noise=0)
    torch.manual_seed(5)
    copy = type(exported(model))(exported(model).config)
    ours, theirs = dict(copy.named_parameters()), dict(model.named_parameters())
    assert ours.keys() == theirs.keys()
    for name, parameter in theirs.items():
        if parameter.numel() < 8 or parameter.eq(parameter.flatten()[0]).all():
            assert torch.equal(ours[name], parameter), name
        else:
            uncertain = 6 / parameter.numel() ** 0.5
            assert abs(ours[name].mean() - parameter.mean()) < uncertain * parameter.std(), name
            assert abs(ours[name].std() / parameter.std() - 1) < uncertain, name
            if "embed" not in name and "output_projection" not in name:  # uniform: the bound
                assert abs(ours[name].abs().max() / parameter.abs().max() - 1) < 0.5, name
    for name in ("encoder.embed_tokens.weight", "decoder.embed_positions.weight"):
        assert not ours[name][1].any() and ours[name][2].any()
