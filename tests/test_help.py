"""`--help` and `-h` print, and change nothing: every script that a user calls, and every command of fairseq-capsule.

A user calls the executable files of scripts/ and experiments/. The others are sourced or called by those.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from fairseq_capsule_lab.cli import COMMANDS, fairseq_capsule, main
from tests.pythons import PYTHONS

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(path for name in ("experiments", "scripts") for path in (ROOT / name).iterdir() if path.is_file())
SCRIPTS = [path for path in FILES if os.access(path, os.X_OK)]
OPTIONS = ("-h", "--help")

REFUSE = '#!/bin/sh\nrefuse() {{ echo "${{0##*/}} $*" >>"{calls}"; exit 1; }}\n'
INSTALLER = REFUSE + 'refuse "$@"\n'
PYTHON = REFUSE + 'case " $* " in *" -m "*) refuse "$@" ;; esac\nexec "{python}" "$@"\n'
TOOLS = {
    **dict.fromkeys(("apt-get", "curl", "npm", "pip", "pip3"), INSTALLER),
    # `python -m pip`, `python -m venv`
    **dict.fromkeys(("python", "python3", *(f"python{version}" for version in PYTHONS)), PYTHON),
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of what a checkout has, without an environment."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("docs", "fairseq_capsule", "fairseq_capsule_lab", "experiments", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.glob("[!.]*"):
        if path.is_file():
            shutil.copy(path, folder)
    return folder


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """A file of command lines. Stand-ins of the tools that install or download add their own to it, and fail."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in TOOLS.items():
        (tools / name).write_text(text.format(calls=tmp_path / "calls", python=sys.executable))
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "calls").touch()
    return tmp_path / "calls"


def test_every_command_with_a_bleu_takes_another_tokeniser():
    """A command that ignores case computes scores. Of these `analyze cases` has chrF alone."""
    commands, found = [fairseq_capsule], {}
    while commands:
        command = commands.pop()
        context = click.Context(command)
        if isinstance(command, click.Group):
            commands += [command.get_command(context, name) for name in command.list_commands(context)]
        names = {option for parameter in command.params for option in parameter.opts}
        if "--lowercase" in names:
            found[command.name] = "--bleu-tokenizer" in names
    assert found == {**dict.fromkeys(("score", "seeds", "evaluate", "lengths", "iterations"), True), "cases": False}


def contents(folder):
    return {path: path.is_dir() or path.read_bytes() for path in folder.rglob("*")}


def test_a_file_is_executable_if_it_says_what_executes_it():
    assert SCRIPTS == [path for path in FILES if path.read_bytes().startswith(b"#!")] != []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_print_their_help_and_change_nothing(script, checkout, calls):
    before = contents(checkout)
    for option in OPTIONS:
        words = [f"{script.parent.name}/{script.name}", option]
        done = subprocess.run(words, cwd=checkout, capture_output=True, text=True)
        assert contents(checkout) == before
        assert (done.returncode, done.stderr, calls.read_text()) == (0, "", "")
        assert script.name in done.stdout


def leaves(command, name=""):
    """Yield the name of each command without commands of its own, such as `analyze lengths`, and the command."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for part in command.list_commands(context):
        yield from leaves(command.get_command(context, part), f"{name} {part}".strip())


LEAVES = dict(leaves(fairseq_capsule))
NAMES = sorted({*LEAVES, *COMMANDS, ""})


@pytest.mark.parametrize("name", NAMES)
def test_commands_print_their_help_and_change_nothing(name, calls, tmp_path, monkeypatch, capsys):
    """The help ends with an example, whose options exist."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for option in OPTIONS:
        assert main([*name.split(), option]) == 0
        printed = capsys.readouterr()
        assert (printed.err, calls.read_text()) == ("", "")
        assert printed.out.startswith(" ".join(["Usage: fairseq-capsule", *name.split()]))
    example = shlex.split(printed.out.splitlines()[-1])
    assert example[: len(name.split()) + 1] == ["fairseq-capsule", *name.split()]
    if name in LEAVES:
        options = {option for param in LEAVES[name].params for option in param.opts}
        assert {word for word in example if word.startswith("--")} <= options
    assert not any((tmp_path / "here").iterdir())


WITHOUT_LIBRARIES = """
import sys
sys.modules |= dict.fromkeys(("torch", "fairseq", "hydra", "numpy", "matplotlib", "sacrebleu", "transformers"))
from fairseq_capsule_lab.cli import main
print([name for name in sys.argv[1:] if main([*name.split(), "--help"])], file=sys.stderr)
"""


def test_the_help_needs_no_large_library():
    """So it is there in 0.3 seconds."""
    names = [name for name in NAMES if not name.startswith(("analyze ", "filter ", "prepare "))]
    done = subprocess.run([sys.executable, "-c", WITHOUT_LIBRARIES, *names], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_shell_completes_commands_and_options():
    variables = {
        "_FAIRSEQ_CAPSULE_COMPLETE": "bash_complete",
        "COMP_WORDS": "fairseq-capsule size --us",
        "COMP_CWORD": "2",
    }
    command = [sys.executable, "-m", "fairseq_capsule_lab.cli"]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("plain,--user-dir\n", "")
