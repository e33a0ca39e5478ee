"""Every command works with valid arguments, and a wrong argument of each type is refused in one line."""

import os
from pathlib import Path

import click
import pytest
from matplotlib.figure import Figure

from capsule_routing.errors import UserError
from fairseq_capsule_lab.cli import SCRIPTS, arguments, main
from tests.libraries import library
from tests.test_help import LEAVES

MODEL = Path(__file__).parents[2] / "examples/ja-en"
# Words that make each command succeed. {0} is a folder for results.
WORKS = {
    "analyze lengths": "first.out second.out --intervals 2,4 --names A --names B --out {0}",
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
    "score": "first.out text.de --samples 10 --against second.out --output {0}/plain",
    "seeds": "text.de --baseline first.out:second.out --system second.out:first.out --system *.out",
    "serve": "model.pt data/bin --port 0 --against plain.pt",
    "size": "model.pt --data data/bin --json",
    "toy-corpus": "{0} --train 5 --valid 2 --test 2 --alignments",
}
ELSEWHERE = {"check-data", "distill", "doctor", "evaluate", "report", "train"}  # with tests of their own


@pytest.fixture(autouse=True)
def drawings(monkeypatch):
    """Draw nothing, and let a server end when it has started."""
    monkeypatch.setattr("fairseq_capsule_lab.pages.server.Server.serve_forever", lambda server: None)
    monkeypatch.setattr("fairseq_capsule_lab.analysis.output._drawn", lambda figure, suffix: b"")
    monkeypatch.setattr("fairseq_capsule_lab.pages.inspected.plot_view", lambda *view: Figure())


def test_every_command_is_tried():
    names = {name for name in LEAVES if not name.startswith(("filter", "prepare"))}
    assert names == WORKS.keys() | ELSEWHERE


def require_libraries(name):
    """Skip a test of a command for which a library is missing."""
    if name == "analyze coverage":
        library("eflomal")


@pytest.mark.parametrize("name", WORKS)
def test_valid_arguments_are_accepted(name, world, tmp_path, monkeypatch, command):
    require_libraries(name)
    monkeypatch.chdir(world)
    result = command(*name.split(), *WORKS[name].format(tmp_path).split())
    assert result.status == 0, result.err


# --- wrong values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line, named",
    [
        ("inspect --beam 0", "--beam"),
        ("analyze iterations --lenpen nan", "--lenpen"),
        ("analyze iterations --lenpen inf", "--lenpen"),
        ("analyze iterations --lenpen x", "--lenpen"),
        ("analyze iterations --iterations 3-1", "--iterations"),
        ("export --to nothing", "--to"),
        ("score --lang ../de", "--lang"),
        ("evaluate --split=", "--split"),
        ("toy-corpus --corpus headlines --alignments new", "--alignments"),
        ("score missing", "missing"),
        ("score folder", "folder"),
        ("evaluate file", "file"),
        ("evaluate missing", "missing"),
        ("inspect --out=", "--out"),
        ("export file folder file", "file: exists already"),
    ],
)
def test_a_wrong_value_of_each_type_is_refused_in_one_line(line, named, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("folder").mkdir()
    result = command(*line.split())
    assert result.status in (1, 2) and result.out == ""
    (message,) = result.err.splitlines()
    assert message.startswith(f"fairseq-capsule {line.split()[0]}: ") and named in message
    assert sorted(os.listdir()) == ["file", "folder"]


def test_no_option_is_a_number_of_click():
    """For click, nan is in every range."""
    kinds = [param.type for leaf in LEAVES.values() for param in leaf.params]
    assert not any(isinstance(kind, click.types.FloatParamType) for kind in kinds)


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


@pytest.mark.parametrize("given", [True, False])
def test_an_assignment_has_alignments_or_text_to_align(given, world, tmp_path, command):
    text = tmp_path / "text"
    text.write_text("a\n")
    words = ["--alignments", text, "--train", text, text] if given else []
    checkpoint = [world / "model.pt", "--data", world / "data/bin"]
    result = command("analyze", "assignment", *checkpoint, "--out", tmp_path / "out", *words)
    assert result.status == 2 and "--alignments" in result.err and "--train" in result.err


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
        result = command("--user-dir", tmp_path / name, "size")
        (line,) = result.err.splitlines()
        assert result.status == 1 and line.startswith("fairseq-capsule size: error: ") and name in line


def test_a_plugin_is_imported_before_or_after_the_name_of_a_command(world, tmp_path, capsys):
    for number, before in enumerate([True, False]):
        plugin = tmp_path / f"plugin_{number}"
        plugin.mkdir()
        (plugin / "__init__.py").write_text("print('imported')")
        words = ["size", str(world / "model.pt"), "--data", str(world / "data/bin")]
        option = ["--user-dir", str(plugin)]
        assert main([*option, *words] if before else [*words, *option]) == 0
        assert "imported\n" in capsys.readouterr().out
