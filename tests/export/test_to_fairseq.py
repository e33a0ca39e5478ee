"""CTranslate2's own converter reads what is exported, and gives fairseq's scores. Routed models are refused."""

import ast
import re
from argparse import Namespace
from pathlib import Path

import pytest
import torch

from fairseq_capsule.mechanisms.registry import active_mechanisms
from tests.libraries import library
from tests.zoo import (
    CASES,
    OFF,
    PLAIN,
    PLAIN_OPTIONS,
    build,
    case_name,
    make_batch,
    make_sentences,
    make_task,
)

ctranslate2 = library("ctranslate2")
from ctranslate2.converters import FairseqConverter  # noqa: E402

from fairseq_capsule_lab.export.to_fairseq import refusal, write  # noqa: E402
from fairseq_capsule_lab.export.transformer import UNSUPPORTED  # noqa: E402

NOT_CONVERTED = [
    {"encoder_normalize_before": True},
    {"decoder_normalize_before": True, "no_decoder_final_norm": True},
    {"activation_fn": "tanh"},
    {"encoder_attention_heads": 2, "decoder_attention_heads": 8},
    {"encoder_embed_dim": 36, "encoder_attention_heads": 6},
    {"decoder_output_dim": 24},
    {"decoder_input_dim": 24, "decoder_output_dim": 20},
]
CONVERTED = [options for options in PLAIN_OPTIONS if options not in NOT_CONVERTED]


def translator_of(model, task, folder):
    task.cfg.source_lang, task.cfg.target_lang = "en", "de"
    write(model, task, folder)
    converter = FairseqConverter(str(folder / "model.pt"), str(folder), unsafe_deserialization=True)
    converter.convert(str(folder / "converted"))
    return ctranslate2.Translator(str(folder / "converted"), intra_threads=1, compute_type="float32")


def words_of(task, tokens):
    return [task.source_dictionary[token] for token in tokens[:-1].tolist()]  # without the end of the sentence


def scores_of(model, sentences):
    """fairseq's log-probabilities of each target's tokens, with teacher forcing."""
    batch = make_batch(sentences)
    with torch.no_grad():
        log_probs = model.get_normalized_probs(model(**batch["net_input"]), log_probs=True)
    scores = log_probs.gather(2, batch["target"][:, :, None])[:, :, 0]
    return {int(number): row[: len(sentences[number]["target"])] for number, row in zip(batch["id"], scores)}


def largest_difference(translator, model, task):
    """Compare the scores of targets whose sources have different lengths, so that a batch has padding."""
    sentences = make_sentences([(7, 5), (1, 9), (12, 2), (5, 8)])
    sides = ([words_of(task, sentence[side]) for sentence in sentences] for side in ("source", "target"))
    results = translator.score_batch(*sides)
    expected = scores_of(model, sentences)
    assert [len(result.log_probs) for result in results] == [len(expected[number]) for number in range(len(results))]
    return max(
        (torch.tensor(result.log_probs) - expected[number]).abs().max().item() for number, result in enumerate(results)
    )


@pytest.mark.parametrize(
    "options", [options for options in PLAIN_OPTIONS if options not in NOT_CONVERTED], ids=case_name
)
def test_the_scores_are_those_of_fairseq(tmp_path, options):
    task = make_task()
    model = build(PLAIN, {**OFF[PLAIN][0], **options}, task)
    assert refusal(model) is None
    assert largest_difference(translator_of(model, task, tmp_path), model, task) < 1e-5


def test_padding_is_suppressed_by_the_option_that_the_documents_name(tmp_path):
    task = make_task()
    model = build(PLAIN, {**OFF[PLAIN][0]}, task)
    page = (Path(__file__).parents[2] / "docs/bridges.md").read_text(encoding="utf-8")
    (option,) = re.findall("`suppress_sequences=(.*?)`", page)
    translator, source = translator_of(model, task, tmp_path), [words_of(task, make_sentences([(7, 5)])[0]["source"])]
    words = ast.literal_eval(option)
    (result,) = translator.translate_batch(source, suppress_sequences=words, max_decoding_length=9)
    assert words[0][0] not in result.hypotheses[0]


@pytest.mark.parametrize("options", NOT_CONVERTED, ids=case_name)
def test_the_converter_fails_where_ctranslate2_has_no_counterpart(tmp_path, options):
    task = make_task()
    with pytest.raises((ValueError, AttributeError)):
        translator_of(build(PLAIN, {**OFF[PLAIN][0], **options}, task), task, tmp_path)


def test_a_transformer_of_fairseq_is_exported_too(tmp_path):
    from fairseq.models import build_model
    from fairseq.models.transformer import transformer_legacy

    names = Namespace(arch="transformer", encoder_embed_dim=32, encoder_layers=2, share_all_embeddings=True)
    transformer_legacy.base_architecture(names)
    task = make_task()
    model = build_model(names, task).eval()
    assert refusal(model) is None
    assert largest_difference(translator_of(model, task, tmp_path), model, task) < 1e-5


@pytest.mark.parametrize("arch, options", CASES, ids=case_name)
def test_a_model_that_is_no_plain_transformer_is_refused(arch, options):
    model = build(arch, options, make_task())
    reason = refusal(model)
    if "transformer" not in arch:
        assert reason == f"it is a {type(model).__name__}, not a Transformer"
    else:
        names = [mechanism.name for mechanism in active_mechanisms(model.cfg)]
        assert reason == (f"it routes ({', '.join(names)})" if names else None)


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_an_option_without_a_counterpart_is_refused(name):
    model = build(PLAIN, OFF[PLAIN][0])
    setattr(model.cfg, name, 1)
    assert refusal(model) == f"it was trained with --{name.replace('_', '-')}"


def test_a_subclass_of_fairseqs_transformer_is_refused():
    from fairseq.models import MODEL_REGISTRY

    model = build(PLAIN, OFF[PLAIN][0])
    model.__class__ = MODEL_REGISTRY["transformer_align"]
    assert refusal(model) == "it is a TransformerAlignModel, not a Transformer"
