"""Pretrained translation models of transformers start ours with equal logits. These tests also run without fairseq.

No weights are fetched: the models are random ones of each class.
"""

import logging

import pytest
import torch

from capsule_routing.errors import UserError
from tests.libraries import library

transformers = library("transformers")
from transformers import AutoModelForSeq2SeqLM  # noqa: E402

from capsule_routing.huggingface import CapsuleForConditionalGeneration  # noqa: E402

SIZES = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 20}
SIZES |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_position_embeddings": 40}
MARIAN = {"vocab_size": 44, "pad_token_id": 43, "eos_token_id": 0, "decoder_start_token_id": 43}
MARIAN |= {"scale_embedding": True, "activation_function": "swish", "forced_eos_token_id": 0}
TWO = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 50}
LANGUAGES = {"langs": ["en", "de"], "src_vocab_size": 50, "tgt_vocab_size": 44}
ORIGINALS = {
    "FSMT": ("FSMTForConditionalGeneration", "FSMTConfig", LANGUAGES),
    "Marian": ("MarianMTModel", "MarianConfig", MARIAN),
    "Marian of two dictionaries": ("MarianMTModel", "MarianConfig", {**MARIAN, **TWO}),
    "M2M-100, NLLB-200": ("M2M100ForConditionalGeneration", "M2M100Config", {"vocab_size": 44}),
    "BART": ("BartForConditionalGeneration", "BartConfig", {"vocab_size": 44}),
    "mBART-50": ("MBartForConditionalGeneration", "MBartConfig", {"vocab_size": 44, "decoder_start_token_id": 2}),
}
every_class = pytest.mark.parametrize("name", ORIGINALS)
GDR = {"past_future": "gdr", "guided_heads": "both"}


def build(name, **further):
    model_class, config_class, options = ORIGINALS[name]
    torch.manual_seed(1)
    config = getattr(transformers, config_class)(**{**SIZES, **options, **further})
    model = getattr(transformers, model_class)(config).eval()
    with torch.no_grad():
        for place, parameter in model.named_parameters():
            if "embed_positions" not in place or "BART" in name:  # the others are computed, and not saved
                parameter.add_(0.1 * torch.randn_like(parameter))
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    return model


def batch(model, left):
    pad, start = model.config.pad_token_id, model.config.decoder_start_token_id
    second = [pad, pad, 9, 10, 2] if left else [9, 10, 2, pad, pad]
    source = torch.tensor([[5, 6, 7, 8, 2], second])
    target = torch.tensor([[start, 15, 16, 17], [start, 18, 19, 20]])
    return {"input_ids": source, "attention_mask": source.ne(pad).long(), "decoder_input_ids": target}


@every_class
@pytest.mark.parametrize("mechanisms", [{}, GDR, {"global_representation": "capsule", "global_capsules": 4}], ids=str)
def test_logits_and_translations_are_those_of_the_original(name, mechanisms, tmp_path):
    original = build(name)
    model = CapsuleForConditionalGeneration.from_pretrained_translation(original, **mechanisms).eval()
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    searched = {"num_beams": 4, "max_new_tokens": 8, "return_dict_in_generate": True, "output_scores": True}
    for left in (False, True):
        inputs = batch(original, left)
        expected = original(**inputs, use_cache=False).logits
        for ours in (model, loaded):
            assert (ours(**inputs).logits - expected).abs().max() < 1e-5
        first = ours(**{**inputs, "decoder_input_ids": inputs["decoder_input_ids"][:, :2]}, use_cache=True)
        rest = ours(**{**inputs, "decoder_input_ids": inputs["decoder_input_ids"][:, 2:]}, cache=first.cache)
        assert (torch.cat([first.logits, rest.logits], dim=1) - expected).abs().max() < 1e-5
        source = {side: inputs[side] for side in ("input_ids", "attention_mask")}
        for options in ({}, {"forced_bos_token_id": 21, "repetition_penalty": 1.3}):
            theirs = original.generate(**source, **searched, **options)
            found = loaded.generate(**source, **searched, **options)
            assert found.sequences.tolist() == theirs.sequences.tolist()
            assert (found.sequences_scores - theirs.sequences_scores).abs().max() < 1e-5


@every_class
def test_it_trains_and_is_resized(name, tmp_path):
    original = build(name)
    original.save_pretrained(tmp_path / "original")
    model = CapsuleForConditionalGeneration.from_pretrained_translation(tmp_path / "original", **GDR).train()
    end = original.config.eos_token_id
    inputs = batch(original, left=False)
    labels = torch.tensor([[15, 16, 17, end], [18, 19, end, -100]])
    start = original.config.decoder_start_token_id
    assert model.prepare_decoder_input_ids_from_labels(labels)[0].tolist() == [start, 15, 16, 17]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(20):
        output = model(inputs["input_ids"], inputs["attention_mask"], labels=labels)
        optimizer.zero_grad()
        output.loss.backward()
        optimizer.step()
        losses.append(output.loss.item())
    assert losses[-1] < 0.5 * losses[0] and output.losses.keys() == {"nll_loss", "bow_loss", "bca_loss"}
    number = model.config.vocab_size + 4
    resize = model.resize_token_embeddings
    if model.config.source_vocab_size != model.config.vocab_size:
        resize = model.resize_decoder_token_embeddings
    resize(number)
    model.save_pretrained(tmp_path / "resized")
    loaded = CapsuleForConditionalGeneration.from_pretrained(tmp_path / "resized")
    assert loaded(**inputs).logits.size(-1) == number
    assert (loaded(**inputs).logits - model.eval()(**inputs).logits).abs().max() < 1e-5


def test_a_prefix_that_starts_with_padding_is_continued_as_alone():
    """In Marian the start is `<pad>`. There a prefix in a padded batch differs from the prefix alone."""
    model = CapsuleForConditionalGeneration.from_pretrained_translation(build("Marian"), padding_has_positions=False)
    source = torch.tensor([[5, 6, 7, 2]])
    prefixes, mask = torch.tensor([[43, 43, 43, 9], [43, 8, 7, 6]]), torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    options = {"max_new_tokens": 5, "num_beams": 1}
    found = model.generate(source.expand(2, -1), decoder_input_ids=prefixes, decoder_attention_mask=mask, **options)
    alone = model.generate(source, decoder_input_ids=prefixes[:1, 2:], **options)
    assert found[0, 4:].tolist()[: alone.size(1) - 2] == alone[0, 2:].tolist()


def test_what_cannot_be_expressed_is_refused_and_what_is_dropped_is_named(caplog):
    start = CapsuleForConditionalGeneration.from_pretrained_translation
    with caplog.at_level(logging.WARNING):
        start(build("M2M-100, NLLB-200"))
    assert "encoder_layerdrop 0.05 is dropped" in caplog.text
    other = transformers.T5ForConditionalGeneration(
        transformers.T5Config(d_model=16, d_kv=4, d_ff=16, num_layers=1, num_heads=4, vocab_size=40)
    )
    with pytest.raises(UserError, match="a T5ForConditionalGeneration is no translation model of a known class"):
        start(other)
    with pytest.raises(UserError, match="decoder_start_token_id of the model is None"):
        start(build("mBART-50", decoder_start_token_id=None))
    with pytest.raises(UserError, match="which must be 1, not 3"):
        start(build("BART", pad_token_id=3))
    model = build("BART")
    model.extra = torch.nn.Linear(2, 2)
    with pytest.raises(UserError, match="the parameter extra.weight of a BartForConditionalGeneration cannot be"):
        start(model)
