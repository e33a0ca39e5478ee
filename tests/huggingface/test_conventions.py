"""What any model of transformers can, in every system. These tests also run where fairseq cannot be imported."""

import copy
import json
import logging
import re

import pytest
import torch

from capsule_routing.errors import UserError
from tests.libraries import library

library("transformers")
from transformers import AutoModel, DynamicCache, EncoderDecoderCache, GenerationConfig, StaticCache  # noqa: E402
from transformers.utils.logging import warning_once  # noqa: E402

from capsule_routing.huggingface import (  # noqa: E402
    CapsuleConfig,
    CapsuleForConditionalGeneration,
    CapsuleModel,
    CapsuleTokenizer,
)
from tests.huggingface.systems import (  # noqa: E402
    SYSTEMS,
    assert_close,
    batch,
    build,
    every_system,
    gradients,
    inputs_of,
)

with_past_future = pytest.mark.parametrize("system", ["gdr", "attn", "everything"])
SOURCES = batch()["input_ids"]


# --- losses and labels


@with_past_future
def test_frozen_heads_count_and_so_do_labels_beside_use_cache(system, caplog):
    model = build(**SYSTEMS[system]).double().eval()
    expected = model(**batch())
    assert "bow_loss" in expected.losses
    warning_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        output = model(**batch(), use_cache=True)
    assert "use_cache is False where labels are given" in caplog.text and output.cache is None
    assert_close(output.loss, expected.loss)
    model.requires_grad_(False)
    assert_close(model(**batch()).losses, expected.losses)
    with pytest.raises(ValueError, match="labels and output_routing need the whole target"):
        model(**batch(), cache=EncoderDecoderCache(DynamicCache(), DynamicCache()))


@every_system
def test_a_label_within_a_target_may_be_left_out(system):
    model = build(**SYSTEMS[system]).double().eval()
    for left in (False, True):
        labels = torch.tensor([[5, 6, -100, 8, 2]])
        inputs = [[2, 5, 6, 1, 8]]
        if left:
            labels, inputs = torch.nn.functional.pad(labels, (2, 0), value=-100), [[1, 1, *inputs[0]]]
        assert model.prepare_decoder_input_ids_from_labels(labels).tolist() == inputs
        output = model(input_ids=SOURCES[:1], labels=labels)
        words = labels[0] != -100
        given = {"decoder_input_ids": torch.tensor(inputs), "decoder_attention_mask": torch.tensor(inputs).ne(1).long()}
        given["decoder_attention_mask"][0, -2] = 1  # within the target `<pad>` is a word like others
        assert_close(output.logits[0, words], model(SOURCES[:1], **given).logits[0, words])
        plain = torch.nn.functional.cross_entropy(output.logits[0, words], labels[0, words])
        assert_close(output.losses["nll_loss"] * torch.tensor(2.0).double().log(), plain)


@every_system
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_folder_in_half_precision_is_fine_tuned_in_float32(tmp_path, dtype, system):
    build().to(dtype).save_pretrained(tmp_path)
    model = CapsuleForConditionalGeneration.from_baseline(tmp_path, **SYSTEMS[system]).train()
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model(**batch()).loss.backward()
    optimizer.step()
    assert all(parameter.isfinite().all() for parameter in model.parameters())


@every_system
def test_training_in_float16_warns(caplog, system):
    model = build(**SYSTEMS[system]).half().train()
    warning_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        model(**batch())
    assert "training float16 weights ends in NaN" in caplog.text


# --- what is asked for is done


@every_system
def test_the_configuration_asks_for_attentions_and_states(system):
    model = build(**SYSTEMS[system]).eval()
    inputs = inputs_of(model)
    plain = model(**inputs, output_attentions=True, output_hidden_states=True)
    model.set_attn_implementation("eager")  # transformers refuses this option of the configuration with another one
    model.config.output_attentions = model.config.output_hidden_states = True
    asked = model(**inputs)
    for name in ("decoder_attentions", "cross_attentions", "encoder_attentions", "decoder_hidden_states"):
        torch.testing.assert_close(asked[name], plain[name])
    encoded = model.get_encoder()(inputs["input_ids"])
    assert len(encoded.attentions) == 2 and len(encoded.hidden_states) == 3
    assert model(**inputs, output_attentions=False).cross_attentions is None
    for name in ("decoder_attentions", "encoder_attentions"):
        torch.testing.assert_close(asked[name][0].sum(-1), torch.ones_like(asked[name][0].sum(-1)))


@every_system
def test_attention_is_equal_in_both_implementations(system, monkeypatch):
    fused, calls, kept = torch.nn.functional.scaled_dot_product_attention, [], []
    monkeypatch.setattr(
        torch.nn.functional, "scaled_dot_product_attention", lambda *a, **b: (calls.append(1), fused(*a, **b))[1]
    )
    for left in (True, False):
        model = build(**SYSTEMS[system]).double().eval()
        model.decoder.layers[0].register_forward_hook(lambda *call: kept.extend(call[-1][1:]))
        inputs = inputs_of(model, left)
        words = inputs["decoder_attention_mask"].bool()
        logits = []
        for implementation in ("sdpa", "eager"):
            model.set_attn_implementation(implementation)
            calls.clear()
            logits.append(model(**inputs).logits[words])
            assert bool(calls) == (implementation == "sdpa")
        assert (logits[0] - logits[1]).abs().max() < 1e-13
    assert set(kept) == {None}  # no layer keeps weights that nobody asked for


@every_system
def test_a_cache_that_does_not_grow_is_refused(system):
    model, plain = build(**SYSTEMS[system]).eval(), build().config

    def static():
        return StaticCache(config=plain, max_cache_len=20)

    def dynamic():
        return DynamicCache(config=model.config)

    for make in (
        lambda: EncoderDecoderCache(static(), static()),
        lambda: EncoderDecoderCache(static(), dynamic()),
        lambda: EncoderDecoderCache(dynamic(), static()),
        dynamic,  # of one attention only
    ):
        for call in (
            lambda cache: model(SOURCES[:1], decoder_input_ids=SOURCES[:1, :1], cache=cache),
            lambda cache: CapsuleModel(model.config)(SOURCES[:1], decoder_input_ids=SOURCES[:1, :1], cache=cache),
            lambda cache: model.generate(SOURCES[:1], cache=cache, max_new_tokens=3),
        ):
            with pytest.raises(TypeError, match="^this model needs a cache of its configuration[^\n]*$"):
                call(make())


@every_system
def test_tokens_beside_their_embeddings_are_refused(system):
    model = build(**SYSTEMS[system]).eval()
    states = CapsuleModel(model.config)
    inputs = inputs_of(model)
    source = {"inputs_embeds": model.encoder.embed_tokens(inputs["input_ids"])}
    target = {"decoder_inputs_embeds": model.decoder.embed_tokens(inputs["decoder_input_ids"])}
    for call in (model, states):
        with pytest.raises(ValueError, match="give either input_ids or inputs_embeds$"):
            call(**inputs, **source)
        with pytest.raises(ValueError, match="give either decoder_input_ids or decoder_inputs_embeds$"):
            call(**inputs, **target)
    for given in ({}, {"input_ids": SOURCES, **source}):
        with pytest.raises(ValueError, match="give either input_ids or inputs_embeds$"):
            model.encoder(**given)
    with pytest.raises(ValueError, match="give either decoder_input_ids or decoder_inputs_embeds$"):
        model.generate(SOURCES, **target, max_new_tokens=3)
    found = model.generate(**source, attention_mask=inputs["attention_mask"], max_new_tokens=3)
    assert found.tolist() == model.generate(SOURCES, max_new_tokens=3).tolist()


@every_system
def test_the_old_name_of_the_cache_and_automodel(system, tmp_path):
    model = build(**SYSTEMS[system]).eval()
    inputs = inputs_of(model)
    cache = EncoderDecoderCache(DynamicCache(config=model.config), DynamicCache(config=model.config))
    output = model(**inputs, past_key_values=cache)
    assert output.cache is cache and cache.get_seq_length() == inputs["decoder_input_ids"].size(1)
    model.save_pretrained(tmp_path)
    states = AutoModel.from_pretrained(tmp_path)
    assert type(states) is CapsuleModel
    features = states(**inputs).last_hidden_state
    assert_close(model.get_output_embeddings()(features), model(**inputs).logits)


# --- adapters, offloading, quantisation, tracing


@every_system
def test_every_adapter_of_lora_has_a_gradient(system):
    peft = library("peft")
    model = build(**SYSTEMS[system])
    expected = model(**batch()).loss
    adapted = peft.get_peft_model(model, peft.LoraConfig(target_modules="all-linear", init_lora_weights=False))
    assert abs(adapted(**batch()).loss - expected) > 1e-4
    adapted(**batch()).loss.backward()
    missing = [name for name, weight in adapted.named_parameters() if weight.requires_grad and weight.grad is None]
    assert not missing
    merged = copy.deepcopy(adapted).merge_and_unload()
    torch.testing.assert_close(merged(**batch()).loss, adapted(**batch()).loss)


def test_a_prefix_of_peft_is_refused_in_training_and_ignored_by_generate():
    peft = library("peft")
    model = build(**SYSTEMS["gdr"]).eval()
    config = model.config
    sizes = {"num_layers": config.decoder_layers, "token_dim": config.hidden_size, "num_virtual_tokens": 4}
    kind = {"task_type": "SEQ_2_SEQ_LM", "num_attention_heads": config.decoder_attention_heads}
    adapted = peft.get_peft_model(model, peft.PrefixTuningConfig(**kind, **sizes)).eval()
    with pytest.raises(ValueError, match="labels .* need the whole target: give no cache"):
        adapted(**batch())
    for name, weight in adapted.named_parameters():
        if "prompt_encoder" in name:
            torch.nn.init.normal_(weight.detach(), std=3)
    searched = {"input_ids": SOURCES, "num_beams": 1, "max_new_tokens": 8, "min_new_tokens": 8}
    with adapted.disable_adapter():
        without = adapted.generate(**searched)
    assert adapted.generate(**searched).tolist() == without.tolist()


@every_system
def test_a_model_on_the_disk_computes_the_same(system, tmp_path):
    accelerate = library("accelerate")
    model = build(**SYSTEMS[system]).double().eval()
    expected = model(**batch())
    offloaded = accelerate.cpu_offload(copy.deepcopy(model), execution_device="cpu")
    assert_close(offloaded(**batch()).loss, expected.loss)


@every_system
def test_no_layer_is_split_over_devices(system):
    accelerate = library("accelerate")
    model = build(**SYSTEMS[system])
    sizes = accelerate.utils.compute_module_sizes(model)
    memory = {"cpu": sizes["encoder"] + sizes["decoder.layers.0"] // 2, "disk": 10 * sizes[""]}
    places = accelerate.infer_auto_device_map(model, memory, no_split_module_classes=model._no_split_modules)
    assert set(places.values()) == {"cpu", "disk"}
    inside = [name for name in places if re.match(r"(en|de)coder\.layers\.\d+\.", name)]
    assert not inside


@every_system
@pytest.mark.parametrize("reentrant", [True, False])
def test_layers_are_computed_again_in_both_ways(system, reentrant):
    model = build(**SYSTEMS[system]).double().train()
    expected = gradients(model, **batch())[1]
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    assert_close(gradients(model, **batch())[1], expected)
    output = model(**inputs_of(model), use_cache=True)
    assert output.cache is None and output.logits.isfinite().all()


# --- tables of words


@pytest.mark.parametrize(
    "shared", [{}, {"share_decoder_input_output_embed": True}, {"share_all_embeddings": True}], ids=str
)
@every_system
def test_a_resized_model_trains_and_reloads(shared, tmp_path, system):
    model = build(**SYSTEMS[system], **shared)
    with torch.no_grad():
        before = model.eval()(**batch()).logits
    table = model.resize_token_embeddings(50)
    assert table is model.get_input_embeddings() and len(table.weight) == 50
    assert (model.config.vocab_size, model.config.source_vocab_size) == (50, 50)
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(**batch()).logits[..., :44], before)
    inputs = batch()
    inputs["labels"][0, 0] = inputs["input_ids"][0, 0] = 49
    gradients(model.train(), **inputs)
    if shared:
        assert model.get_output_embeddings().weight is model.decoder.embed_tokens.weight
    model.save_pretrained(tmp_path)
    loaded = CapsuleForConditionalGeneration.from_pretrained(tmp_path).eval()
    assert_close(loaded(**inputs).logits, model.eval()(**inputs).logits)


def test_tables_of_two_dictionaries_are_resized_apart():
    model = build(source_vocab_size=60)
    model.resize_token_embeddings(64)
    assert (model.config.source_vocab_size, model.config.vocab_size) == (64, 44)
    model.resize_decoder_token_embeddings(50)
    assert (model.config.source_vocab_size, model.config.vocab_size) == (64, 50)
    assert model(**batch()).logits.size(-1) == 50
    with pytest.raises(UserError, match="the sides share their embeddings"):
        build(share_all_embeddings=True).resize_decoder_token_embeddings(50)


@pytest.mark.parametrize(
    "shared", [{}, {"share_decoder_input_output_embed": True}, {"share_all_embeddings": True}], ids=str
)
def test_a_resized_model_keeps_what_is_frozen_and_its_hooks(shared):
    hooks = pytest.importorskip("accelerate.hooks")
    model = build(output_bias=True, **shared).requires_grad_(False)
    model.decoder.output_projection.bias.requires_grad_(True)
    tables = ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection")
    kept = {name: hooks.ModelHook() for name in tables}
    for name, hook in kept.items():
        hooks.add_hook_to_module(model.get_submodule(name), hook)
    model.resize_token_embeddings(50)
    learned = [name for name, weight in model.named_parameters() if weight.requires_grad]
    assert learned == ["decoder.output_projection.bias"]
    assert {name: model.get_submodule(name)._hf_hook for name in tables} == kept
    assert model(**batch()).logits.size(-1) == 50


@pytest.mark.parametrize("shared", [False, True])
def test_tables_can_be_replaced(shared):
    model = build(share_all_embeddings=shared)
    table, layer = torch.nn.Embedding(44, 32), torch.nn.Linear(32, 44)
    model.set_input_embeddings(table)
    assert model.encoder.embed_tokens is table and (model.decoder.embed_tokens is table) == shared
    model.set_output_embeddings(layer)
    assert model.get_output_embeddings() is layer


def test_the_configuration_answers_as_others_do():
    config = CapsuleConfig(decoder_embed_dim=64, eos_token_id=[2, 3], bos_token_id=None)
    for decoder in (True, False, None):
        assert config.get_text_config(decoder=decoder).hidden_size == 64
    assert CapsuleConfig(eos_token_id=None).eos_token_id is None


# --- generation


@pytest.mark.parametrize(
    "options, right",
    [
        ({"max_new_tokens": 1}, lambda row: len(row) == 2 and row[1] > 2),
        ({"min_new_tokens": 6, "max_new_tokens": 6}, lambda row: len(row) == 7 and min(row[1:]) > 2),
        (
            {"min_new_tokens": 6, "max_new_tokens": 6, "do_sample": True},
            lambda row: len(row) == 7 and not {1, 2} & {*row[1:]},
        ),
        ({"eos_token_id": 40, "max_new_tokens": 6}, lambda row: row[-1] == 40),
        ({"eos_token_id": [40, 41], "max_new_tokens": 6}, lambda row: row[-1] in (40, 41)),
        ({"max_new_tokens": 6, "early_stopping": False, "num_beams": 1}, lambda row: len(row) == 7),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)
@every_system
def test_a_search_always_finds_words(options, right, system):
    model = build(**SYSTEMS[system])
    torch.nn.init.zeros_(model.decoder.output_projection.weight[2:3].detach())
    torch.manual_seed(2)
    for row in model.eval().generate(SOURCES, pad_token_id=1, **options).tolist():
        while row[-1] == 1:
            row.pop()
        assert right(row), row


@every_system
def test_prefixes_of_different_lengths_are_continued_as_alone(system):
    model = build(**SYSTEMS[system]).eval()
    sources = torch.stack([SOURCES[0]] * 2)
    prefixes = torch.tensor([[1, 1, 2, 5], [2, 6, 7, 8]])
    options = {"num_beams": 3}
    mask = prefixes.ne(1).long()
    found = model.generate(
        sources, decoder_input_ids=prefixes, decoder_attention_mask=mask, max_new_tokens=5, **options
    )
    for row, prefix in zip(found, prefixes):
        alone = model.generate(SOURCES[:1], decoder_input_ids=prefix[prefix != 1][None], max_new_tokens=5, **options)
        continued = row[4:][row[4:] != 1]
        assert continued.tolist() == alone[0, prefix.ne(1).sum() :][: len(continued)].tolist()


@pytest.mark.parametrize(
    "prefixes, mask",
    [([[1, 1, 2, 5], [2, 6, 7, 8]], [[0, 0, 1, 1], [1, 1, 1, 1]]), ([[1, 5], [6, 7]], [[1, 0, 1], [1, 1, 1]])],
    ids=["with their start", "without it"],
)
@pytest.mark.parametrize("system", ["gdr", "gret", "capsule", "everything"])
def test_the_routing_of_continued_prefixes_leaves_out_their_padding(system, prefixes, mask):
    model = build(**SYSTEMS[system]).double().eval()
    prefixes, mask = torch.tensor(prefixes), torch.tensor(mask)
    options = {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 5, "return_dict_in_generate": True}
    options |= {"decoder_input_ids": prefixes, "decoder_attention_mask": mask[:, -prefixes.size(1) :]}
    found = model.generate(SOURCES[:2], **options, output_routing=True)
    inputs = found.sequences[:, :-1]
    whole = torch.ones_like(inputs)
    whole[:, : mask.size(1)] = mask.repeat_interleave(2, dim=0)
    sources = SOURCES[:2].repeat_interleave(2, dim=0)
    expected = model(sources, decoder_input_ids=inputs, decoder_attention_mask=whole, output_routing=True).routing
    assert found.routing.keys() == expected.keys()
    assert_close(found.routing, expected)


@every_system
def test_other_ways_of_generating_find_the_greedy_words(system):
    model = build(**SYSTEMS[system]).double().eval()
    options = {"num_beams": 1, "max_new_tokens": 7, "min_new_tokens": 7}
    source = SOURCES[:1]
    greedy = model.generate(source, **options)
    assert greedy.size(1) == 8
    assistant = build(decoder_layers=1)
    assistant.generation_config = GenerationConfig(decoder_start_token_id=2, eos_token_id=2, pad_token_id=1)
    for further in (
        {"prompt_lookup_num_tokens": 2},
        {"assistant_model": assistant.double().eval()},
        {"use_cache": False},
        {"encoder_outputs": model.encoder(source)},
        {"cache_implementation": "dynamic"},
    ):
        assert model.generate(source, **options, **further).tolist() == greedy.tolist(), further
    full = model.generate(source, **options, return_dict_in_generate=True, output_logits=True, output_scores=True)
    first = model.generate(source, num_beams=1, max_new_tokens=3, min_new_tokens=3, return_dict_in_generate=True)
    prefix = {"decoder_input_ids": first.sequences, "decoder_attention_mask": torch.ones_like(first.sequences)}
    further = {"cache": first.cache, "max_new_tokens": 4, "min_new_tokens": 4}
    assert model.generate(source, num_beams=1, **prefix, **further).tolist() == greedy.tolist()
    assert len(full.logits) == len(full.scores) == greedy.size(1) - 1


@every_system
def test_strings_that_stop_are_words_of_the_target(system, tmp_path):
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    words = {side: [*special, *(f"{side}{number}." for number in range(40))] for side in ("source", "target")}
    words["source"][40] = words["target"][41] = "abcdef"  # transformers puts this before each word
    (tmp_path / "vocabulary.json").write_text(json.dumps(words), encoding="utf-8")
    side = {"language": "en", "tokenizer": "none"}
    tokenizer = CapsuleTokenizer(str(tmp_path / "vocabulary.json"), source=side, target=side)
    model, options = build(**SYSTEMS[system]).eval(), {"num_beams": 1, "max_new_tokens": 7, "min_new_tokens": 3}
    (found,) = model.generate(SOURCES[:1], **options).tolist()
    stopped = model.generate(SOURCES[:1], **options, tokenizer=tokenizer, stop_strings=[words["target"][found[2]]])
    assert stopped.tolist() == [found[: found.index(found[2]) + 1]]
    assert tokenizer.get_vocab() == {word: number for number, word in enumerate(words["source"])}


@pytest.mark.parametrize(
    "options, name",
    [
        ({"penalty_alpha": 0.6, "top_k": 4, "num_beams": 1}, "Contrastive Search"),
        ({"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0}, "Group Beam Search"),
        ({"dola_layers": "low", "num_beams": 1}, "Dola Generation"),
    ],
)
def test_searches_that_left_transformers_are_refused_in_one_line(options, name):
    with pytest.raises(ValueError, match=f"^{name} requires `trust_remote_code=True`[^\n]*$"):
        build().generate(SOURCES, **options)


def test_forbidden_words_stay_in_the_raw_logits():
    model = build().eval()
    options = {"max_new_tokens": 3, "return_dict_in_generate": True, "output_logits": True, "output_scores": True}
    for beams in (1, 4):
        found = model.generate(SOURCES, num_beams=beams, **options)
        assert found.logits[0].isfinite().all()
        assert found.scores[0][:, 1].eq(-torch.inf).all() and found.scores[0][:, 2].eq(-torch.inf).all()
