"""The arrays of a single sentence equal those that the model computes in a padded batch."""

from argparse import Namespace
from unittest import mock

import numpy as np
import pytest
import torch
from fairseq.models import build_model
from torch.utils._python_dispatch import TorchDispatchMode

from capsule_routing.functions import routing
from capsule_routing.modules import CapsulePooling, global_representation
from fairseq_capsule.inspection import Sentence, gather_arrays
from tests.zoo import LENGTHS, SMALL, build, make_batch, make_sentences, make_task

SENTENCES = make_sentences(LENGTHS)
ALL_THREE = {"past_future": "gdr", "guided_heads": "both", "global_representation": "capsule"}


def gathered(model, sentence=SENTENCES[0]):
    source, target = sentence["source"], sentence["target"]
    words = [tuple(f"w{token}" for token in tokens.tolist()) for tokens in (source, target)]
    return gather_arrays(model, Sentence(source[None], target[None], *words))


class Forward:
    """A forward pass of all sentences in one batch, and the positions of the first sentence in it.

    Attributes:
        row: its row in the batch.
        source: the positions of its source words.
        inside: the same positions inside an LSTM encoder, which always pads on the right.
        steps: the positions of its target words.
        extra: the second output of the model, beside the logits.
    """

    def __init__(self, model, left_pad):
        batch = make_batch(SENTENCES, left_pad_source=left_pad)
        self.row = batch["id"].tolist().index(0)
        self.source = batch["net_input"]["src_tokens"][self.row].ne(1).nonzero().squeeze(1)
        self.inside = torch.arange(len(self.source))
        self.steps = torch.arange(len(SENTENCES[0]["target"]))
        with torch.no_grad():
            self.extra = model(**batch["net_input"])[1]


def axes(array):
    return list(array.axes)


@pytest.fixture
def couplings(monkeypatch):
    """The couplings of every iteration of every dynamic routing, in the order of computation."""
    seen = []
    plain = routing.masked_softmax

    def recorded(logits, dim, *options):
        coupling = plain(logits, dim, *options)
        if dim < 0:  # not in vertical routing
            seen.append(coupling)
        return coupling

    monkeypatch.setattr(routing, "masked_softmax", recorded)
    return seen


@pytest.mark.parametrize(
    "arch, options, left_pad",
    [
        ("gdr_transformer_base", {"past_future": "clf"}, True),
        ("gdr_transformer_base", {"past_future": "attn"}, True),
        ("gdr_transformer_base", {"redundant_capsules": 0, "guided_heads": "none"}, False),
        ("gdr_lstm", {}, True),
        ("gdr_lstm", {}, False),
        ("capsule_transformer", ALL_THREE, True),
    ],
)
def test_past_and_future_equal_those_of_the_batch(arch, options, left_pad):
    model = build(arch, options)
    forward = Forward(model, left_pad)
    arrays = gathered(model)
    routed = forward.extra["past_future"]
    shares = routed.assignment[forward.row][forward.steps][:, forward.source].numpy()
    name, other = "assignment", "past_future_attention"
    if options.get("past_future") == "attn":
        name, other = other, name
        np.testing.assert_allclose(arrays[name].values.sum(1), 1, rtol=1e-5)
    assert other not in arrays and axes(arrays[name]) == ["target", "source", "content"]
    assert arrays[name].axes["content"] == ("PAST", "FUTURE", "redundant")[: shares.shape[-1]]
    np.testing.assert_allclose(arrays[name].values, shares, atol=1e-5)
    heads = model.decoder.past_future.bow
    assert ("past_words" in arrays) == (heads is not None)
    if heads is not None:
        logits = heads["future"](routed.future[forward.row]) @ model.decoder.output_embeddings.T
        expected = logits.softmax(-1)[forward.steps].topk(10)
        np.testing.assert_allclose(
            arrays["future_probabilities"].values, expected.values.detach().numpy(), rtol=1e-4, atol=1e-6
        )
        assert arrays["future_words"].values[2, 0] == model.decoder.dictionary[expected.indices[2, 0]]


@pytest.mark.parametrize(
    "arch, options, left_pad",
    [
        ("gret_transformer_base", {"global_aggregation": "none", "global_iterations": 2}, True),
        ("gret_transformer_base", {"global_pooling": "mean", "encoder_normalize_before": True}, True),
        ("capsule_transformer", ALL_THREE, False),
    ],
)
def test_the_global_representation_equals_that_of_the_batch(arch, options, left_pad, couplings, monkeypatch):
    model = build(arch, options)
    gates, pooled = [], []
    together = CapsulePooling.together

    def recorded(*args):
        vectors = together(*args)
        pooled.extend(vectors)  # one for each layer
        return vectors

    monkeypatch.setattr(CapsulePooling, "together", staticmethod(recorded))
    model.decoder.context_gate.register_forward_hook(lambda gate, args, output: gates.append((*args, output)))
    forward = Forward(model, left_pad)
    poolings = model.encoder.global_representation.poolings
    iterations = poolings[0].iterations
    own = torch.stack([coupling[:, forward.row, forward.source] for coupling in couplings[:iterations]], dim=1)
    arrays = gathered(model)
    coupling = arrays["global_coupling"]
    assert axes(coupling) == ["layer", "iteration", "source", "capsule"]
    assert coupling.axes["layer"] == (("2",) if len(poolings) == 1 else ("1", "2"))
    np.testing.assert_allclose(coupling.values, own.numpy(), atol=1e-5)

    state, vector, output = (part[forward.row] for part in gates[0])
    gate = arrays["global_gate"].values
    taken = (output - state)[forward.steps].numpy()
    np.testing.assert_allclose(gate * vector.numpy(), taken, atol=1e-5)
    np.testing.assert_allclose(arrays["global_gate_mean"].values, gate.mean(1), atol=1e-6)
    if "global_pooling" in options:
        assert "global_weights" not in arrays  # mean pooling has no weights
        return
    # The pooled vectors were computed with these weights.
    for number, (pooling, vectors) in enumerate(zip(poolings, pooled)):
        layer = torch.tensor(arrays["global_weights"].values[number])
        capsules = capsules_of(model, number)
        np.testing.assert_allclose(
            pooling.output(layer @ capsules).detach(), vectors[forward.row].numpy(), rtol=1e-4, atol=1e-5
        )


def capsules_of(model, number):
    """Return the capsules `[K, d_c]` of the first sentence, by the pooling of that layer."""
    recorded_capsules = []
    weights = global_representation._weights  # called for all layers

    def recorded(poolings, capsules):
        recorded_capsules.append(capsules[number, 0])
        return weights(poolings, capsules)

    with torch.no_grad(), mock.patch.object(global_representation, "_weights", recorded):
        model.encoder(SENTENCES[0]["source"][None], torch.tensor([len(SENTENCES[0]["source"])]))
    return recorded_capsules[0]


@pytest.mark.parametrize(
    "options, left_pad",
    [
        ({}, True),
        ({"aggregation_weights": "shared", "aggregation_scoring": "votes"}, False),
        ({"leaky_softmax": True, "aggregation_iterations": 4}, True),
        ({"aggregation_iterations": 1}, True),
    ],
)
def test_capsules_at_each_iteration_equal_those_of_the_batch(options, left_pad, couplings):
    model = build("capsnmt", options)
    forward = Forward(model, left_pad)
    own = torch.stack([coupling[forward.row][forward.inside] for coupling in couplings])
    coupling = gathered(model)["capsule_coupling"]
    assert axes(coupling) == ["iteration", "source", "capsule"]
    assert coupling.values.shape[0] == options.get("aggregation_iterations", 3)
    np.testing.assert_allclose(coupling.values, own.numpy(), atol=1e-5)


def test_early_iterations_with_shared_weights_equal_a_model_with_fewer_iterations():
    options = {"aggregation_weights": "shared", "aggregation_scoring": "votes"}
    model, fewer = (build("capsnmt", {**options, "aggregation_iterations": count}) for count in (3, 2))
    fewer.load_state_dict(model.state_dict())
    source = SENTENCES[0]["source"][None]
    assert torch.equal(model.encoder.aggregate(source, 2).capsules, fewer.encoder.aggregate(source).capsules)


@pytest.mark.parametrize("left_pad", [True, False])
def test_attention_equals_that_of_the_batch(left_pad):
    model = build("capsule_transformer", {**ALL_THREE, "encoder_routing_layers": "2"})
    forward = Forward(model, left_pad)
    arrays = gathered(model)
    assert arrays["encoder_vertical"].axes["layer"] == ("2",)
    assert arrays["encoder_attention_before"].axes["layer"] == ("1", "2")
    for name in ("encoder_attention", "decoder_attention", "cross_attention"):
        np.testing.assert_allclose(arrays[name].values.sum(-1), 1, rtol=1e-5)
    mean = forward.extra["attn"][0][forward.row][forward.steps][:, forward.source]
    np.testing.assert_allclose(arrays["cross_attention"].values[-1].mean(0), mean, atol=1e-5)
    assert arrays["decoder_attention"].axes["key"] == ("w2", *arrays["cross_attention"].axes["target"][:-1])


@pytest.mark.parametrize(
    "arch, names",
    [
        ("transformer", ["cross_attention", "decoder_attention", "encoder_attention"]),
        ("lstm", ["cross_attention"]),
        ("simple_aggregation_base", []),
        ("capsnmt", ["capsule_coupling"]),
        ("capsule_lstm", ["cross_attention"]),
    ],
)
def test_a_model_has_the_expected_arrays(arch, names):
    plain = {"transformer": SMALL, "lstm": {"criterion": None}}
    options = plain.get(arch)
    model = build_model(Namespace(arch=arch, **options), make_task()) if options else build(arch)
    model.train()
    assert sorted(gathered(model)) == names and model.training


class Counted(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.operations += 1
        return function(*args, **(kwargs or {}))


def operations(model):
    batch = make_batch(SENTENCES)["net_input"]
    with Counted() as counted:
        model(**batch)[0].sum().backward()
    model.zero_grad()
    return counted.operations


def contents(model):
    """Return all attributes of the modules except parameters and submodules. Hooks are included."""
    return {
        name: {key: value for key, value in vars(module).items() if key not in ("_parameters", "_modules")}
        for name, module in model.named_modules()
    }


@pytest.mark.parametrize("arch, options", [("capsule_transformer", ALL_THREE), ("capsnmt", {}), ("gdr_lstm", {})])
def test_inspection_leaves_no_state_in_the_model(arch, options):
    model = build(arch, options)
    operations(model)  # fairseq's decoder caches its mask at the first call
    before = operations(model)
    held = str(contents(model))
    gathered(model)
    assert operations(model) == before and str(contents(model)) == held
