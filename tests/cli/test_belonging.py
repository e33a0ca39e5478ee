"""No command reads a checkpoint of other words or of another direction, unless that was asked for.

The commands that read checkpoints are found in the tree of commands, by the help of their arguments.
"""

import re
import shutil

import pytest
import torch

from capsule_routing.errors import UserError
from fairseq_capsule_lab.runs.restoring import refuse_foreign_start
from fairseq_capsule_lab.runs.settings import Settings
from tests.integration.commands import PATH, REPOSITORY
from tests.test_help import LEAVES

CONFIG = REPOSITORY / "configs/toy/transformer.yaml"
# How each command meets one checkpoint, {0}, alone, and beside model.pt; {1} is a new place, {2} a run folder.
ALONE = {
    "analyze assignment": ["{0} --data data/bin --alignments links --out {1}"],
    "analyze iterations": ["{0} --data data/bin --iterations 1 --out {1}"],
    "analyze overlap": ["{0} --data data/bin --out {1}"],
    "analyze routing": ["{0} --data data/bin --out {1}"],
    "distill": ["{0} data/bin {1}"],
    "evaluate": ["{2} {2}/data --checkpoints checkpoint_best.pt", "{2} {2}/data"],
    "export": ["{0} prepared {1} --to transformers"],
    "inspect": ["{0} data/bin --text a --out {1}"],
    "nll": ["{0} --data data/bin"],
    "picture": ["{0} data/bin --text a --out {1}.png"],
    "probe": ["{0} --data data/bin"],
    "serve": ["{0} data/bin --port 0"],
    "size": ["{0} --data data/bin"],
    "train": [
        f"{CONFIG} data/bin {{1}} --gpus 0 {start}={{0}}"
        for start in ("checkpoint.restore_file", "checkpoint.finetune_from_model", "+checkpoint.continue_once")
    ],
}
BESIDE = {
    **{
        name: [f"model.pt {words}" for words in ALONE[name]]
        for name in ("nll", "probe", "size", *(name for name in ALONE if name.startswith("analyze")))
    },
    "average": ["model.pt {0} --output {1}", "{0} model.pt --output {1}"],
    "inspect": ["model.pt data/bin --against {0} --text a --out {1}"],
    "serve": ["model.pt data/bin --against {0} --port 0"],
}
# These read text, data or what other commands have made; `import-model` makes a model with its own dictionaries.
READ_NONE = ("check-data", "filter", "import-model", "prepare", "report")


def changed(world, path, change):
    """Write the model of the world with other facts."""
    state = torch.load(world / "model.pt", weights_only=True)
    change(state["cfg"]["task"], state["task_state"])
    torch.save(state, path)
    return path


def other_words(task, state):
    state["dictionary_digests"] = {**state["dictionary_digests"], "target": "0" * 64}


def other_direction(task, state):
    """A model that was trained on data whose names have this direction too."""
    task.update(source_lang="de", target_lang="en")
    state["binarised_as"] = [["de", "en"]]


def asked_direction(task, state):
    """A model that was trained on data like these, in the other direction: `task.source_lang=de`."""
    task.update(source_lang="de", target_lang="en")


@pytest.fixture
def run(world, tmp_path, monkeypatch, command):
    """Run a command with a changed checkpoint. Returns the last line of its errors; it has written nothing."""
    monkeypatch.chdir(world)
    monkeypatch.setenv("PATH", PATH)
    monkeypatch.setattr("fairseq_capsule_lab.pages.server.Server.serve_forever", lambda server: None)

    def run(name, words, change):
        path = changed(world, tmp_path / "foreign.pt", change)
        folder = tmp_path / "run"
        (folder / "data/raw").mkdir(parents=True)
        shutil.copy(path, folder / "checkpoint_best.pt")
        (folder / "data/bin").symlink_to(world / "data/bin")
        shutil.copy(world / "prepared/settings.json", folder / "data")
        shutil.copy(world / "text.de", folder / "data/raw/test.de")
        before = sorted(tmp_path.rglob("*"))
        result = command(*name.split(), *words.format(path, tmp_path / "out", folder).split())
        if result.status:
            assert sorted(tmp_path.rglob("*")) == before and result.status == 1, result.err
        return result

    return run


def cases(table):
    return [(name, words) for name, forms in table.items() for words in forms]


def test_every_command_that_reads_a_checkpoint_is_tried():
    reads = set()
    for name, leaf in LEAVES.items():
        helps = (getattr(parameter, "help", None) or "" for parameter in leaf.params if parameter.name != "user_dir")
        if any(re.search(r"checkpoint|trained|teacher|model", text, re.IGNORECASE) for text in helps):
            reads.add(name)
    assert {name for name in reads if not name.startswith(READ_NONE)} == ALONE.keys() | BESIDE.keys()


@pytest.mark.parametrize("name, words", [*cases(ALONE), *cases(BESIDE)])
def test_other_words_are_refused(run, name, words):
    result = run(name, words, other_words)
    assert result.status == 1, result.out
    (line,) = result.err.splitlines()
    assert "it was trained with other words than those of the target dictionary of " in line
    assert re.search(r"; prepare the text with --codes and --dict of \S+$", line)


@pytest.mark.parametrize("name, words", [*cases(ALONE), *cases(BESIDE)])
def test_another_direction_is_refused(run, name, words):
    result = run(name, words, other_direction)
    assert result.status == 1, result.out
    (line,) = result.err.splitlines()
    assert re.search("translates? (de-en.*en-de|en-de.*de-en)", line) and "; give " in line


@pytest.mark.parametrize("name, words", cases(BESIDE))
def test_two_directions_are_not_mixed(run, name, words):
    result = run(name, words, asked_direction)
    assert result.status == 1, result.out
    assert re.search("translates? (de-en.*en-de|en-de.*de-en)", result.err.splitlines()[-1])


@pytest.mark.parametrize("name", ["nll", "picture", "export"])
def test_the_direction_that_was_asked_for_when_it_was_trained_is_accepted(run, name):
    assert run(name, ALONE[name][0], asked_direction).status == 0


def test_train_compares_the_last_checkpoint_of_fairseq_s_own_task(world, tmp_path):
    """Tasks of ours do it themselves, when they build the model (tests/checkpoints/test_belonging.py)."""
    languages = {"source_lang": "en", "target_lang": "de"}
    started = {"checkpoint": {"restore_file": "another.pt"}}  # an own checkpoint counts first
    changed(world, tmp_path / "checkpoint_last.pt", other_words)
    ours, plain = (
        Settings({"task": {"_name": name, **languages}, **started}) for name in ("capsule_translation", "translation")
    )
    refuse_foreign_start(ours, world / "data/bin", tmp_path)
    with pytest.raises(UserError, match="checkpoint_last.pt: it was trained with other words"):
        refuse_foreign_start(plain, world / "data/bin", tmp_path)
    changed(world, tmp_path / "checkpoint_last.pt", lambda task, state: None)
    refuse_foreign_start(plain, world / "data/bin", tmp_path)


def test_train_refuses_to_go_on_from_a_checkpoint_with_all_epochs(run):
    words = f"{ALONE['train'][0]} optimization.max_epoch=1"
    result = run("train", words, lambda task, state: None)
    assert result.status == 1
    assert re.search(r"foreign.pt has 1 epoch; give optimization.max_epoch .* above 1, or", result.err)
