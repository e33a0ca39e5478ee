"""A model is quantised, exported, traced and compiled, in every system. These tests also run without fairseq."""

import copy

import pytest
import torch

from capsule_routing.errors import UserError
from tests.libraries import library

library("transformers")
from tests.huggingface.systems import (  # noqa: E402
    SYSTEMS,
    assert_close,
    batch,
    build,
    every_system,
    gradients,
    inputs_of,
)

SOURCES = batch()["input_ids"]


@pytest.fixture(autouse=True)
def forgotten_graphs():
    """torch compiles a function again for each model, and refuses after eight."""
    torch.compiler.reset()


@every_system
def test_linear_layers_can_be_quantised(system):
    model = build(**SYSTEMS[system]).eval()
    expected = model(**batch())
    quantised = torch.ao.quantization.quantize_dynamic(copy.deepcopy(model), {torch.nn.Linear}, torch.qint8)
    output = quantised(**batch())
    assert 0 < (output.logits - expected.logits).abs().mean() < 0.1 * expected.logits.abs().mean()


class LinearOnly(torch.Tensor):
    """A weight that nothing but a linear layer can read, as those of torchao."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is torch.nn.functional.linear:
            inputs, weight, *bias = args
            return function(inputs, weight.as_subclass(torch.Tensor), *bias)
        assert function.__name__ in ("__get__", "detach", "requires_grad_", "as_subclass"), function
        return super().__torch_function__(function, types, args, kwargs)


@every_system
def test_weights_of_another_class_are_read_by_their_layers_alone(system):
    model = build(**SYSTEMS[system], output_bias=True).double().eval()
    expected = model(**batch())
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.weight = torch.nn.Parameter(layer.weight.detach().as_subclass(LinearOnly))
    for options in ({}, {"output_logits": False}):
        assert_close(model(**batch(), **options).losses, expected.losses)


@every_system
def test_a_model_is_exported(system):
    model = build(**SYSTEMS[system]).double().eval()
    inputs = {**inputs_of(model), "use_cache": False}
    with torch.no_grad():
        expected = model(**inputs).logits
        exported = torch.export.export(model, (), inputs, strict=False).module()
        assert_close(exported(**inputs).logits, expected)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["selective", "everything"])
def test_a_model_is_exported_for_all_sizes(system):
    model = build(**SYSTEMS[system]).double().eval()
    inputs = inputs_of(model)
    shapes = {**dict.fromkeys(inputs, {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}), "use_cache": None}
    with torch.no_grad():
        whole = {**inputs, "use_cache": False}
        exported = torch.export.export(model, (), whole, strict=False, dynamic_shapes=shapes).module()
        for rows, words in ((3, 7), (2, 4), (2, 1)):
            given = {name: value[:rows, : words if "decoder" in name else 6] for name, value in inputs.items()}
            assert_close(exported(**given, use_cache=False).logits, model(**given, use_cache=False).logits)


@every_system
def test_logits_are_traced_for_all_sizes(system):
    """TorchScript takes no output of transformers, so a function returns the logits."""
    model = build(**SYSTEMS[system]).eval().requires_grad_(False)

    def logits(sources, mask, targets):
        return model(sources, mask, targets, use_cache=False).logits

    given = [(words, words.ne(1).long(), SOURCES[: len(words), :5]) for words in (SOURCES, SOURCES[1:, :6])]
    traced = torch.jit.trace(logits, given[0])
    for inputs in given:
        torch.testing.assert_close(traced(*inputs), logits(*inputs))
    with pytest.raises(UserError, match=r"torch\.jit\.script cannot read .*; trace its logits"):
        torch.jit.script(model)


@pytest.mark.slow
@every_system
def test_a_model_is_compiled_as_one_graph(system):
    model = build(**SYSTEMS[system]).double()
    for training in (False, True):
        model.train(training)
        expected = gradients(model, **batch())[1]
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        assert_close(gradients(compiled, **batch())[1], expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "inputs",
    [{**batch(), "use_cache": True}, {"input_ids": SOURCES, "decoder_input_ids": SOURCES}],
    ids=["labels", "none"],
)
def test_warnings_are_no_part_of_a_graph(inputs):
    model = build(**SYSTEMS["gdr"]).half().train()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert compiled(**inputs).logits.isfinite().all()
