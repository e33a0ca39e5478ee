"""The plan of evaluate.sh: correct for valid input, one line for invalid input."""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from capsule_routing.errors import UserError
from fairseq_capsule_lab.runs import RunFolder, Settings, evaluate
from tests.runs.test_training_plan import CONFIG


@pytest.fixture
def run(tmp_path):
    """A run folder with three checkpoints."""
    for name in ("checkpoint1.pt", "checkpoint2.pt", "checkpoint3.pt", "checkpoint_last.pt", "checkpoint_best.pt"):
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / name).touch()
    folder = RunFolder(tmp_path / "run")
    folder.write_settings(Settings(CONFIG))
    folder.finish()
    return folder


@pytest.fixture
def planned(run, tmp_path):
    """Plan the evaluation with options. Return the plan, or the one line of the error."""
    data = tmp_path / "data"
    for name in ("bin/test.en-de.en.bin", "bin/test.en-de.de.bin", "bin/dict.en.txt", "raw/test.de"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).touch()
    arguments = evaluate.EvaluationArguments(run=run.path, data=data, max_tokens=12000, results="evaluation")

    def plan(**given):
        try:
            return evaluate.EvaluationRun(replace(arguments, **given))
        except UserError as error:
            assert str(error).isprintable()
            return str(error)

    return plan


def test_the_plan_follows_the_configuration(run, planned):
    plan = planned()
    assert (plan.search.beam, plan.search.lenpen, plan.search.nbest, plan.task) == (4, "0.6", 1, "translation")
    assert (plan.source, plan.target, plan.splits, plan.notes) == ("en", "de", ["test"], [])
    assert plan.average[1:5] == ("average", str(run.path), "--last", "3")
    assert planned(lenpen=1.0).search.lenpen == "1" and planned(lenpen=0.0).search.lenpen == "0"
    plan.checkpoint.touch()
    assert planned().average == ()


def test_an_average_older_than_a_checkpoint_is_made_again(run, planned):
    average = planned().checkpoint
    average.touch()
    for path in run.checkpoints():
        newer = average.stat().st_mtime_ns + 1_000_000_000
        before = path.stat().st_mtime_ns
        os.utime(path, ns=(newer, newer))
        assert planned().average[-1] == str(average), path.name
        os.utime(path, ns=(before, before))
        assert planned().average == ()


def test_translations_by_another_search_are_noted(planned, tmp_path):
    other = tmp_path / "other/evaluation/test"
    other.mkdir(parents=True)
    (other / "generate.out").touch()
    plan = planned(against=tmp_path / "other")
    own = plan.search.settings()
    (other / "settings.json").write_text(
        json.dumps({"script": "evaluate.sh", "checkpoint": "abc", **own, "data": "def"})
    )
    assert planned(against=tmp_path / "other").notes == []
    searches = {"beam": 3, "lenpen": 0.5, "nbest": 2, "max_len_b": 99, "no_repeat_ngram_size": 3}
    assert len(searches) == len(own)
    for name, value in searches.items():
        key = name.replace("_", "-")
        (note,) = planned(against=tmp_path / "other", **{name: value}).notes
        assert note == f"{other} was translated with {key} {own[key]}, not {key} {value}"


@pytest.mark.parametrize(
    "own, other, refused",
    [
        ({"tokenise": "moses"}, {"tokenized": "no", "remove_bpe": None}, "--tokenized no, which"),
        ({"tokenise": "none"}, {"tokenized": "yes", "remove_bpe": None}, "--tokenized yes, which"),
        ({"tokenise": "characters"}, {"tokenized": "no", "remove_bpe": None}, "--remove-bpe auto, which"),
        ({"tokenise": "none"}, {"tokenized": "no", "remove_bpe": "sentencepiece"}, "--remove-bpe sentencepiece, which"),
        ({"tokenise": "moses"}, {"tokenized": "yes", "remove_bpe": None}, ""),
        ({}, {"tokenized": "yes", "remove_bpe": None}, ""),
        ({"tokenise": "moses"}, {"tokenized": "auto", "remove_bpe": None}, ""),
    ],
)
def test_a_run_on_text_of_another_form_is_not_compared_with(planned, tmp_path, own, other, refused):
    planned()
    folder = tmp_path / "other/evaluation/test"
    folder.mkdir(parents=True)
    (folder / "generate.out").touch()
    (folder / "scores.json").write_text(json.dumps(other))
    (tmp_path / "data/settings.json").write_text(json.dumps({"script": "prepare.sh", **own}))
    plan = planned(against=tmp_path / "other")
    if not refused:
        assert plan.against
    else:
        assert f"was scored with {refused}" in plan and plan.endswith("compare the two by fairseq-capsule report")


def test_summaries_of_separate_characters_are_compared(run, planned, tmp_path):
    """ROUGE joins all characters, whatever the preparation."""
    planned()
    run.write_settings(Settings({**CONFIG, "task": {**CONFIG["task"], "_name": "capsule_summarization"}}))
    folder = tmp_path / "other/evaluation/test"
    folder.mkdir(parents=True)
    (folder / "generate.out").touch()
    (folder / "scores.json").write_text(json.dumps({"tokenized": "auto", "remove_bpe": None}))
    (tmp_path / "data/settings.json").write_text(json.dumps({"script": "prepare.sh", "tokenise": "characters"}))
    assert planned(against=tmp_path / "other").against


def test_corrected_references_are_scored_again(run, planned, tmp_path):
    plan = planned()
    folder = plan.results / "test"
    folder.mkdir(parents=True)

    def kept():
        """Whether scores stay. If not, they are computed again."""
        plan._delete_other_scores("test")
        stay = (folder / "scores.json").exists()
        (folder / "scores.json").write_text(json.dumps({"scoring": plan._recorded_scoring("test")}))
        return stay

    assert [kept(), kept()] == [False, True]
    for other in ("{}", "[]", "{"):
        (folder / "scores.json").write_text(other)
        assert [kept(), kept()] == [False, True]
    for name in ("test.de", "test.de1"):  # the second reference is new
        (tmp_path / "data/raw" / name).write_text("corrected\n")
        assert [kept(), kept()] == [False, True]


def test_cut_translations_and_unknown_words_are_counted(tmp_path):
    output = tmp_path / "generate.out"
    translations = ["a b", "a b c", "a <unk>", "<unk> b c", "<<unk>>"]
    lines = [f"H-{number}\t-0.1\t{text}\nH-{number}\t-0.9\tx y z <unk>" for number, text in enumerate(translations)]
    output.write_text("\n".join(lines) + "\n")
    assert evaluate.count_unfinished(output, 3) == {"sentences": 5, "cut": 2, "unknown": 2}


def test_ngrams_are_blocked_by_a_task_that_can(run, planned):
    words = " ".join(planned(no_repeat_ngram_size=3, max_len_b=50).generate_command("test"))
    assert "--task capsule_translation " in words and "--max-len-b 50 --no-repeat-ngram-size 3 " in words
    assert planned().task == "translation" and "--no-repeat" not in " ".join(planned().generate_command("test"))
    run.write_settings(Settings({**CONFIG, "generation": {"max_len_b": 60, "no_repeat_ngram_size": 2}}))
    search = planned().search
    assert (search.longest, search.blocked, planned(no_repeat_ngram_size=0).search.blocked) == (60, 2, 0)


def test_checkpoints_of_updates_are_averaged_if_the_configuration_keeps_those(run, planned):
    run.write_settings(Settings({**CONFIG, "checkpoint": {"keep_interval_updates": 2}}))
    for update in (100, 200, 300):
        (run.path / f"checkpoint_1_{update}.pt").touch()
    plan = planned()
    assert plan.checkpoint.name == "checkpoint_avg_last2_updates.pt" and plan.notes == []
    assert plan.average[1:6] == ("average", str(run.path), "--last", "2", "--updates")
    assert planned(checkpoints="last:2").checkpoint.name == "checkpoint_avg_last2.pt"
    assert planned(checkpoints="last:3:updates").average[3:6] == ("--last", "3", "--updates")
    assert planned(checkpoints="best:2:updates").average[3:6] == ("--best", "2", "--updates")
    run.write_settings(Settings({**CONFIG, "checkpoint": {"keep_interval_updates": 2, "keep_last_epochs": 3}}))
    assert planned().checkpoint.name == "checkpoint_avg_last3.pt"


@pytest.mark.parametrize(
    "keep, taken, note",
    [
        ({"keep_last_epochs": 10}, "last3", "3 of the 10 checkpoints that are averaged by default; using last:3"),
        ({"keep_last_epochs": 2}, "last2", ""),
        ({"keep_last_epochs": -1}, "best", ""),
        ({}, "best", ""),
    ],
)
def test_as_many_checkpoints_are_averaged_as_there_are(run, planned, keep, taken, note):
    run.write_settings(Settings({**CONFIG, "checkpoint": keep}))
    plan = planned()
    assert plan.checkpoint.stem.endswith(taken)
    assert [text.partition(" has ")[2] for text in plan.notes] == [note] * bool(note)
    assert "checkpoints (checkpointE.pt): 3 found, but 4 requested" in planned(checkpoints="last:4")
    for path in run.path.glob("checkpoint[0-9]*.pt"):
        path.unlink()
    assert planned().checkpoint.name == "checkpoint_best.pt"
    assert planned(checkpoints="checkpoint_last.pt").checkpoint.name == "checkpoint_last.pt"


def test_the_other_direction_is_scored_against_the_text_of_its_target(run, planned, tmp_path):
    task = {**CONFIG["task"], "source_lang": "de", "target_lang": "en"}
    run.write_settings(Settings({**CONFIG, "task": task}))
    assert f"{tmp_path}/data/raw/test.en: no such reference" in planned()
    (tmp_path / "data/raw/test.en").touch()
    plan = planned()
    assert (plan.source, plan.target, plan.reference("test").name) == ("de", "en", "test.en")


def test_summaries_are_generated_with_the_vocabulary_of_the_run(run, planned):
    assert "--vocabulary" not in planned().generate_command("test")
    task = {**CONFIG["task"], "_name": "capsule_summarization", "vocabulary": 5000}
    run.write_settings(Settings({**CONFIG, "task": task}))
    assert "--vocabulary 5000" in " ".join(planned().generate_command("test"))


def test_a_training_that_ended_within_an_epoch_is_noted(run, planned):
    assert planned().notes == []  # checkpoint_last.pt is a copy of the newest one
    run.last_checkpoint.write_text("later")
    (note,) = planned().notes
    assert note.startswith("checkpoint_last.pt is newer than checkpoint3.pt, the newest of the checkpoints")
    assert note.endswith("; --checkpoints checkpoint_last.pt translates with it")


@pytest.mark.parametrize(
    "given, message",
    [
        ({"checkpoints": "../b/checkpoint_best.pt"}, "--checkpoints ../b/checkpoint_best.pt: not last:N, best:N, on"),
        ({"results": "../b/evaluation"}, "--results must be a name"),
        ({"split": ["test", "test9"]}, "no split 'test9'"),
        ({"against": Path("nothing")}, "nothing: 'test' was not evaluated; evaluate it first"),
        ({"nbest": 9, "beam": 2}, "--nbest 9: a beam of 2 has at most 2; give a larger --beam"),
    ],
)
def test_scores_of_another_run_or_number_are_never_recorded(run, planned, given, message):
    (run.path.parent / "b").mkdir()
    (run.path.parent / "b/checkpoint_best.pt").touch()
    assert message in planned(**given)


@pytest.mark.parametrize(
    "prepared, scoring",
    [
        ("bpe sentencepiece\nsource en\ntarget de\ntokenise moses\n", "--tokenized yes"),
        ("source en\ntarget de\ntokenise none\n", "--tokenized no"),
        ("source en\ntarget de\ntokenise characters,jieba\n", "--tokenized yes"),
        ("source de\ntarget en\ntokenise characters,moses\n", "--tokenized no --remove-bpe sentencepiece"),
        ("script prepare-multi30k.sh\nmerges 10000\n", ""),
        ("script prepare-wmt14-en-de.sh\nbpe sentencepiece\n", "--tokenized yes"),
        ("script prepare.sh\nbpe sentencepiece-bpe\n", "--tokenized no"),
        (None, ""),
    ],
)
def test_translations_are_scored_as_their_text_was_tokenised(planned, tmp_path, prepared, scoring):
    if prepared is not None:
        kept = dict(line.split(" ", 1) for line in f"script prepare.sh\n{prepared}".splitlines())
        (tmp_path / "data/settings.json").write_text(json.dumps(kept))
    assert " ".join(planned().scoring) == f"--lang de {scoring}".rstrip()


def test_a_library_that_bleu_needs_is_required_before_the_translation(run, planned, tmp_path, monkeypatch):
    run.write_settings(Settings({**CONFIG, "task": {**CONFIG["task"], "target_lang": "ja"}}))
    (tmp_path / "data/raw/test.ja").parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "data/raw/test.ja").touch()
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    monkeypatch.setitem(sys.modules, "MeCab", None)
    assert "pip install 'fairseq-capsule[japanese]'; or compare characters, with --bleu-tokenizer char" in planned()
    assert "--lang ja --bleu-tokenizer char" in " ".join(planned(bleu_tokenizer="char").score_command("test"))


def test_a_run_folder_does_not_name_a_program(run, planned, my_plugin):
    """The plugin is used only if the user names it too."""
    run.write_settings(Settings({**CONFIG, "common": {"user_dir": str(my_plugin)}}))
    refused = planned()
    assert f"trained with the plugin {my_plugin}" in refused and "if you trust it, give its folder by --user" in refused
    plan = planned(user_dir="my_plugin")
    assert (plan.plugin, plan.notes) == (my_plugin, [])
    other = shutil.copytree(my_plugin, my_plugin.with_name("other_plugin"))
    plan = planned(user_dir=str(other))
    assert plan.plugin == other and f"was trained with the plugin {my_plugin}, not {other}" in plan.notes[0]
    assert not (my_plugin / "imported").exists()


def test_a_run_that_names_no_plugin_can_be_given_one(planned, my_plugin):
    plan = planned(user_dir=str(my_plugin))
    assert (plan.plugin, plan.notes) == (my_plugin, [])
