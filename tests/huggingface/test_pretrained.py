"""Pretrained translation models of transformers start ours with equal logits. These tests also run without fairseq.

No weights are fetched: the models are random ones of each class. Further tests show what transformers 5.24 does to such
models (docs/libraries.md), and that ours does the same or refuses.
"""

import json
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
SOURCE = torch.tensor([[5, 6, 7, 8, 2]])


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


def test_an_original_in_half_precision_is_read_in_float32(tmp_path):
    build("BART").half().save_pretrained(tmp_path)
    model = CapsuleForConditionalGeneration.from_pretrained_translation(tmp_path, **GDR)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


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


# --- what transformers does


def both(name):
    original = build(name)
    return original, CapsuleForConditionalGeneration.from_pretrained_translation(original).eval()


@every_class
def test_a_forced_first_word_counts_in_the_length_of_a_score_and_a_prefix_does_not(name):
    """FSMT looks ahead in a prefix, so there only ours is tested."""
    options = {"num_beams": 2, "return_dict_in_generate": True, "output_scores": True}
    for model in both(name)[name == "FSMT" :]:
        prefix = torch.tensor([[model.config.decoder_start_token_id, 21]])
        forced = model.generate(SOURCE, forced_bos_token_id=21, max_new_tokens=6, min_new_tokens=6, **options)
        after = model.generate(SOURCE, decoder_input_ids=prefix, max_new_tokens=5, min_new_tokens=5, **options)
        assert forced.sequences.tolist() == after.sequences.tolist()
        torch.testing.assert_close(6 * forced.sequences_scores, 5 * after.sequences_scores)


@every_class
def test_the_penalty_of_repetitions_hits_the_token_that_starts_a_translation(name):
    """That is `</s>`, so translations get longer; only in Marian it is `<pad>`."""
    options = {"num_beams": 1, "max_new_tokens": 3, "return_dict_in_generate": True}
    for model in both(name):
        found = model.generate(SOURCE, repetition_penalty=2.0, output_scores=True, output_logits=True, **options)
        changed = (found.scores[0] != found.logits[0])[0].nonzero().flatten().tolist()
        assert changed == [model.config.decoder_start_token_id]
        assert (changed == [model.config.eos_token_id]) == ("Marian" not in name)


def test_without_labels_bart_translates_its_source_and_ours_refuses():
    """A label smoother of the Trainer takes the labels out."""
    original, model = both("BART")
    shifted = torch.cat([torch.tensor([[2]]), SOURCE[:, :-1]], dim=1)
    assert torch.equal(original(SOURCE).logits, original(SOURCE, decoder_input_ids=shifted).logits)
    with pytest.raises(ValueError, match="give decoder_input_ids"):
        model(SOURCE)


def test_a_table_that_a_folder_lacks_is_random_and_ours_refuses(tmp_path):
    """A model with shared embeddings is saved with one table, but its configuration says that it has several."""
    original = build("BART")
    original.save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**config, "tie_word_embeddings": False}), encoding="utf-8")
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert not torch.equal(loaded.lm_head.weight, original.lm_head.weight)
    with pytest.raises(
        UserError, match=r"has no lm_head\.weight.*; tie_word_embeddings of its config.json may be wrong"
    ):
        CapsuleForConditionalGeneration.from_pretrained_translation(tmp_path)


def test_tables_of_a_baseline_are_separated_with_their_words(tmp_path):
    baseline = CapsuleForConditionalGeneration.from_pretrained_translation(build("BART")).eval()
    baseline.save_pretrained(tmp_path)
    model = CapsuleForConditionalGeneration.from_baseline(
        tmp_path, share_all_embeddings=False, share_decoder_input_output_embed=False
    ).eval()
    inputs = batch(baseline, left=False)
    assert torch.equal(model(**inputs).logits, baseline(**inputs).logits)
    assert model.decoder.embed_tokens.weight is not model.encoder.embed_tokens.weight


def test_a_tokenizer_takes_vocab_and_ignores_vocab_file(tmp_path):
    words = {word: number for number, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b"])}
    (tmp_path / "vocab.json").write_text(json.dumps(words), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    files = {"vocab_file": str(tmp_path / "vocab.json"), "merges_file": str(tmp_path / "merges.txt")}
    ignored = transformers.BartTokenizer(**files)
    assert not {"a", "b"} & ignored.get_vocab().keys() and "ab" not in ignored.decode(ignored("ab").input_ids)
    for tokenizer in (
        transformers.BartTokenizer(vocab=words, merges=[]),
        transformers.BartTokenizer.from_pretrained(tmp_path),
    ):
        assert tokenizer("ab").input_ids == [0, 5, 6, 2]


def test_language_words_of_own_files_stay_in_a_text_unless_all_are_named(tmp_path):
    library("sentencepiece")
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    pieces = str(tmp_path / "pieces.model")
    with open(pieces, "wb") as file:
        SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c", "b c a"] * 9), model_writer=file, vocab_size=20, hard_vocab_limit=False
        )
    learned = SentencePieceProcessor(model_file=pieces)
    words = ["<s>", "<pad>", "</s>", "<unk>", *(learned.id_to_piece(number) for number in range(3, len(learned)))]
    vocabulary = tmp_path / "vocab.json"
    vocabulary.write_text(json.dumps({word: number for number, word in enumerate(words)}), encoding="utf-8")
    plain = transformers.M2M100Tokenizer(str(vocabulary), pieces, src_lang="en")
    languages = [*plain.lang_token_to_id]
    named = transformers.M2M100Tokenizer(str(vocabulary), pieces, src_lang="en", extra_special_tokens=languages)
    ids = plain("a b").input_ids
    assert ids[0] == plain.get_lang_id("en") and named("a b").input_ids == ids
    assert plain.decode(ids, skip_special_tokens=True) == "__en__ a b"
    assert named.decode(ids, skip_special_tokens=True) == "a b"
