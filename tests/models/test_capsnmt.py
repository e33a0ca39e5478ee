"""CapsNMT as a fairseq model: refused options, coupling and sizes."""

from argparse import Namespace

import pytest
import torch
from fairseq.models import MODEL_DATACLASS_REGISTRY, build_model
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from omegaconf import OmegaConf

from capsule_routing.errors import UserError
from tests.modules.test_lstm import cell_of, norm_of
from tests.references import assert_same, stacked, wang2019
from tests.zoo import LENGTHS, build, count_parameters, make_batch, make_sentences, make_task


def test_an_ensemble_with_attention_scores_and_translates():
    """fairseq averages the attention of the models that have it."""
    task = make_task()
    models = [build(arch, task=task) for arch in ("capsule_transformer", "capsnmt")]
    batch = make_batch(make_sentences(LENGTHS))
    padding = task.target_dictionary.pad()
    scored = SequenceScorer(task.target_dictionary).generate(models, batch)
    probabilities = sum(model.get_normalized_probs(model(**batch["net_input"]), False) for model in models) / 2
    for row, [hypothesis] in enumerate(scored):
        target = batch["target"][row][batch["target"][row] != padding]
        expected = probabilities[row, : len(target)].gather(1, target[:, None]).log().mean()
        torch.testing.assert_close(hypothesis["score"], expected)
    translated = SequenceGenerator(models, task.target_dictionary, beam_size=2, max_len_b=4).generate(models, batch)
    assert [len(hypotheses) for hypotheses in translated] == [2] * len(LENGTHS)


def test_dropout_is_kept_while_generating_if_the_option_is_set():
    batch = make_batch(make_sentences(LENGTHS))["net_input"]
    for names, differs in ((None, True), (["CapsNMTDecoder"], True), (["Another"], False)):
        model = build("capsnmt", {"dropout": 0.5}).eval()
        model.prepare_for_inference_(
            OmegaConf.create({"generation": {"retain_dropout": True, "retain_dropout_modules": names}})
        )
        assert torch.equal(model(**batch)[0], model(**batch)[0]) != differs


def test_embeddings_of_two_dictionaries_are_not_shared():
    task = make_task()
    task.tgt_dict = make_task(30).tgt_dict
    with pytest.raises(UserError, match="--share-all-embeddings needs a joined dictionary"):
        build_model(Namespace(arch="capsnmt", share_all_embeddings=True), task)


def test_another_number_of_iterations_needs_shared_weights():
    trained = build("capsnmt", {"aggregation_iterations": 3}).state_dict()
    shared = {"aggregation_weights": "shared"}
    for options in ({"aggregation_iterations": 5}, shared):
        with pytest.raises(RuntimeError, match="size mismatch for encoder.aggregation.vote_weight"):
            build("capsnmt", options).load_state_dict(trained)
    trained = build("capsnmt", {"aggregation_iterations": 3, **shared}).state_dict()
    build("capsnmt", {"aggregation_iterations": 5, **shared}).load_state_dict(trained)


@pytest.mark.parametrize("left_pad_source", [True, False])
def test_the_coupling_of_a_padded_sentence_is_at_its_words(left_pad_source):
    model = build("capsnmt")
    sentences = make_sentences(LENGTHS)
    batch = make_batch(sentences, left_pad_source)
    tokens = batch["net_input"]["src_tokens"]
    with torch.no_grad():
        coupling = model.encoder.aggregate(tokens).coupling
        assert not coupling[tokens.eq(1)].any()
        for row, identity in enumerate(batch["id"].tolist()):
            alone = model.encoder.aggregate(sentences[identity]["source"][None]).coupling[0]
            torch.testing.assert_close(coupling[row][tokens[row].ne(1)], alone, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(alone.sum(-1), torch.ones(len(alone)))


@pytest.mark.parametrize(
    "arch, norms, context",
    [
        ("capsnmt", "both", "attention"),
        ("capsnmt", "after", "attention"),
        ("capsnmt", "both", "concat"),
        ("simple_aggregation_base", "after", "concat"),
    ],
)
def test_the_decoder_equals_the_loops(arch, norms, context):
    torch.manual_seed(1)
    options = {"decoder_norms": norms, "decoder_context": context, "aggregation_scale": 3.0}
    decoder = build(arch, options).decoder.double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.uniform_(-1, 1)  # the norms too, which start at 1 and 0
    number = 4 if arch.startswith("simple") else 6
    capsules = torch.randn(3, number, 32, dtype=torch.float64, requires_grad=True)
    tokens = torch.randint(4, 8, (3, 5))
    got = decoder.extract_features(tokens, {"encoder_out": [capsules.transpose(0, 1)]})[0]

    first = decoder.layers[0]
    cells = [cell_of(*getattr(layer, "cell", getattr(layer, "lstm", None)).parameters()) for layer in decoder.layers]
    norm_of_inputs = norm_of(first.input_norm) if norms == "both" else None
    want = []
    for of_sentence, words in zip(capsules, tokens):

        def attend(state, of_sentence=of_sentence):
            # The keys are those of the capsules before they are scaled.
            scale = decoder.capsule_scale
            weights = first.key.weight / scale, first.query.weight, first.vector
            return wang2019.additive_attention(of_sentence, state, *weights)

        def joined(_, of_sentence=of_sentence):
            return wang2019.concatenation(of_sentence, decoder.context.weight)

        added = attend if context == "attention" else joined
        norms_after = [norm_of(layer.norm) for layer in decoder.layers]
        want.append(wang2019.decoder(decoder.embed_tokens.weight[words], added, cells, norms_after, norm_of_inputs))
    assert_same([got], [stacked(want)], [capsules, *decoder.parameters()])


def count(arch, **options):
    return count_parameters(arch, 31_996, share_all_embeddings=True, **options)


def test_parameters_of_the_presets_are_as_computed():
    d, words = 512, 32000
    lstm = 8 * d * d + 8 * d + 2 * d  # one direction, with layer norm
    both_ways = 2 * (4 * (d // 2) * d + 4 * (d // 2) ** 2 + 8 * (d // 2)) + 2 * d
    aggregation = 3 * 6 * d * d + 2 * (d * d + d)
    attention = 2 * d * d + d
    assert count("capsnmt_base") == words * d + 4 * both_ways + aggregation + 3 * lstm + 2 * d + attention
    assert count("capsnmt_base", decoder_norms="after") == count("capsnmt_base") - 2 * d
    assert count("capsnmt_base", decoder_context="concat") == count("capsnmt_base") - attention + 6 * d * d
    assert count("simple_aggregation_base") == count("capsnmt_base") - aggregation
    tiny = MODEL_DATACLASS_REGISTRY["capsnmt_tiny"]()
    assert (tiny.encoder_embed_dim, tiny.encoder_layers, tiny.decoder_layers) == (128, 2, 2)
    assert MODEL_DATACLASS_REGISTRY["capsnmt_big"]().decoder_embed_dim == 1024
