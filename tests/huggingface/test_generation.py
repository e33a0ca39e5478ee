"""`generate()` finds the translations of fairseq's beam search, with a cache and without."""

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from tests.huggingface.models import ROUTED
from tests.libraries import library
from tests.zoo import OFF, PLAIN, build, case_name, make_batch, make_sentences, make_task

library("transformers")
from fairseq_capsule_lab.export.to_transformers import exported  # noqa: E402

LONGEST = 15  # words; some of the models do not end before
SENTENCES = make_sentences([(7, 1), (1, 1), (12, 1), (5, 1), (9, 1), (3, 1)])
CASES = [
    (PLAIN, {**OFF[PLAIN][0], "encoder_layers": 1, "decoder_layers": 3, "share_all_embeddings": True}),
    *ROUTED,
    ("capsule_transformer", {"encoder_layers": 3, "decoder_layers": 1}),
]


def build_ending(arch, options):
    """Build a model for which `</s>` is more probable than for a random one."""
    model = build(arch, options)
    bias = model.decoder.layers[-1].final_layer_norm.bias
    with torch.no_grad():
        bias.add_(torch.randn(32))
        model.decoder.output_projection.weight[2] += 1.5 * bias / bias.dot(bias)
    return model.eval()


@pytest.mark.parametrize("arch, options", CASES, ids=case_name)
def test_beam_search_finds_the_translations_of_fairseq(arch, options):
    task, model = make_task(), build_ending(arch, options)
    batch = make_batch(SENTENCES)
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=5, max_len_b=LONGEST)
    expected = [hypotheses[0] for hypotheses in generator.generate([model], batch)]
    lengths = {len(hypothesis["tokens"]) for hypothesis in expected}
    assert max(lengths) > 2
    copy, source = exported(model), batch["net_input"]["src_tokens"]
    scored = {"return_dict_in_generate": True, "output_scores": True}
    for use_cache in (True, False):
        found = copy.generate(source, max_new_tokens=LONGEST + 1, use_cache=use_cache, **scored)
        for hypothesis, tokens, score in zip(expected, found.sequences, found.sequences_scores):
            words = tokens[1 : 1 + len(hypothesis["tokens"])]
            assert words.tolist() == hypothesis["tokens"].tolist()
            assert tokens[1 + len(words) :].eq(1).all()
            assert abs(score - hypothesis["score"]) < 1e-4


def test_a_translation_ends_at_the_longest_target_as_in_fairseq():
    task, model = make_task(), build(PLAIN, {**OFF[PLAIN][0], "max_target_positions": 12}).eval()
    batch = make_batch(SENTENCES)
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=5)
    expected = [hypotheses[0]["tokens"] for hypotheses in generator.generate([model], batch)]
    assert max(len(tokens) for tokens in expected) == 12  # `</s>` counted
    for tokens, found in zip(expected, exported(model).generate(batch["net_input"]["src_tokens"])):
        assert found[1 : 1 + len(tokens)].tolist() == tokens.tolist()


def test_neither_padding_nor_an_empty_translation_is_generated():
    model = build(PLAIN, OFF[PLAIN][0])
    bias = model.decoder.layers[-1].final_layer_norm.bias
    with torch.no_grad():
        bias.add_(torch.randn(32))
        for special, logit in ((1, 100), (2, 50)):
            model.decoder.output_projection.weight[special] = logit * bias / bias.dot(bias)
    found = exported(model).generate(make_batch(SENTENCES)["net_input"]["src_tokens"], max_new_tokens=5, num_beams=1)
    assert found.size(1) == 3  # the start, a word and the end
    assert found[:, 1].gt(2).all() and found[:, 2].eq(2).all()


@pytest.mark.parametrize("arch, options", ROUTED, ids=case_name)
def test_a_cache_can_get_rows_of_other_sentences(arch, options):
    copy, source = exported(build(arch, options)), make_batch(SENTENCES)["net_input"]["src_tokens"]
    tokens, order = torch.randint(4, 40, (6, 3)), torch.tensor([4, 0, 0, 2])
    with torch.no_grad():
        cache = copy(source, decoder_input_ids=tokens[:, :2], use_cache=True).cache
        cache.reorder_cache(order)
        encoded = copy.encoder(source[order])
        step = copy(encoder_outputs=encoded, decoder_input_ids=tokens[order, 2:], cache=cache, use_cache=True).logits
        whole = copy(source[order], decoder_input_ids=tokens[order]).logits
    torch.testing.assert_close(step[:, -1], whole[:, -1], rtol=1e-4, atol=1e-5)
