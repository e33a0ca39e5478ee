"""The complete `scripts/evaluate.sh`, on a run of `train.sh`."""

import json
import shlex
import shutil

import pytest
import torch

from capsule_routing.text.folders import settings_of
from fairseq_capsule_lab.runs import RunFolder, Settings
from tests.integration.conftest import with_plugin
from tests.integration.preparing import Workplace, contents, read

# A stub of fairseq-generate: it prints two summaries and writes its arguments to `words`.
SUMMARIES = r"""
printf '%s\n' "$@" >$HOME/words
printf '%s\t%s\n' S-0 '一 二' T-0 '一 二' H-0 "-0.1	一 二" D-0 "-0.1	一 二"
printf '%s\t%s\n' S-1 '三 ▁ 四' T-1 '三 ▁ 四' H-1 "-0.1	三 四" D-1 "-0.1	三 四"
"""


@pytest.fixture(scope="module")
def prepared(data, tmp_path_factory):
    """The folder of a prepare script."""
    folder = tmp_path_factory.mktemp("prepared [1]")  # a shell pattern that does not match the folder
    (folder / "bin").symlink_to(data)
    (folder / "raw").symlink_to(data.parent)
    return folder


@pytest.fixture(scope="module")
def evaluated(trained_run, prepared, tmp_path_factory):
    """The place of an evaluated run. The finished script is its `process`."""
    place = copied(trained_run.out, tmp_path_factory.mktemp("evaluated [1]"))
    place.process = place.prepare("--nbest", 2, "--beam", 3, "--lenpen", 0.6, "out", prepared)
    assert place.process.returncode == 0, place.process.errors
    return place


def test_every_command_is_shown_and_a_dry_run_shows_them_too(evaluated, prepared, tmp_path):
    place = copied(evaluated.out, tmp_path)
    before = evaluated.process.shown
    shown = place.prepare("--dry-run", "--nbest", 2, "--beam", 3, "--lenpen", 0.6, "out", prepared).shown
    words = [[word.replace(str(evaluated.out), str(place.out)) for word in shlex.split(line)] for line in before]
    assert [shlex.split(line) for line in shown] == words[-2:]  # the checkpoints were averaged before
    for line, tool in zip(before, ("fairseq-capsule average", "fairseq-generate", "fairseq-capsule score")):
        assert tool in line
    assert contents(place.out) == contents(evaluated.out)


@pytest.fixture
def place(evaluated, tmp_path):
    """A copy of `evaluated` in which the script can compute scores again, but no translations."""
    place = copied(evaluated.out, tmp_path)
    place.stub("fairseq-generate", "exit 1")
    return place


def copied(run, root):
    place = with_plugin(Workplace(root, "evaluate.sh"))
    shutil.copytree(run, place.out)
    return place


def results(place):
    return place.out / "evaluation/test"


def scores(place):
    return json.loads((results(place) / "scores.json").read_text())


def test_checkpoints_are_averaged_and_translations_scored(evaluated):
    assert [f"checkpoint{epoch}.pt" in evaluated.process.output for epoch in (1, 2, 3)] == [True] * 3
    assert (evaluated.out / "checkpoint_avg_last3.pt").exists()  # the configuration keeps three
    lines = read(results(evaluated) / "generate.out")
    assert [sum(line.startswith(kind) for line in lines) for kind in ("S-", "H-")] == [20, 40]
    assert len(read(results(evaluated) / "translations.de")) == 20
    settings = settings_of(results(evaluated))
    assert [settings[name] for name in ("beam", "lenpen", "nbest")] == ["3", "0.6", "2"]
    printed = scores(evaluated)
    assert printed["translations"]["sentences"] == 20
    assert printed["sentences"] == 20 and printed["against"] is None
    assert list(printed["scores"]) == ["tokenised_bleu", "compound_split_bleu", "detokenised_bleu", "chrf"]
    for measure in printed["scores"].values():
        assert f"{measure['label']} = {measure['score']:.2f}  ({measure['text']})" in evaluated.process.output
        assert measure["signature"] in evaluated.process.output


def test_generate_gives_the_same_scores_with_the_commands_of_others(evaluated, prepared, tmp_path):
    place = copied(evaluated.out, tmp_path)
    options = ("--last", 3, "--beam", 3, "--lenpen", 0.6, "--max-tokens", 200)
    process = place.run("scripts/generate.sh", *options, "out", prepared, "en", "de")
    assert process.returncode == 0, process.errors
    assert read(place.out / "generated/test/plain") == read(results(place) / "translations.de")
    for name in ("tokenised_bleu", "detokenised_bleu", "chrf"):
        measure = scores(place)["scores"][name]
        assert f"{measure['score']:.2f}" in process.output and measure["signature"] in process.output


def test_generate_refuses_a_language_that_moses_does_not_cut(place, prepared):
    process = place.run("scripts/generate.sh", "--last", 3, "out", prepared, "en", "my")
    assert process.returncode and "no spaces separate the words of my, so Moses makes no words of it" in process.errors


def test_a_second_run_does_nothing(place, prepared):
    real = shutil.which("fairseq-capsule", path=place.path)
    place.stub("fairseq-capsule", f'[[ $1 == evaluate ]] || exit 1; exec {real} "$@"')
    before = contents(place.out)
    process = place.prepare("--nbest", 2, "--beam", 3, "--lenpen", 0.6, "out", prepared)
    assert process.returncode == 0, process.errors
    assert "generate.out: done before" in process.output
    assert contents(place.out) == before


def test_a_run_can_be_compared_with_another_without_case(place, evaluated, prepared):
    options = ("--nbest", 2, "--beam", 3, "--lenpen", 0.6, "--lowercase", "--against", evaluated.out)
    process = place.prepare(*options, "out", prepared)
    assert process.returncode == 0, process.errors
    printed = scores(place)
    assert printed["against"] == str(results(evaluated) / "generate.out")
    for measure in printed["scores"].values():
        assert (measure["against"]["difference"], measure["against"]["p"]) == (0, None)  # the same model
        assert "case:lc" in measure["signature"]


def test_summaries_are_scored_by_rouge_with_all_references(place, prepared, tmp_path):
    run = RunFolder(place.out)
    settings = run.settings()
    settings.config["task"] |= {"_name": "capsule_summarization", "target_lang": "summary"}
    run.write_settings(Settings(settings.config | {"generation": {"beam": 4, "lenpen": 0.8}}, settings.origin))
    checkpoint = place.out / "checkpoint_last.pt"
    state = torch.load(checkpoint, weights_only=False)
    state["cfg"]["task"]["target_lang"] = "summary"
    torch.save(state, checkpoint)
    folder = tmp_path / "summaries"
    for name in ("bin/test.en-summary.en.bin", "raw/test.summary", "raw/test.summary1"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("一二\n三 四\n", encoding="utf-8")
    shutil.copy(prepared / "bin/dict.en.txt", folder / "bin/dict.en.txt")
    shutil.copy(prepared / "bin/dict.de.txt", folder / "bin/dict.summary.txt")
    place.stub("fairseq-generate", SUMMARIES)
    options = ("--checkpoints", "checkpoint_last.pt", "--results", "other")
    process = place.prepare(*options, "out", folder, HOME=str(tmp_path))
    assert process.returncode == 0, process.errors
    words = " ".join(read(tmp_path / "words"))
    assert "--task capsule_summarization --source-lang en --target-lang summary --gen-subset test" in words
    assert "/out/checkpoint_last.pt --beam 4 --lenpen 0.8 --nbest 1 " in words
    assert "--required-batch-size-multiple 1" in words
    printed = json.loads((place.out / "other/test/scores.json").read_text())
    assert list(printed["scores"]) == ["rouge1", "rouge2", "rougeL"]
    assert [path.rsplit("/")[-1] for path in printed["references"]] == ["test.summary", "test.summary1"]
