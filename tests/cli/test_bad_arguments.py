"""Every wrong value of every argument of every command gives one clear line and no traceback.

The arguments are found in the parsers, and each type of argument has its wrong values. So a new command is covered
automatically.
"""

import os
import shutil
import time
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from capsule_routing.errors import UserError
from fairseq_capsule_lab.cli import COMMANDS, arguments, build_parser, main
from fairseq_capsule_lab.pages.figures import plot_view

# --- valid values ----------------------------------------------------------------------------------------------------

FILES = {
    "checkpoint": "model.pt",
    "checkpoints": "model.pt",
    "inputs": "model.pt",
    "baseline": "model.pt",
    "codes": "codes",
    "folder": "data",
    "data": "data/bin",
    "hypothesis": "first.out",
    "outputs": "first.out",
    "first": "first.out",
    "second": "second.out",
    ("analyze", "alignments"): "links",
    ("export", "checkpoint"): "plain.pt",
    ("export", "data"): "prepared",
    ("inspect", "against"): "model.pt",
    ("score", "against"): "second.out",
    ("seeds", "baseline"): "first.out",
    ("seeds", "system"): "second.out",
    ("serve", "against"): "model.pt",
}
TEXTS = {"table": "duan-table2", "scale": "toy", "split": "test", "lang": "de", "ids": "0,1", "rows": "x", "layer": "1"}
TEXTS["launcher"] = "local"
BY_TYPE = {
    arguments.input_file: "text.de",
    **dict.fromkeys((arguments.input_folder, arguments.data_folder, arguments.prepared_data), "data"),
    arguments.input_path: "text.de",
    arguments.output_folder: "new",
    arguments.output_file: "new.png",
    arguments.language_code: "de",
}
FURTHER = {("seeds", "baseline"): ["second.out"], ("seeds", "system"): ["first.out"]}  # further values of a list
# Arguments that make the commands fast and prevent training.
QUICK = {
    ("toy-corpus",): "--train 5 --valid 2 --test 2",
    ("reproduce",): "--dry-run --scale toy --rows nothing",
    ("score",): "--samples 10",
    ("analyze", "coverage"): "--runs 1",
    ("analyze", "iterations"): "--iterations 1 --beam 1 --option past-future-iterations",
    ("inspect",): "--beam 1",
    ("serve",): "--port 0",
}

# --- faults: name → whether it must be refused, and how to make it from a valid value --------------------------------


def bytes_of(change):
    def make(place, valid):
        place.write_bytes(change(valid.read_bytes() if valid.is_file() else b"a b\n"))
        return place

    return make


def folder_of(pattern, change):
    """Make a copy of a folder with corrupt files."""

    def make(place, valid):
        shutil.copytree(valid, place)
        for path in place.rglob(pattern):
            path.write_bytes(change(path.read_bytes()))
        return place

    return make


def made(function):
    def make(place, valid):
        function(place)
        return place

    return make


def linked(function):
    def make(place, valid):
        function(place.with_name("target"))
        place.symlink_to("target")
        return place

    return make


MISSING = made(lambda place: None)
FOLDER = made(lambda place: place.mkdir())
DANGLING = made(lambda place: place.symlink_to("nothing"))
DEVICE = (True, lambda place, valid: "/dev/full")
NO_NAMES = {
    f"the name {name!r}": (True, lambda place, valid, name=name: name) for name in ["", "a\0b", "a\nb", "\udcff.de"]
}
CONTENTS = {
    "empty": (True, lambda content: b""),
    "truncated": (False, lambda content: content[: len(content) // 2]),
    "binary": (True, lambda content: bytes(range(256)) * 4),
    "latin-1": (True, lambda content: b"sch\xf6n\n" * 5),
    "CRLF": (False, lambda content: content.replace(b"\n", b"\r\n")),
    "NULs": (False, lambda content: bytes(len(content))),
    "line feeds": (True, lambda content: b"\n" * 5),
}
INPUT_FILE = {
    **{name: (refused, bytes_of(change)) for name, (refused, change) in CONTENTS.items()},
    **{"missing": (True, MISSING), "a folder": (True, FOLDER), "a link to nothing": (True, DANGLING)},
    **{"/dev/full": DEVICE, "/dev/zero": (True, lambda place, valid: "/dev/zero"), **NO_NAMES},
    **{"a pipe": (True, made(os.mkfifo)), "a link to a pipe": (True, linked(os.mkfifo))},
}
INPUT_FOLDER = {
    **{
        f"{name} {pattern}": (False, folder_of(pattern, change))
        for name, (_, change) in CONTENTS.items()
        if name in ("empty", "truncated", "binary")
        for pattern in ("dict.*.txt", "*.idx", "*.bin")
    },
    **{"missing": (True, MISSING), "empty": (True, FOLDER), "a link to nothing": (True, DANGLING), **NO_NAMES},
    **{"a file": (True, bytes_of(lambda content: b"a\n")), "/dev/full": DEVICE},
}
OUTPUT_FOLDER = {"a file": (True, bytes_of(lambda content: b"")), "/dev/full": DEVICE, **NO_NAMES}
OUTPUT_FOLDER["below a file"] = (True, lambda place, valid: bytes_of(bytes)(place, valid) / "below")
OUTPUT_FILE = {"a folder": (True, FOLDER), "nowhere": (True, lambda place, valid: place / "nowhere"), **NO_NAMES}
OUTPUT_FILE["/dev/full"] = DEVICE
WORDS = ["", "x", "nan", "inf", "-inf", "-1", "1e999", "1.5.2", "0x10", "١", "1_0", "9" * 30, "9" * 5000]
NUMBER = {repr(text[:10]): (True, lambda place, valid, text=text: text) for text in WORDS}
TEXT = {
    repr(text[:10]): (False, lambda place, valid, text=text: text)
    for text in ["", "\0", "\udcff", "x" * 5000, "a\nb", "../../x", "%s{}", "--", "9" * 30]
}
RANGES = {
    text: (True, lambda place, valid, text=text: text)
    for text in ["1-99999999999", "1-999999999999999999999", "3-1", "1-", "1,,2", "0-99999999"]
}
FAULTS_OF = {
    arguments.input_file: INPUT_FILE,
    **dict.fromkeys((arguments.input_folder, arguments.data_folder, arguments.prepared_data), INPUT_FOLDER),
    arguments.input_path: {**INPUT_FILE, "a folder": (True, FOLDER)},
    arguments.output_folder: OUTPUT_FOLDER,
    arguments.output_file: OUTPUT_FILE,
}


def faults_of(action):
    """The wrong values of an argument by its type. A type that accepts "1" as a number is numeric."""
    if action.choices:
        return {"no choice": (True, lambda place, valid: "nothing-of-that-name")}
    if action.type in FAULTS_OF:
        return FAULTS_OF[action.type]
    if action.type in (arguments.label, arguments.unicode_text, arguments.language_code):
        return TEXT
    found = action.type("1")
    if isinstance(found, float):
        return {name: fault for name, fault in NUMBER.items() if name != "'-1'"}
    return {**NUMBER, **RANGES} if isinstance(found, list) else NUMBER


def leaves():
    """((command, kind), parser) of every command that people call. The prepare scripts call the filters."""
    for command in COMMANDS.keys() - {"filter"}:
        parser = next(iter(build_parser(command)._subparsers._group_actions)).choices[command]
        if parser._subparsers is None:
            yield (command,), parser
        else:
            for kind, leaf in parser._subparsers._group_actions[0].choices.items():
                yield (command, kind), leaf


LEAVES = sorted(leaves(), key=lambda leaf: leaf[0])  # making the parsers takes longer than a refusal


def taking_values(parser):
    return [action for action in parser._actions if action.nargs != 0 and action.dest != "help"]


CASES = [
    pytest.param(names, action.dest, fault, id=f"{' '.join(names)} {action.dest}: {fault}")
    for names, parser in LEAVES
    for action in taking_values(parser)
    for fault in faults_of(action)
]


# --- the tests -------------------------------------------------------------------------------------------------------


def value_of(names, action, world):
    """A valid value of an argument."""
    if action.choices:
        return list(action.choices)[0]
    for key in ((names[0], action.dest), action.dest):
        if key in FILES and action.type in FAULTS_OF:
            return str(world / FILES[key])
    if action.dest in TEXTS:
        return TEXTS[action.dest]
    return str(world / BY_TYPE[action.type]) if action.type in FAULTS_OF else BY_TYPE.get(action.type, "1")


def command_line(names, parser, world, tmp_path, dest=None, wrong=None):
    """The required arguments with valid values, and the wrong value of `dest`."""
    required = [group._group_actions for group in parser._mutually_exclusive_groups if group.required]
    firsts = [actions[0].dest for actions in required if dest not in [action.dest for action in actions]]
    firsts += ["output"] if names == ("average",) else []
    words, places = QUICK.get(names, "").split(), []
    for action in taking_values(parser):
        is_wanted = action.required or not action.option_strings or action.dest in firsts
        if not (is_wanted and action.nargs != "?") and action.dest != dest:
            continue
        further = [str(world / name) for name in FURTHER.get((names[0], action.dest), [])]
        values = [value_of(names, action, world)] * (action.nargs if isinstance(action.nargs, int) else 1) + further
        if action.type in (arguments.output_folder, arguments.output_file):
            values = [str(tmp_path / BY_TYPE[action.type])]
        if action.dest == dest:
            values[0] = str(wrong)
        if not action.option_strings:
            places += values
        elif len(values) == 1:
            words.append(f"{action.option_strings[0]}={values[0]}")
        else:
            words += [action.option_strings[0], *values]
    return [*names, *words, *(["--"] if places else []), *places]


def plotted_if_chosen(view, arrays, chosen):
    return plot_view(view, arrays, chosen) if chosen else Figure()


@pytest.fixture(autouse=True)
def drawings(monkeypatch):
    """Draw only if a place in a view is chosen, and let a server end when it has started."""
    monkeypatch.setattr("fairseq_capsule_lab.pages.server.Server.serve_forever", lambda server: None)
    monkeypatch.setattr("fairseq_capsule_lab.analysis.reports._drawn", lambda figure, suffix: b"")
    monkeypatch.setattr("fairseq_capsule_lab.pages.inspection.plot_view", plotted_if_chosen)


def run(argv, capsys):
    try:
        status = main(argv)
    except SystemExit as error:
        status = error.code
    return status, capsys.readouterr().err


@pytest.mark.parametrize("names, parser", [pytest.param(*leaf, id=" ".join(leaf[0])) for leaf in LEAVES])
def test_valid_arguments_are_accepted(names, parser, world, tmp_path, capsys):
    """With valid values the commands succeed, so the refusals below are due to the wrong value."""
    status, error = run(command_line(names, parser, world, tmp_path), capsys)
    assert status == 0 or names in [("reproduce",), ("doctor",), ("check-data",), ("report",)], error
    assert "Traceback" not in error


@pytest.mark.parametrize("names, dest, fault", CASES)
def test_wrong_values_are_refused_in_one_line(names, dest, fault, world, tmp_path, capsys):
    parser = dict(LEAVES)[names]
    action = next(action for action in taking_values(parser) if action.dest == dest)
    must_refuse, make = faults_of(action)[fault]
    valid = Path(value_of(names, action, world))
    wrong = make(tmp_path / f"wrong{valid.suffix if action.type in FAULTS_OF else ''}", valid)
    start = time.monotonic()
    status, error = run(command_line(names, parser, world, tmp_path, dest, wrong), capsys)
    assert time.monotonic() - start < 60
    assert status in (0, 1, 2)
    assert not (must_refuse and status == 0)
    if status and not (names == ("check-data",) and not error):  # it prints its findings on stdout
        last = error.splitlines()[-1]
        assert last.startswith("fairseq-capsule") and "error: " in last, error
    assert "Traceback" not in error
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize(
    "kind, place, problem",
    [
        (arguments.input_file, "link", "a broken link; name an existing file or folder"),
        (arguments.input_folder, "link", "a broken link; name an existing file or folder"),
        (arguments.input_folder, "file", "not a folder; name a folder"),
        (arguments.input_file, "file", "cannot be read; change its permissions, or name another"),
        (arguments.input_folder, "folder", "cannot be read; change its permissions, or name another"),
    ],
)
def test_inputs_are_refused_with_a_remedy(kind, place, problem, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nothing")
    needed = os.R_OK if kind is arguments.input_file else os.X_OK  # root has every permission
    monkeypatch.setattr(os, "access", lambda path, access: not access & needed)
    with pytest.raises(UserError) as refusal:
        kind(str(tmp_path / place))
    assert str(refusal.value) == f"{tmp_path / place}: {problem}"


def a_plugin(text):
    def make(place, valid):
        place.mkdir()
        (place / "__init__.py").write_bytes(text)
        return place

    return make


PLUGINS = {
    **{name: fault for name, fault in INPUT_FOLDER.items() if fault[0]},
    "without __init__.py": (True, lambda place, valid: valid),
    "raises": (True, a_plugin(b"1 / 0")),
    "raises lines": (True, a_plugin(b"raise ValueError('a\\nb' * 1000)")),
    "no Python": (True, a_plugin(b"def\n")),
    "binary": (True, a_plugin(bytes(range(256)))),
    "lacks a module": (True, a_plugin(b"import nothing_of_that_name")),
    "exits": (True, a_plugin(b"import sys; sys.exit(0)")),
    "is right": (False, a_plugin(b"")),
}


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("fault", PLUGINS)
def test_wrong_plugins_are_refused_in_one_line(fault, before, world, tmp_path, capsys):
    """`--user-dir` belongs to the program, not to a command."""
    must_refuse, make = PLUGINS[fault]
    plugin = f"--user-dir={make(tmp_path / f'plugin_{before}_{len(fault)}', world / 'data')}"
    command = ["score", str(world / "first.out"), str(world / "text.de"), "--samples", "10"]
    status, error = run([plugin, *command] if before else [*command, plugin], capsys)
    assert (status == 0) == (not must_refuse)
    if must_refuse:
        (line,) = error.splitlines()
        assert line.startswith("fairseq-capsule") and "error: " in line and len(line) < 1000


def test_user_dir_without_a_value_is_refused(capsys):
    status, error = run(["size", "--user-dir"], capsys)
    assert status == 2
    assert error.splitlines()[-1] == "fairseq-capsule: error: argument --user-dir: expected one argument"


@pytest.mark.parametrize("names, parser", [pytest.param(*leaf, id=" ".join(leaf[0])) for leaf in LEAVES])
def test_every_argument_has_a_type(names, parser):
    """An argument without a type is checked late or not at all."""
    assert not [action.dest for action in taking_values(parser) if action.type is None and not action.choices]


def test_an_output_file_needs_a_writable_folder(monkeypatch, tmp_path):
    """It is written under a temporary name beside its place, also if it exists. A device is written to."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "there/file")
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path / "there" and may(path, mode))
    for name in ("there/file", "there/new", "link"):
        with pytest.raises(UserError, match="there: cannot be written; change its permissions"):
            arguments.output_file(str(tmp_path / name))
    assert arguments.output_file("/dev/null") == Path("/dev/null")
    (tmp_path / "dangling").symlink_to(tmp_path / "new/file")
    with pytest.raises(UserError, match="dangling: a link to a folder that does not exist"):
        arguments.output_file(str(tmp_path / "dangling"))
