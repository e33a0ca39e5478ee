"""The complete scripts with hostile texts in every input: nothing in the text runs, and a refusal is one line."""

import json

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fairseq_capsule_lab.cli import main
from tests.integration.conftest import with_plugin
from tests.integration.preparing import Workplace
from tests.runs import hostile

FAILS = "echo 'ValueError: out of luck'; exit 1"
CONFIG = {
    "defaults": ["_self_"],
    "task": {"_name": "translation", "source_lang": "en", "target_lang": "de"},
    "model": {"_name": "transformer"},
    "optimization": {"max_update": 20, "update_freq": [1]},
    "dataset": {"max_tokens": 400},
    "common": {"seed": 1},
}


@pytest.fixture
def place(tmp_path):
    place = with_plugin(Workplace(tmp_path, "train.sh"))
    for tool in ("fairseq-hydra-train", "torchrun", "fairseq-generate", "scontrol"):
        place.stub(tool, FAILS)
    for name in (
        "bin/train.en-de.en.bin",
        "bin/train.en-de.de.bin",
        "bin/test.en-de.de.bin",
        "bin/dict.en.txt",
        "raw/test.de",
    ):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text("x\n")
    (tmp_path / "run").mkdir()
    for name in ("checkpoint_last.pt", "checkpoint_best.pt"):
        (tmp_path / "run" / name).write_text("x")
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    return place


def attack(place, script, examples, ways):
    """Run the script with hostile texts in each of `ways`, which prepare the folder and return the arguments."""
    mark = place.root / "mark"
    place.script = script

    @settings(max_examples=examples, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(sorted(ways)), hostile.texts(mark))
    def run(way, text):
        before = sorted(path.name for path in place.root.parent.iterdir())
        process = place.prepare(*ways[way](text))
        assert not mark.exists(), (way, text)
        assert sorted(path.name for path in place.root.parent.iterdir()) == before, (way, text)
        assert process.returncode == 0 or process.errors.splitlines()[-1].startswith((script, "fairseq-capsule ")), (
            way,
            text,
            process.errors,
        )
        told = [line for line in process.errors.splitlines() if ": note: " not in line]
        assert len(told) <= 1, (way, text, process.errors)

    run()


def options(names, *arguments):
    """Return a way for each option."""
    return {name: lambda text, name=name: (*arguments, f"--{name}", text) for name in names.split()}


def test_hostile_texts_do_not_run_in_train(place):
    def yaml_value(group, key):
        def prepare(text):
            content = {**CONFIG, group: {**CONFIG[group], key: text}}
            (place.root / "hostile.yaml").write_text(yaml.safe_dump(content, allow_unicode=True))
            return "hostile.yaml", "data/bin", "out"

        return prepare

    usual = ("config.yaml", "data/bin", "out")
    ways = options("gpus processes nodes effective-tokens precision", *usual)
    ways |= {
        f"{group}.{key}": yaml_value(group, key) for group in CONFIG if group != "defaults" for key in CONFIG[group]
    }
    ways |= {"CONFIG": lambda text: (text, *usual[1:]), "DATA": lambda text: (usual[0], text, "out")}
    ways |= {
        "OUT": lambda text: (*usual[:2], text.replace("/", "")),
        "override": lambda text: (*usual, f"model.x={text}"),
    }
    attack(place, "train.sh", 40, ways)


def test_hostile_texts_do_not_run_in_evaluate(place):
    def setting(key):
        def prepare(text):
            group, name = key.split(".")
            (place.root / "run/settings.json").write_text(json.dumps({"config": {group: {name: text}}}))
            return "run", "data"

        return prepare

    ways = options("split checkpoints beam lenpen nbest max-tokens against results", "run", "data")
    keys = "generation.beam generation.lenpen generation.nbest task._name task.source_lang task.target_lang "
    keys += "checkpoint.keep_last_epochs checkpoint.keep_interval_updates"
    ways |= {key: setting(key) for key in keys.split()}
    ways |= {"RUN": lambda text: (text, "data"), "DATA": lambda text: ("run", text)}
    attack(place, "evaluate.sh", 40, ways)


def test_hostile_texts_do_not_run_in_distill(place):
    (place.root / "teacher.pt").write_text("x")
    ways = options("beam lenpen shards processes max-tokens", "teacher.pt", "nowhere", "out")
    ways |= {"TEACHER": lambda text: (text, "nowhere", "out"), "DATA": lambda text: ("teacher.pt", text, "out")}
    attack(place, "distill.sh", 20, ways)


@pytest.mark.parametrize("option", ["--scale", "--launcher", "--baseline", "--rows", "TABLE"])
def test_hostile_texts_do_not_run_in_reproduce(tmp_path, monkeypatch, capsys, option):
    """The script passes its arguments to this command."""
    monkeypatch.chdir(tmp_path)

    @settings(max_examples=10, suppress_health_check=list(HealthCheck))
    @given(hostile.texts(tmp_path / "mark"))
    def run(text):
        words = [text] if option == "TABLE" else ["duan-table2", f"{option}={text}"]
        status = main(["reproduce", "--dry-run", *words])
        last = capsys.readouterr().err.splitlines()[-1:]
        assert status == 0 or last[0].startswith("fairseq-capsule "), last

    run()
    assert list(tmp_path.iterdir()) == []


def test_values_that_once_ran_code_are_harmless(place):
    """Values that once ran code in train.sh and evaluate.sh, or wrote outside the run folder."""
    mark = place.root / "mark"
    text = f"nodes[$(touch {mark})]"
    content = {**CONFIG, "optimization": {"max_update": text}}
    (place.root / "mine.yaml").write_text(yaml.safe_dump(content))
    process = place.prepare("mine.yaml", "data/bin", "out")
    assert place.refused(process, "optimization.max_update must be a whole number from 0 on, not 'nodes[$(touch ")
    recorded = place.root / "run/settings.json"
    recorded.write_text(json.dumps({"config": {"checkpoint": {"keep_last_epochs": text}}}))
    place.script = "evaluate.sh"
    process = place.prepare("run", "data")
    assert place.refused(
        process, "/run, its settings: checkpoint.keep_last_epochs must be a whole number from -1 on, not"
    )
    recorded.unlink()
    process = place.prepare("run", "data", "--results", "..")
    assert place.refused(process, "--results must be a name (letters, digits and _-.+=), not '..'")
    assert not mark.exists()
