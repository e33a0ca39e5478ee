"""The exported model computes the logits of fairseq's, for every architecture and option, also step by step."""

import pytest
import torch
from fairseq.data.language_pair_dataset import collate

from tests.huggingface.models import (
    ROUTED,
    SENTENCES,
    TRANSFORMERS,
    inputs_of,
    step_by_step,
    use_the_precision_of_the_model,
)
from tests.libraries import library
from tests.zoo import OFF, PLAIN, build, case_name, logits_of, make_batch

library("transformers")
from transformers import AutoModelForSeq2SeqLM  # noqa: E402
from transformers.cache_utils import DynamicCache, EncoderDecoderCache  # noqa: E402
from transformers.modeling_outputs import BaseModelOutput  # noqa: E402

from capsule_routing.errors import UserError  # noqa: E402
from fairseq_capsule_lab.export.to_transformers import exported, refusal  # noqa: E402


@pytest.fixture(autouse=True)
def precise(monkeypatch):
    use_the_precision_of_the_model(monkeypatch)
    with torch.no_grad():
        yield


@pytest.mark.parametrize("arch, options", TRANSFORMERS, ids=case_name)
def test_logits_are_those_of_fairseq_also_step_by_step(arch, options):
    model = build(arch, options).double()
    assert refusal(model) is None
    copy = exported(model)
    for left in (True, False):  # padding of the source
        batch = make_batch(SENTENCES, left_pad_source=left, pad_to=14)
        inputs, words = inputs_of(batch)
        expected = logits_of(model, batch)[words]
        assert expected.abs().max() > 0.1
        for logits in (copy(**inputs, use_cache=False).logits, step_by_step(copy, **inputs)):
            assert logits.dtype == torch.float64
            assert (logits[words] - expected).abs().max() < 1e-9


@pytest.mark.parametrize("arch, options", ROUTED, ids=case_name)
def test_a_cache_follows_rows_of_other_sentences_if_the_encoder_output_does(arch, options):
    copy = exported(build(arch, options).double())
    inputs, _ = inputs_of(make_batch(SENTENCES))
    order = torch.tensor([2, 0, 0, 3, 1, 2])
    first, rest = inputs["decoder_input_ids"].split((4, 6), dim=1)
    output = copy(input_ids=inputs["input_ids"], decoder_input_ids=first, use_cache=True)
    output.cache.reorder_cache(order)
    encoded = copy.encoder(inputs["input_ids"][order])
    continued = copy(encoder_outputs=encoded, decoder_input_ids=rest[order], cache=output.cache).logits
    whole = copy(**{name: value[order] for name, value in inputs.items()}, use_cache=False).logits
    assert (whole[:, 4:] - continued).abs().max() < 1e-9


@pytest.mark.parametrize("arch, options", ROUTED[:2], ids=case_name)
def test_rows_of_a_cache_can_be_repeated(arch, options):
    copy = exported(build(arch, options).double())
    inputs, _ = inputs_of(make_batch(SENTENCES))
    cache = copy(**inputs, use_cache=True).cache
    for part in (cache.self_attention_cache, cache.cross_attention_cache):
        part.batch_repeat_interleave(2)
    next_tokens = torch.arange(4, 12).unsqueeze(1)
    twice = {name: value.repeat_interleave(2, dim=0) for name, value in inputs.items()}
    continued = copy(input_ids=twice["input_ids"], decoder_input_ids=next_tokens, cache=cache).logits
    twice["decoder_input_ids"] = torch.cat([twice["decoder_input_ids"], next_tokens], dim=1)
    assert (copy(**twice, use_cache=False).logits[:, -1:] - continued).abs().max() < 1e-9


@pytest.mark.parametrize("arch, options", ROUTED, ids=case_name)
def test_a_cache_keeps_chosen_rows_and_can_be_emptied(arch, options):
    copy = exported(build(arch, options).double())
    inputs, _ = inputs_of(make_batch(SENTENCES))
    chosen = torch.tensor([2, 0])
    rows = {name: value[chosen] for name, value in inputs.items()}
    cache = copy(**inputs, use_cache=True).cache
    for part in (cache.self_attention_cache, cache.cross_attention_cache):
        part.batch_select_indices(chosen)
    next_tokens = torch.tensor([[4], [5]])
    continued = copy(input_ids=rows["input_ids"], decoder_input_ids=next_tokens, cache=cache).logits
    tokens = torch.cat([rows["decoder_input_ids"], next_tokens], dim=1)
    whole = copy(input_ids=rows["input_ids"], decoder_input_ids=tokens, use_cache=False).logits
    assert (whole[:, -1:] - continued).abs().max() < 1e-9
    cache.reset()
    assert (copy(**rows, cache=cache).logits - whole[:, :-1]).abs().max() < 1e-9


@pytest.mark.parametrize("arch, options", ROUTED, ids=case_name)
def test_embeddings_of_words_give_the_logits_of_the_words_and_gradients(arch, options):
    copy = exported(build(arch, options).double())
    inputs, words = inputs_of(make_batch(SENTENCES))
    embedded = {
        "inputs_embeds": copy.get_input_embeddings()(inputs["input_ids"]).requires_grad_(),
        "decoder_inputs_embeds": copy.get_decoder().embed_tokens(inputs["decoder_input_ids"]).requires_grad_(),
    }
    with torch.enable_grad():
        logits = copy(**embedded, attention_mask=inputs["input_ids"].ne(1).long(), use_cache=False).logits
        logits[words].logsumexp(-1).sum().backward()
    assert (logits - copy(**inputs, use_cache=False).logits)[words].abs().max() < 1e-9
    real = inputs["input_ids"].ne(1), words
    for value, places in zip(embedded.values(), real):
        assert value.grad[places].abs().sum(-1).min() > 0 and not value.grad[~places].any()
    whole = inputs["input_ids"].ne(1).all(1)  # without a mask no word is padding
    output = copy(inputs_embeds=embedded["inputs_embeds"][whole], decoder_input_ids=inputs["decoder_input_ids"][whole])
    assert (logits[whole] - output.logits)[words[whole]].abs().max() < 1e-9


@pytest.mark.parametrize("arch, options", ROUTED, ids=case_name)
def test_targets_may_be_padded_on_the_left(arch, options):
    """fairseq recognises padding by its number. Here the mask has it, also of the tokens in the cache."""
    model = build(arch, options).double()
    copy = exported(model)
    batch = collate(SENTENCES, pad_idx=1, eos_idx=2, left_pad_source=True, left_pad_target=True)
    inputs, words = inputs_of(batch)
    mask = inputs["decoder_input_ids"].ne(1).long()
    expected = logits_of(model, batch)
    logits = copy(**inputs, decoder_attention_mask=mask, use_cache=False).logits
    assert (logits - expected)[words].abs().max() < 1e-9
    first, rest = inputs["decoder_input_ids"].split((6, words.size(1) - 6), dim=1)
    output = copy(inputs["input_ids"], decoder_input_ids=first, decoder_attention_mask=mask[:, :6])
    continued = copy(inputs["input_ids"], decoder_input_ids=rest, decoder_attention_mask=mask, cache=output.cache)
    assert (torch.cat([output.logits, continued.logits], dim=1) - expected)[words].abs().max() < 1e-9


@pytest.mark.parametrize("share", [{}, {"share_decoder_input_output_embed": True}, {"share_all_embeddings": True}])
def test_a_saved_model_is_the_same_and_has_equal_embeddings_once(tmp_path, share):
    copy = exported(build("capsule_transformer", {"past_future": "gdr", "global_representation": "capsule", **share}))
    copy.save_pretrained(tmp_path)
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert type(loaded) is type(copy)
    state = copy.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in loaded.state_dict().items())
    stored = sum(parameter.numel() for parameter in copy.parameters()) * 4
    assert stored < (tmp_path / "model.safetensors").stat().st_size < stored + 30_000  # and the names
    inputs, _ = inputs_of(make_batch(SENTENCES))
    assert (loaded(**inputs).logits - copy(**inputs).logits).abs().max() < 1e-5


def test_attentions_and_states_are_returned_on_request():
    copy = exported(build("gret_transformer_base"))
    inputs, _ = inputs_of(make_batch(SENTENCES))
    assert copy(**inputs).cross_attentions is None
    output = copy(**inputs, output_attentions=True, output_hidden_states=True, use_cache=False)
    rows, length = inputs["decoder_input_ids"].shape
    source = inputs["input_ids"].size(1)
    assert [weights.shape for weights in output.cross_attentions] == [(rows, 4, length, source)] * 2
    assert len(output.encoder_attentions) == len(output.decoder_attentions) == 2
    assert len(output.encoder_hidden_states) == len(output.decoder_hidden_states) == 3
    assert torch.equal(output.encoder_hidden_states[-1], output.encoder_last_hidden_state)


def test_outputs_of_an_encoder_are_taken_in_every_form_and_their_mask_too():
    for arch, options in [(PLAIN, OFF[PLAIN][0]), *ROUTED]:
        copy = exported(build(arch, options).double())
        inputs, words = inputs_of(make_batch(SENTENCES))
        encoded, decoder_input_ids = copy.encoder(inputs["input_ids"]), inputs["decoder_input_ids"]
        expected = copy(**inputs).logits
        mask = inputs["input_ids"].ne(1).long()
        forms = [(encoded, None), (encoded, mask), (encoded.to_tuple(), mask), (encoded.to_tuple(), None)]
        if copy.config.global_representation == "none":
            forms.append((BaseModelOutput(encoded.last_hidden_state), mask))
        for given, attention_mask in forms:
            output = copy(attention_mask=attention_mask, decoder_input_ids=decoder_input_ids, encoder_outputs=given)
            assert (output.logits - expected)[words].abs().max() < 1e-9
        mask[:, -3] = 0  # another mask is another result
        output = copy(attention_mask=mask, decoder_input_ids=decoder_input_ids, encoder_outputs=encoded)
        assert (output.logits - expected)[words].abs().max() > 1e-6


def test_what_the_model_cannot_compute_is_refused():
    copy = exported(build("gret_transformer_base"))
    inputs, _ = inputs_of(make_batch(SENTENCES))
    states = copy.encoder(inputs["input_ids"]).last_hidden_state
    with pytest.raises(ValueError, match="encoder_outputs must have the vector of the sentence"):
        copy(decoder_input_ids=inputs["decoder_input_ids"], encoder_outputs=BaseModelOutput(states))
    for arch in ("capsule_transformer", "gdr_transformer_base"):
        copy = exported(build(arch))
        with pytest.raises(TypeError, match="this model needs a cache of its configuration"):
            copy(**inputs, cache=EncoderDecoderCache(DynamicCache(), DynamicCache()))
        cache = EncoderDecoderCache(DynamicCache(config=copy.config), DynamicCache(config=copy.config))
        assert (copy(**inputs, cache=cache).logits - copy(**inputs).logits).abs().max() < 1e-5
        with pytest.raises(UserError, match="cache_implementation static cannot keep what routing needs"):
            copy.generate(inputs["input_ids"], cache_implementation="static", max_new_tokens=3)


def test_precisions_below_float32_are_close():
    model = build("capsule_transformer", {"past_future": "gdr", "global_representation": "capsule"})
    inputs, words = inputs_of(make_batch(SENTENCES))
    expected = exported(model)(**inputs).logits
    half = exported(model).bfloat16()(**inputs).logits
    assert half.dtype == torch.bfloat16
    assert ((half.float() - expected)[words].abs().mean() / expected.abs().mean()) < 0.05
