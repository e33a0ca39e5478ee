"""Every command works with valid arguments, and refuses each kind of wrong argument in one line.

The arguments are found in the commands, so a new command is covered automatically.
"""

import os
from pathlib import Path

import click
import pytest
from matplotlib.figure import Figure

from capsule_routing.errors import UserError
from fairseq_capsule_lab.cli import SCRIPTS, arguments, main
from tests.test_help import LEAVES

MODEL = Path(__file__).parents[2] / "models/ja-en"
# Words that make each command succeed. {0} is a folder for results.
WORKS = {
    "analyze lengths": "first.out second.out --intervals 2,4 --names A B --out {0}",
    "analyze coverage": "first.out --runs 1 --out {0}",
    "analyze overlap": "model.pt --data data/bin --out {0}",
    "analyze assignment": "model.pt --data data/bin --alignments links --out {0}",
    "analyze routing": "model.pt --data data/bin --out {0}",
    "analyze iterations": "model.pt --data data/bin --iterations 1 --beam 1 --option past-future-iterations --out {0}",
    "analyze cases": "first.out second.out --out {0}",
    "average": "model.pt model.pt --output {0}/average.pt",
    "export": "plain.pt prepared {0}/new --to transformers",
    "import-model": f"{MODEL} {{0}}/imported",
    "inspect": "model.pt data/bin --ids 0-1 --beam 1 --out {0}",
    "nll": "model.pt plain.pt --data data --split test --json",
    "picture": "model.pt data/bin --id 1 --out {0}/new.png",
    "probe": "model.pt --data data/bin",
    "reproduce": "duan-table2 --dry-run --scale smoke --seeds 1-2",
    "score": "first.out text.de --samples 10 --against second.out --output {0}/plain",
    "seeds": "text.de --baseline first.out second.out --system second.out first.out --system first.out second.out",
    "serve": "model.pt data/bin --port 0 --against plain.pt",
    "size": "model.pt --data data/bin --json",
    "table": "duan-table2 --scale smoke --out {0}",
    "toy-corpus": "{0} --train 5 --valid 2 --test 2 --alignments",
}
ELSEWHERE = {"check-data", "distill", "doctor", "evaluate", "report", "train"}  # with tests of their own


@pytest.fixture(autouse=True)
def drawings(monkeypatch):
    """Draw nothing, and let a server end when it has started."""
    monkeypatch.setattr("fairseq_capsule_lab.pages.server.Server.serve_forever", lambda server: None)
    monkeypatch.setattr("fairseq_capsule_lab.analysis.reports._drawn", lambda figure, suffix: b"")
    monkeypatch.setattr("fairseq_capsule_lab.pages.inspection.plot_view", lambda *view: Figure())


def test_every_command_is_tried():
    names = {name for name in LEAVES if not name.startswith(("filter", "prepare"))}
    assert names == WORKS.keys() | ELSEWHERE


@pytest.mark.parametrize("name", WORKS)
def test_valid_arguments_are_accepted(name, world, tmp_path, command):
    words = [str(world / word) if (world / word).exists() else word for word in WORKS[name].format(tmp_path).split()]
    result = command(*name.split(), *words)
    assert result.status == 0, result.err


# --- wrong values ----------------------------------------------------------------------------------------------------

NUMBERS = {"a text": "x", "below": "-101"}
FILE = {"no value": "", "missing": "missing", "a folder": "folder"}
FOLDER = {"no value": "", "missing": "missing", "a file": "file"}
FAULTS = {
    arguments.input_file: FILE,
    **dict.fromkeys((arguments.input_folder, arguments.data_folder, arguments.prepared_data), FOLDER),
    arguments.language_code: {"no value": "", "a path": "../de"},
    arguments.existing: {"missing": "missing", "no value": ""},
    **dict.fromkeys((arguments.output_path, arguments.given), {"no value": ""}),
    arguments.absent_folder: {"no value": "", "a file": "file"},
}
VALID = {"checkpoint": "file", "data": "folder", "hypothesis": "file", "first": "file", "source": "file"}
VALID |= {"run": "folder", "teacher": "file"}


def kind_of(param):
    """The function of a type, or a type of click."""
    return getattr(param.type, "func", getattr(param.type, "kind", param.type))


def faults_of(param):
    if isinstance(param.type, click.Choice):
        return {"no choice": "nothing-of-that-name"}
    if isinstance(param.type, click.IntRange):
        return NUMBERS
    name = getattr(kind_of(param), "__qualname__", "")
    if name.startswith("whole_numbers"):
        return {**NUMBERS, "downwards": "3-1"}
    if name.startswith("number") or isinstance(param.type, click.types.FloatParamType):
        return {"a text": "x", "no number": "nan", "infinite": "inf"}
    return FAULTS.get(kind_of(param), {})


WRONG = [
    pytest.param(name, param, value, id=f"{name} {param.name}: {fault}")
    for name, leaf in LEAVES.items()
    for param in leaf.params
    for fault, value in faults_of(param).items()
]


def words_with(leaf, param, value):
    """A command line up to the wrong value. What is missing after it is noticed later."""
    if param.param_type_name == "option":
        return [param.opts[0], *[value] * param.nargs]
    places = [other for other in leaf.params if other.param_type_name == "argument"]
    return ["--", *(VALID.get(other.name, "x") for other in places[: places.index(param)]), value]


@pytest.mark.parametrize("name, param, value", WRONG)
def test_a_wrong_value_is_refused_in_one_line(name, param, value, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("folder").mkdir()
    result = command(*name.split(), *words_with(LEAVES[name], param, value))
    assert result.status in (1, 2) and result.out == ""
    (line,) = result.err.splitlines()
    assert line.startswith(f"fairseq-capsule {name.split()[0]}: ")
    assert param.opts[0] in line or value.partition("/")[0] in line
    assert sorted(os.listdir()) == ["file", "folder"]


@pytest.mark.parametrize("name", LEAVES)
def test_an_unknown_option_and_a_missing_value_are_refused_in_one_line(name, command):
    options = [param for param in LEAVES[name].params if param.param_type_name == "option" and not param.is_flag]
    for option in ["--no-such-option", *(option.opts[0] for option in options[:1])]:
        result = command(*name.split(), option)
        assert result.status == (1 if name.split()[0] in SCRIPTS else 2) and result.out == ""
        (line,) = result.err.splitlines()
        assert option in line and ("(see --help)" in line)


@pytest.mark.parametrize("words", [[], ["nonsense"], ["analyze"], ["analyze", "nonsense"], ["score", "--seed", "x"]])
def test_a_wrong_command_is_refused_in_one_line(words, command):
    result = command(*words)
    assert (result.status, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert (words or ["Missing command"])[-1] in result.err or "Missing command" in result.err


@pytest.mark.parametrize("words", [["--ids", "1", "--text", "a"], []])
def test_of_options_that_exclude_each_other_one_is_required(words, world, tmp_path, command):
    result = command("inspect", world / "model.pt", world / "data/bin", "--out", tmp_path, *words)
    assert result.status == 2 and "--ids" in result.err and "--text" in result.err


def test_an_inspection_that_fails_at_once_leaves_the_index(world, tmp_path, command):
    (tmp_path / "index.html").write_text("of an earlier call")
    result = command("inspect", world / "model.pt", world / "data/bin", "--out", tmp_path, "--text", " ")
    assert result.status == 1 and "sentence 1 is empty" in result.err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["of an earlier call"]


def test_a_pipe_is_no_input(tmp_path):
    """Several inputs are read twice."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="pipe or a device; name a file"):
        arguments.input_file(str(tmp_path / "pipe"))


# --- plugins ---------------------------------------------------------------------------------------------------------


def test_a_folder_without_a_plugin_is_refused(tmp_path, command):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "missing"):
        result = command("--user-dir", tmp_path / name, "table")
        (line,) = result.err.splitlines()
        assert result.status == 1 and line.startswith("fairseq-capsule table: error: ") and name in line


def test_a_plugin_is_imported_before_or_after_the_name_of_a_command(world, tmp_path, capsys):
    for number, before in enumerate([True, False]):
        plugin = tmp_path / f"plugin_{number}"
        plugin.mkdir()
        (plugin / "__init__.py").write_text("print('imported')")
        words = ["size", str(world / "model.pt"), "--data", str(world / "data/bin")]
        option = ["--user-dir", str(plugin)]
        assert main([*option, *words] if before else [*words, *option]) == 0
        assert "imported\n" in capsys.readouterr().out
