"""Every architecture of the package is exported, with fairseq's scores, or refused with a reason."""

import pytest
import torch

from fairseq_capsule.mechanisms.base import active_mechanisms
from fairseq_capsule_lab.errors import LabError
from tests.libraries import library
from tests.zoo import (
    ARCHITECTURES,
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
from fairseq_capsule_lab.export.to_ctranslate2 import refusal, specification  # noqa: E402
from fairseq_capsule_lab.export.transformer import UNSUPPORTED  # noqa: E402


def translator_of(model, task, folder, quantization=None, **options):
    exported = specification(model, task.source_dictionary, task.target_dictionary)
    exported.validate()
    exported.optimize(quantization)
    exported.save(str(folder))
    return ctranslate2.Translator(str(folder), intra_threads=1, **options)


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


@pytest.mark.parametrize("options", PLAIN_OPTIONS, ids=case_name)
def test_the_scores_are_those_of_fairseq(tmp_path, options):
    task = make_task()
    model = build(PLAIN, {**OFF[PLAIN][0], **options}, task)
    assert refusal(model) is None
    assert largest_difference(translator_of(model, task, tmp_path, compute_type="float32"), model, task) < 1e-5


@pytest.mark.parametrize("options", [{}, {"share_all_embeddings": True}], ids=case_name)
def test_a_transformer_of_fairseq_is_exported_too(tmp_path, options):
    from argparse import Namespace

    from fairseq.models import build_model
    from fairseq.models.transformer import transformer_legacy

    names = Namespace(arch="transformer", encoder_embed_dim=32, encoder_layers=2, decoder_layers=2, **options)
    transformer_legacy.base_architecture(names)
    task = make_task()
    model = build_model(names, task).eval()
    assert refusal(model) is None
    assert largest_difference(translator_of(model, task, tmp_path, compute_type="float32"), model, task) < 1e-5


@pytest.mark.parametrize("arch, options", CASES, ids=case_name)
def test_every_architecture_and_option_is_exported_or_refused(tmp_path, arch, options):
    task = make_task()
    model = build(arch, options, task)
    reason = refusal(model)
    if "transformer" not in arch:
        assert reason == f"it is a {type(model).__name__}, not a Transformer"
        return
    names = [mechanism.name for mechanism in active_mechanisms(model.cfg)]
    if names:
        assert reason == f"it routes ({', '.join(names)})"
        return
    assert reason is None
    assert largest_difference(translator_of(model, task, tmp_path, compute_type="float32"), model, task) < 1e-5


@pytest.mark.parametrize("arch", OFF)
def test_an_architecture_without_its_mechanisms_is_exported_unless_it_is_an_lstm(tmp_path, arch):
    task = make_task()
    model = build(arch, OFF[arch][0], task)
    if arch.endswith("lstm"):
        assert refusal(model).endswith("not a Transformer")
        return
    assert refusal(model) is None
    assert largest_difference(translator_of(model, task, tmp_path, compute_type="float32"), model, task) < 1e-5


def test_every_architecture_is_in_one_of_the_tests():
    assert {arch for arch, _ in CASES} == set(ARCHITECTURES)


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_an_option_that_ctranslate2_does_not_have_is_refused(name):
    model = build(PLAIN, OFF[PLAIN][0])
    setattr(model.cfg, name, 1)
    assert refusal(model) == f"it was trained with --{name.replace('_', '-')}"


def test_an_activation_that_ctranslate2_does_not_have_is_refused():
    reason = refusal(build(PLAIN, {**OFF[PLAIN][0], "activation_fn": "linear"}))
    assert reason == "--activation-fn linear is none of relu, gelu, gelu_accurate, gelu_fast, tanh"


def test_a_subclass_of_fairseqs_transformer_is_refused():
    from fairseq.models import MODEL_REGISTRY

    model = build(PLAIN, OFF[PLAIN][0])
    model.__class__ = MODEL_REGISTRY["transformer_align"]
    assert refusal(model) == "it is a TransformerAlignModel, not a Transformer"


def test_a_parameter_that_ctranslate2_does_not_have_is_refused():
    task = make_task()
    model = build(PLAIN, OFF[PLAIN][0], task)
    model.decoder.layers[0].w_resid = torch.nn.Parameter(torch.ones(32))
    with pytest.raises(LabError, match=r"its parameter decoder\.layers\.0\.w_resid is unknown to CTranslate2"):
        specification(model, task.source_dictionary, task.target_dictionary)


def test_a_dictionary_with_a_word_twice_is_refused():
    task = make_task()
    task.source_dictionary.add_symbol("w1", overwrite=True)
    model = build(PLAIN, OFF[PLAIN][0], task)
    with pytest.raises(LabError, match="a word is twice in its dictionary"):
        specification(model, task.source_dictionary, task.target_dictionary)


@pytest.mark.parametrize("quantization", ["int8", "int16"])
def test_a_quantised_model_is_loaded_and_the_model_is_unchanged(tmp_path, quantization):
    task = make_task()
    model = build(PLAIN, {**OFF[PLAIN][0], "share_all_embeddings": True}, task)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    translator = translator_of(model, task, tmp_path, quantization)
    assert translator.compute_type.startswith("int")
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert 0 < largest_difference(translator, model, task) < 0.2
    assert len(translator.translate_batch([["w1", "w2"]], beam_size=5, num_hypotheses=5)[0].hypotheses) == 5


def test_unknown_words_are_those_of_fairseq(tmp_path):
    task = make_task()
    model = build(PLAIN, OFF[PLAIN][0], task)
    translator = translator_of(model, task, tmp_path, compute_type="float32")
    (known,) = translator.score_batch([["w1", "<unk>", "w2"]], [["w3"]])
    (unknown,) = translator.score_batch([["w1", "never-seen", "w2"]], [["w3"]])
    assert known.log_probs == unknown.log_probs


def test_equal_embeddings_are_stored_once(tmp_path):
    sizes = []
    for shared in (False, True):
        (tmp_path / str(shared)).mkdir()
        task = make_task()
        model = build(PLAIN, {**OFF[PLAIN][0], "share_all_embeddings": shared}, task)
        translator_of(model, task, tmp_path / str(shared))
        sizes.append((tmp_path / str(shared) / "model.bin").stat().st_size)
    words = len(make_task().source_dictionary)
    assert sizes[0] - sizes[1] == pytest.approx(2 * words * 32 * 4, rel=0.05)  # two of three tables of float32
