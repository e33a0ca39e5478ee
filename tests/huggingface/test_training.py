"""Training with transformers alone. These tests also run where fairseq cannot be imported."""

import json
import logging
import math

import pytest
import torch

from capsule_routing.errors import UserError
from tests.libraries import library

library("transformers")
from transformers import AutoModelForSeq2SeqLM, DataCollatorForSeq2Seq, Seq2SeqTrainer  # noqa: E402
from transformers import Seq2SeqTrainingArguments as Arguments  # noqa: E402
from transformers.utils.logging import warning_once  # noqa: E402

from capsule_routing.huggingface import CapsuleConfig, CapsuleForConditionalGeneration, CapsuleTokenizer  # noqa: E402
from tests.huggingface.systems import (  # noqa: E402
    EVERYTHING,
    SYSTEMS,
    assert_close,
    batch,
    build,
    every_system,
    gradients,
)


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"encoder_routng": "both"}, "CapsuleConfig has no option encoder_routng; did you mean encoder_routing"),
        ({"encoder_layers": 0}, "encoder_layers must be at least 1, not 0"),
        ({"encoder_attention_heads": 7}, "encoder_attention_heads 7 must divide encoder_embed_dim 512"),
        ({"encoder_routing_layers": [7]}, "encoder_routing_layers must be layers from 1 to 6"),
        ({"encoder_routing": "both", "encoder_routing_layers": []}, "encoder_routing_layers has no layer"),
        ({"past_future": "gdr", "past_future_capsules": 0}, "past_future_capsules must be at least 1, not 0"),
        ({"guided_heads": "both"}, "guided_heads both needs past_future"),
        ({"share_all_embeddings": True, "source_vocab_size": 9}, "needs source_vocab_size and vocab_size to be equal"),
        ({"tie_word_embeddings": True}, "tie_word_embeddings follows from share_all_embeddings and share_decoder_"),
        ({"share_all_embeddings": True, "tie_word_embeddings": False}, "tie_word_embeddings follows from share_all"),
        ({"num_beams": 3}, "num_beams is an option of generate..; set it in model.generation_config"),
        ({"max_length": 20}, "max_length is an option of generate..; set it in model.generation_config"),
        ({"global_representation": "mean", "decoder_embed_dim": 64}, "needs encoder_embed_dim and decoder_output_dim"),
    ],
)
def test_wrong_options_are_refused(options, problem):
    with pytest.raises(UserError, match=problem):
        CapsuleConfig(**options)


@pytest.mark.parametrize("name", ["share_all_embeddings", "share_decoder_input_output_embed"])
def test_tied_tables_may_be_named_and_those_of_a_file_separated(name, tmp_path):
    assert build(**{name: True}, tie_word_embeddings=True).config.tie_word_embeddings
    assert not build(tie_word_embeddings=False).config.tie_word_embeddings
    model = build(**{name: True})
    model.save_pretrained(tmp_path)
    untied = CapsuleForConditionalGeneration.from_baseline(tmp_path, **{name: False})
    assert untied.decoder.output_projection.weight is not untied.decoder.embed_tokens.weight
    assert not untied.config.tie_word_embeddings
    with pytest.raises(UserError, match="tie_word_embeddings follows from"):
        CapsuleForConditionalGeneration.from_baseline(tmp_path, tie_word_embeddings=False)
    model.config.tie_word_embeddings = False  # as torchao sets it to quantise one of the tables
    model.config.save_pretrained(tmp_path)
    assert CapsuleConfig.from_pretrained(tmp_path).tie_word_embeddings
    config = build().config
    config.tie_word_embeddings = True  # would be lost when the model is loaded
    with pytest.raises(UserError, match="tie_word_embeddings follows from"):
        CapsuleForConditionalGeneration(config)


def test_sizes_follow_from_others():
    config = CapsuleConfig.preset("gdr_transformer_tiny", vocab_size=50, encoder_embed_dim=64)
    sizes = config.decoder_embed_dim, config.decoder_input_dim, config.decoder_output_dim, config.hidden_size
    assert sizes == (64,) * 4
    assert (config.source_vocab_size, config.decoder_ffn_embed_dim, config.decoder_layers) == (50, 256, 4)
    config = CapsuleConfig(decoder_embed_dim=128)
    assert (config.encoder_embed_dim, config.decoder_input_dim, config.decoder_output_dim) == (512, 128, 128)


@every_system
def test_padding_on_either_side_changes_neither_the_loss_nor_a_gradient(system):
    model = build(**SYSTEMS[system]).double()
    right, expected = gradients(model, **batch())
    left, found = gradients(model, **batch(left=True))
    assert_close(left.loss, right.loss)
    assert_close(left.losses, right.losses)
    assert_close(found, expected)
    inputs = batch()
    inputs["labels"] = inputs["labels"].masked_fill(inputs["labels"].eq(-100), 1)  # <pad> is no word to predict
    assert_close(model(**inputs).loss, right.loss)
    inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(batch()["labels"])  # as a collator gives
    assert inputs["decoder_input_ids"][2].tolist() == [2, *inputs["labels"][2, :2].tolist(), *[1] * 7]
    assert_close(model(**inputs).loss, right.loss)


@pytest.mark.parametrize("start", [2, 1], ids=["the end starts", "padding starts, as in Marian"])
@every_system
def test_labels_that_are_left_out_hide_none_of_the_given_inputs(system, start):
    model = build(**SYSTEMS[system], decoder_start_token_id=start).double().eval()
    sources = batch()["input_ids"][:2]
    inputs = torch.tensor([[start, 5, 6, 7, 8], [1, 1, start, 9, 10]])
    labels = torch.tensor([[-100, -100, 7, 8, 2], [-100, -100, -100, 10, 2]])
    real, counted = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]), labels.ne(-100)
    expected = model(sources, decoder_input_ids=inputs, decoder_attention_mask=real).logits
    embedded = model.decoder.embed_tokens(inputs)
    for given, mask in (
        ({"decoder_input_ids": inputs}, None),
        ({"decoder_input_ids": inputs}, real),
        ({"decoder_inputs_embeds": embedded}, real),
    ):
        output = model(sources, **given, decoder_attention_mask=mask, labels=labels)
        assert_close(output.logits[real.bool()], expected[real.bool()])
        nll = torch.nn.functional.cross_entropy(expected[counted], labels[counted])
        assert_close(output.losses["nll_loss"] * math.log(2), nll)
    output = model(sources[:1], decoder_inputs_embeds=embedded[:1], labels=labels[:1])  # without padding
    assert_close(output.logits, expected[:1])


def test_losses_of_parts_of_a_batch_add_up_to_that_of_the_whole():
    model = build(**EVERYTHING).double()
    whole, expected = gradients(model, **batch())
    number = batch()["labels"].ne(-100).sum()
    parts = [{name: rows[[row]] for name, rows in batch().items()} for row in range(3)]
    found = [gradients(model, **part, num_items_in_batch=number) for part in parts]
    assert_close(sum(output.loss for output, _ in found), whole.loss)
    assert_close({name: sum(of_part[name] for _, of_part in found) for name in expected}, expected)


@pytest.mark.parametrize("start", [2, 1], ids=["the end starts", "padding starts, as in Marian"])
def test_padding_that_a_trainer_counts_as_words_warns(start, caplog):
    model, inputs = build(decoder_start_token_id=start), batch()
    padded = {**inputs, "labels": inputs["labels"].masked_fill(inputs["labels"].eq(-100), 1)}
    number = padded["labels"].ne(-100).sum()  # as the Trainer counts
    warning_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        model(**padded)
        model(**inputs, num_items_in_batch=inputs["labels"].ne(-100).sum())
        assert not caplog.records
        model(**padded, num_items_in_batch=number)
    assert "a Trainer counts <pad> in labels as words, so the loss is too small; pad labels with -100" in caplog.text


def test_weights_and_smoothing_count():
    model = build(**EVERYTHING).double()
    output = model(**batch())
    assert output.losses.keys() == {"nll_loss", "bow_loss", "bca_loss"}
    model.config.label_smoothing = model.config.bow_weight = model.config.bca_weight = 0
    bare = model(**batch())
    assert bare.losses.keys() == {"nll_loss"}
    assert_close(bare.loss, bare.losses["nll_loss"] * math.log(2))
    expected = torch.nn.functional.cross_entropy(bare.logits.flatten(0, 1), batch()["labels"].flatten())
    assert_close(bare.loss, expected)
    model.config.bca_weight = 2
    with_bca = model(**batch())
    assert_close(with_bca.loss - bare.loss, 2 * 3 * with_bca.losses["bca_loss"] / 19)  # 3 sentences, 19 words


def test_a_training_step_without_labels_warns(caplog):
    model = build(**SYSTEMS["gdr"])
    inputs = {"input_ids": batch()["input_ids"], "decoder_input_ids": batch()["input_ids"]}
    warning_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        model.eval()(**inputs)
        assert not caplog.records
        assert model.train()(**inputs).cache is None
    assert "without labels the losses of PAST and FUTURE are not computed" in caplog.text


@pytest.mark.parametrize("system", ["everything", "selective"])
def test_gradient_checkpointing_changes_no_gradient(system):
    model = build(**SYSTEMS[system]).double().train()
    expected = gradients(model, **batch())[1]
    model.gradient_checkpointing_enable()
    assert_close(gradients(model, **batch())[1], expected)


@pytest.mark.slow
@every_system
def test_a_compiled_model_has_the_same_gradients(system):
    model = build(**SYSTEMS[system]).double().train()
    expected = gradients(model, **batch())[1]
    assert_close(gradients(torch.compile(model, backend="aot_eager"), **batch())[1], expected)


@pytest.mark.parametrize("system", ["gdr", "attn", "gret"])
def test_a_fine_tuned_model_starts_as_its_baseline(tmp_path, system, caplog):
    baseline = build(share_all_embeddings=True)
    with torch.no_grad():
        for parameter in baseline.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    baseline.save_pretrained(tmp_path)
    inputs = batch()
    expected = baseline.eval()(**inputs).logits
    with caplog.at_level(logging.WARNING):
        added = CapsuleForConditionalGeneration.from_baseline(tmp_path, **SYSTEMS[system])
    assert "new parameters, in decoder." in caplog.text
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, **SYSTEMS[system])  # through the meta device
    for model in (added, loaded):
        assert all(torch.isfinite(parameter).all() for parameter in model.parameters())
        assert torch.equal(model.eval()(**inputs).logits, expected)
    fresh = build(share_all_embeddings=True, **SYSTEMS[system])
    old = baseline.state_dict()
    for name, parameter in loaded.named_parameters():
        if name not in old and parameter.numel() > 100 and parameter.any():
            assert abs(parameter.std() / fresh.get_parameter(name).std() - 1) < 0.5, name


def test_a_preset_adds_its_mechanisms_and_keeps_the_sizes():
    baseline = build()
    model = CapsuleForConditionalGeneration.from_baseline(baseline, "gdr_transformer_big", bow_weight=0)
    assert (model.config.past_future, model.config.guided_heads, model.config.bow_weight) == ("gdr", "both", 0)
    assert (model.config.encoder_embed_dim, model.config.dropout) == (32, 0.0)
    with pytest.raises(UserError, match=r"the new model has no decoder\.past_future"):
        CapsuleForConditionalGeneration.from_baseline(model, past_future="none", guided_heads="none")


def test_a_module_of_which_a_part_was_loaded_keeps_that_part(tmp_path):
    model = build(**SYSTEMS["gdr"])
    model.save_pretrained(tmp_path)
    fewer = {"redundant_capsules": 0, "ignore_mismatched_sizes": True}
    loaded = CapsuleForConditionalGeneration.from_pretrained(tmp_path, **fewer)
    ours, theirs = loaded.decoder.past_future.routing, model.decoder.past_future.routing
    assert len(ours.vote_weight) == 4 and 0 < ours.vote_weight.std() < 1
    assert torch.equal(ours.agreement_vector, theirs.agreement_vector)


def test_a_trainer_lowers_the_loss_and_evaluates(tmp_path):
    library("accelerate")
    words = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(40))]
    (tmp_path / "vocabulary.json").write_text(json.dumps({"source": words, "target": words}), encoding="utf-8")
    side = {"language": "en", "tokenizer": "none"}
    tokenizer = CapsuleTokenizer(str(tmp_path / "vocabulary.json"), source=side, target=side)
    model = build(**EVERYTHING)
    texts = [" ".join(f"w{(start + step) % 40}" for step in range(3 + start % 4)) for start in range(16)]
    rows = [dict(tokenizer(text, text_target=text)) for text in texts]
    arguments = Arguments(
        str(tmp_path / "run"),
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        learning_rate=0.01,
        max_steps=12,
        logging_steps=1,
        report_to="none",
        use_cpu=True,
        predict_with_generate=True,
        generation_max_length=8,
    )
    collator = DataCollatorForSeq2Seq(tokenizer, model=model)
    trainer = Seq2SeqTrainer(model, arguments, collator, rows, rows, tokenizer)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert sum(losses[-3:]) < 0.7 * sum(losses[:3])
    assert math.isfinite(trainer.evaluate()["eval_loss"])
    arguments.predict_with_generate = False  # then the outputs of all batches are joined
    assert trainer.predict(rows).predictions[0].shape[0] == 16
