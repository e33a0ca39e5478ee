"""Sentences above a model's positions are named before a training or an evaluation, where fairseq would end."""

import re
import shutil
from dataclasses import replace

import pytest
import torch

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.models import load_model
from fairseq_capsule.hub import load
from fairseq_capsule_lab.runs import RunFolder, evaluate
from fairseq_capsule_lab.runs.long_sentences import SKIP, refuse_long_validation
from fairseq_capsule_lab.runs.settings import Settings
from tests.integration.commands import PATH, REPOSITORY
from tests.runs.test_training_plan import CONFIG

LONGEST = 6  # tokens of the first sentence of the world, with </s>


def refusal(data, **settings):
    """Return what refuses a training with these settings, or None."""
    config = {"task": {"source_lang": "en", "target_lang": "de"}}
    for key, value in settings.items():
        group, _, name = key.partition("__")
        config.setdefault(group, {})[name] = value
    try:
        refuse_long_validation(Settings(config), data)
    except UserError as error:
        return str(error)
    return None


def fairseq_ends(world, source, target, batch):
    """Return whether fairseq's validation ends at a sentence."""
    task = load_model(world / "model.pt", world / "data/bin")[2]
    task.load_dataset("valid")
    try:
        task.get_batch_iterator(task.dataset("valid"), max_tokens=batch, max_positions=(source, target))
    except Exception as error:  # it has no type of its own
        assert re.search("invalid|max_tokens", str(error))
        return True
    return False


@pytest.mark.parametrize("source", [LONGEST - 1, LONGEST])
@pytest.mark.parametrize("target", [LONGEST - 1, LONGEST])
@pytest.mark.parametrize("batch", [LONGEST - 1, LONGEST])
def test_a_training_is_refused_where_fairseq_would_end(world, source, target, batch):
    data = world / "data/bin"
    found = refusal(
        data, task__max_source_positions=source, model__max_target_positions=target, dataset__max_tokens=batch
    )
    assert (found is not None) == fairseq_ends(world, source, target, batch)


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            {"task__max_source_positions": 5},
            "valid.en-de.en: sentence 1 has 6 tokens, the model 5 positions; give task.",
        ),
        (
            {"task__max_target_positions": 5},
            "de: sentence 1 has 6 tokens, .*; give task.max_target_positions=6 after OUT",
        ),
        ({"model__max_source_positions": 4}, "; give model.max_source_positions=6 after OUT, or .*skip_invalid"),
        ({"dataset__max_tokens": 5}, "sentence 1 has 6 tokens, a batch 5; give dataset.max_tokens_valid=6 after OUT"),
        ({"dataset__max_tokens": 50, "dataset__max_tokens_valid": 5}, "a batch 5; give"),
        ({"dataset__max_tokens": 5, "dataset__max_tokens_valid": 6}, None),
        ({"dataset__max_tokens": 5, "dataset__disable_validation": True}, None),
        ({"task__max_source_positions": 5, SKIP.replace(".", "__"): True}, None),
        ({"task__max_source_positions": 5, "task__truncate_source": True}, None),
        ({"task__max_source_positions": 5, "dataset__valid_subset": "valid,test"}, "valid.en-de.en: sentence 1"),
        ({"task__max_source_positions": 5, "dataset__valid_subset": "test"}, "test.en-de.en: sentence 1"),
        (
            {"task__max_source_positions": 5, "task__source_lang": "de", "task__target_lang": "en"},
            "en-de.de: sentence 1",
        ),
        ({"task__max_source_positions": 5, "task__source_lang": None}, "en-de.en: sentence 1"),
        ({}, None),
    ],
)
def test_the_sentence_and_the_setting_are_named(world, settings, message):
    found = refusal(world / "data/bin", **settings)
    assert (found is None) == (message is None) and re.search(message or "", found or ""), found


def test_an_index_of_fairseq_s_older_format_is_left_to_fairseq(world, tmp_path):
    shutil.copytree(world / "data/bin", tmp_path / "bin")
    index = tmp_path / "bin/valid.en-de.en.idx"
    index.write_bytes(b"TNTIDX" + index.read_bytes())
    assert refusal(tmp_path / "bin", task__max_source_positions=1) is None


def test_train_names_the_sentence_before_it_starts(world, tmp_path, monkeypatch, command):
    monkeypatch.setenv("PATH", PATH)
    config = REPOSITORY / "configs/toy/transformer.yaml"
    result = command("train", config, world / "data/bin", tmp_path / "out", "--gpus", 0, "task.max_source_positions=5")
    assert result.status == 1 and "sentence 1 has 6 tokens, the model 5 positions" in result.err
    assert not (tmp_path / "out").exists()


# --- evaluation ------------------------------------------------------------------------------------------------------


@pytest.fixture
def evaluation(world, tmp_path):
    """Return a function that compares data with a run whose model has other positions."""
    run, data = RunFolder(tmp_path / "run"), tmp_path / "data"
    for folder in (run.path, data / "raw"):
        folder.mkdir(parents=True)
    run.write_settings(Settings(CONFIG))
    (data / "bin").symlink_to(world / "data/bin")
    shutil.copy(world / "text.de", data / "raw/test.de")

    def compare(max_tokens=100, max_len_b=None, **positions):
        state = torch.load(world / "model.pt", weights_only=True)
        state["cfg"]["model"].update(positions)
        torch.save(state, run.path / "checkpoint_best.pt")
        arguments = evaluate.EvaluationArguments(
            run=run.path, data=data, max_tokens=max_tokens, results="evaluation", checkpoints="checkpoint_best.pt"
        )
        made = evaluate.EvaluationRun(replace(arguments, max_len_b=max_len_b))
        made.compare_with_checkpoint()
        return made

    return compare


@pytest.mark.parametrize(
    "given, message",
    [
        (
            {"max_source_positions": 5},
            "test.en-de.en: sentence 1 has 6 tokens, the model 5 positions: it cannot be scored",
        ),
        (
            {"max_target_positions": 5},
            "test.en-de.de: sentence 1 has 6 tokens, the model 5 positions: it cannot be scored",
        ),
        ({"max_tokens": 5}, "sentence 1 has 6 tokens, a batch 5; give --max-tokens 6"),
    ],
)
def test_evaluate_says_which_sentence_it_cannot_score(evaluation, given, message):
    with pytest.raises(UserError, match=message):
        evaluation(**given)


def test_translations_are_cut_at_the_positions_of_the_model(evaluation, world):
    assert [evaluation().cut_at, evaluation(max_len_b=5, max_target_positions=9).cut_at] == [200, 5]
    cut = evaluation(max_target_positions=9).cut_at
    hub = load(world / "model.pt", world / "data/bin", max_target_positions=9, tokenizer="space")
    found = hub.generate(hub.encode("a b c"), beam=1, max_len_b=200, min_len=8)[0]["tokens"]
    assert len(found) - 1 == cut == 8
