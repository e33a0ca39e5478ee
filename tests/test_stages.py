"""Folders that are made by stages: interruptions, locks, settings, errors."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from capsule_routing.errors import UserError
from fairseq_capsule_lab import stages
from fairseq_capsule_lab.manifests import counts, fingerprint
from fairseq_capsule_lab.processes import PATIENCE, command_line, run_in_group, show
from fairseq_capsule_lab.stages import Folder, Stage
from tests.integration.commands import wait_for

SETTINGS = {"limit": "none"}
# A command with one stage, whose process writes its number to the file `child` and sleeps.
COMMAND = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as in a terminal
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from fairseq_capsule_lab.processes import output_of
from fairseq_capsule_lab.stages import Folder, Stage

def make(unfinished, log):
    words = ["sh", "-c", "echo $$ >.child; mv .child child; exec sleep 60"]
    unfinished.write_bytes(b"".join(output_of(words, log, Path.cwd(), os.environ)))

with Folder("out", "x").locked() as folder:
    folder.keep_settings({})
    folder.run(Stage("texts", make))
"""


def text(content):
    return lambda unfinished, log: unfinished.write_text(content)


def failing(unfinished, log):
    unfinished.mkdir()
    log.write(b"first\ntoo bad\n")
    raise subprocess.CalledProcessError(3, ["x"])


def made(*some, settings=SETTINGS, out="out"):
    with Folder(out, "x").locked() as folder:
        folder.keep_settings(settings)
        folder.run(*some)
    return folder


def refused(*some, **options):
    with pytest.raises(UserError) as error:
        made(*some, **options)
    assert str(error.value).isprintable()
    return str(error.value)


def names(path="out"):
    return sorted(os.listdir(path))


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def start(tmp_path):
    """Start Python code in the folder above `out`."""
    running = []

    def run(code, ready="child"):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        running.append(subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, **pipes))
        if ready:
            wait_for(tmp_path / ready, running[-1])
        return running[-1]

    yield run
    for process in running:
        process.kill()
        process.communicate()


def has_ended(number, seconds=10):
    """Whether a process ends soon. It exists until its parent reads its status: of an orphan, the first process."""
    for _ in range(100 * seconds):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_what_has_its_name_is_complete_and_stays(capsys):
    seen = []

    def make(unfinished, log):
        seen.append(names())
        unfinished.mkdir()
        (unfinished / "train.en").write_text("a\nb\n")

    made(Stage("raw", make), Stage("codes", text("a b\n")))
    assert names() == ["codes", "raw", "settings.json"] and "raw" not in seen[0]
    assert open("out/settings.json").read() == '{\n "script": "x",\n "limit": "none"\n}\n'
    made(Stage("raw", make), Stage("codes", text("other")))
    assert len(seen) == 1 and open("out/codes").read() == "a b\n"
    said = capsys.readouterr().out.splitlines()
    assert said == ["raw: train.en 2", "codes: 1 lines", "raw: done before", "codes: done before"]


def test_other_settings_are_refused_once_a_stage_is_finished():
    refused(Stage("raw", failing))
    assert names() == ["raw.log", "settings.json.part"]
    other = {"limit": "9", "codes": "0123456789ab", "train": "0123456789ab 0123456789ac"}
    made(Stage("raw", text("")), settings=other)
    assert names() == ["raw", "settings.json"]
    before = "out was prepared with limit 9,other codes,other train text, not limit none"
    assert refused() == f"{before}: delete it, or name another folder"
    assert (
        refused(settings={**other, "codes": "123456789abc"})
        == "out was prepared with other codes: delete it, or name another folder"
    )


def test_an_output_of_another_program_is_refused(place):
    os.mkdir("out")
    open("out/raw", "w").close()
    message = f"{place}/out/raw exists, but was not made by this script: name another folder"
    assert refused(Stage("raw", text(""))) == message
    open("out/settings.json", "w").write('{"config": {}}')  # of a training
    assert refused() == f"{place}/out/settings.json: not of this script: name another folder"


def test_a_path_that_is_not_utf8_is_the_same_setting_again():
    made(settings={"from": os.fsdecode(b"\xe9t\xe9")})
    made(Stage("raw", text("")), settings={"from": os.fsdecode(b"\xe9t\xe9")})
    made(settings={"from": os.fsdecode(b"\xe9t\xe9")})


def failing_with(error):
    def make(unfinished, log):
        raise error

    return make


@pytest.mark.parametrize(
    "make, reason, logged",
    [
        (failing, "too bad", "first\ntoo bad\n"),
        (failing_with(RuntimeError("a\nb")), r"a\nb", "Traceback"),
    ],
)
def test_a_stage_that_fails_says_why_and_leaves_its_log(place, monkeypatch, make, reason, logged):
    log = f"(full log: {place}/out/raw.log); fix the cause and run the same command again"
    assert refused(Stage("raw", make)) == f"stage 'raw' failed: {reason} {log}"
    assert names() == ["raw.log", "settings.json.part"] and (place / "out/raw.log").read_text().startswith(logged)
    monkeypatch.setattr(stages, "FREE", 2**80)
    assert refused(Stage("raw", make)) == f"stage 'raw' failed: No space left on device {log}"


def test_an_error_of_the_input_is_passed_on_and_leaves_no_part(place):
    def make(unfinished, log):
        unfinished.touch()
        raise UserError("a.en, line 2: empty")

    assert refused(Stage("raw", make)) == "a.en, line 2: empty"
    assert names() == ["raw.log", "settings.json.part"]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_process_of_a_stage(start, place, number):
    process = start(COMMAND)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert has_ended(int((place / "child").read_text()))
    assert "texts" not in names()
    made(Stage("texts", text("")), settings={})
    assert names() == ["settings.json", "texts"]


def test_a_second_command_waits_for_the_first(start, place):
    first = start(COMMAND)
    second = start(COMMAND.replace("exec sleep 60", "true"), ready=None)
    assert second.stdout.readline() == "waiting for another run in out\n"
    first.kill()
    assert second.wait(timeout=60) == 0 and names() == ["settings.json", "texts"]


def test_counts_of_a_stage(tmp_path):
    (tmp_path / "codes").write_text("a\nb\nno end")
    (tmp_path / "sentencepiece.model").write_bytes(b"x" * 70)
    for name in ("raw", "bin"):
        (tmp_path / name).mkdir()
    (tmp_path / "raw/train.de").write_text("1\n")
    (tmp_path / "raw/test.en").write_text("")
    (tmp_path / "raw/PARTS").write_text("news\t1 of 2\n")
    line = "| INFO | fairseq_cli.preprocess | [en] bpe/train.en: 300 sents, 1000 tokens, 0.5% replaced (by <unk>)\n"
    (tmp_path / "bin/preprocess.log").write_text(f"x\n{line}{line.replace('train', 'valid')}")
    assert [counts(tmp_path / name) for name in ("codes", "sentencepiece.model", "raw", "bin")] == [
        *("2 lines", "70 bytes", "test.en 0, train.de 1\n  news: 1 of 2"),
        "train.en 300 (0.5% <unk>), valid.en 300 (0.5% <unk>)",
    ]


def test_a_manifest_names_sources_and_files():
    def make(unfinished, log):
        unfinished.mkdir()
        for name, content in {"SHA256SUMS": "abc  train.gz\n", "PARTS": "train.gz\t5\n", "train.de": "1\n2\n"}.items():
            (unfinished / name).write_text(content)

    def binarise(unfinished, log):
        unfinished.mkdir()
        (unfinished / "train.bin").write_text("x\n")

    with Folder("out", "x").locked() as folder:
        folder.keep_settings({"from": "a folder"})
        folder.run(Stage("raw", make), Stage("bin", binarise))
        folder.run(folder.manifest(command_line("prepare.sh", ["it's"]), counted=3))
    manifest = json.loads((folder.path / "manifest.json").read_text())
    assert manifest["command"] == "prepare.sh 'it'\\''s'" and "torch" in manifest["versions"]
    assert manifest["sources"] == [{"name": "train.gz", "sha256": "abc"}]
    assert manifest["texts"] == [{"name": "train.gz", "taken": "5"}] and manifest["counted"] == 3
    sha = subprocess.check_output(["sha256sum", "out/raw/train.de"], text=True)[:64]
    assert manifest["files"]["raw/train.de"] == {"sha256": sha, "lines": 2}
    assert list(manifest["files"]) == ["bin/train.bin", "raw/train.de", "settings.json"]
    assert list(manifest["files"]["bin/train.bin"]) == ["sha256"]
    assert fingerprint(folder.path / "raw/train.de") == sha[:12]


def test_an_interruption_of_the_start_ends_the_command(monkeypatch):
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            started.append(psutil.Process(self.pid))
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_in_group(["sleep", "600"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert not started[0].is_running()


IGNORING = "trap '' TERM INT; sleep 600 & echo $! >child; touch ready; wait; sleep 600"


def test_an_interruption_kills_a_group_that_does_not_end(tmp_path, monkeypatch):
    """The second interruption does not wait."""
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGALRM)

    def interrupt(*_):
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        raise KeyboardInterrupt

    def wait_and_interrupt():
        while not Path("ready").exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGALRM)

    signal.signal(signal.SIGALRM, interrupt)
    threading.Thread(target=wait_and_interrupt).start()
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_in_group(["bash", "-c", IGNORING])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begin < PATIENCE
    with contextlib.suppress(psutil.NoSuchProcess):
        child = psutil.Process(int(Path("child").read_text()))  # the kill of a grandchild takes a moment
        while child.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() - begin < PATIENCE
            time.sleep(0.02)


def test_with_keep_going_only_what_needs_a_failed_stage_is_left_out(tmp_path, capsys):
    def fail(unfinished, log):
        log.write(b"no data\n")
        raise subprocess.CalledProcessError(1, ["make"])

    folder = Folder(str(tmp_path / "runs"))
    with folder.locked():
        made = [
            Stage("a/first", fail, log="log/first.log"),
            Stage("second", lambda unfinished, log: unfinished.touch(), needs=("a/first",)),
            Stage("b/third", lambda unfinished, log: (tmp_path / "runs/b/third").touch(), log="log/third.log"),
        ]
        assert [stage.output for stage in folder.run(*made, keep_going=True)] == ["a/first", "second"]
    printed = capsys.readouterr()
    assert "stage 'a/first' failed: no data (full log: " in printed.err
    assert "second: left out, since a/first is missing" in printed.err and "b/third: done" in printed.out
    assert (tmp_path / "runs/log/first.log").exists() and not (tmp_path / "runs/second").exists()


def test_a_shown_command_can_be_pasted(tmp_path, capsys):
    words = ["printf", "%s|", "a b", "$HOME", "it's"]
    (tmp_path / "a folder").mkdir()
    show(words, tmp_path / "a folder", "an output", gpus="0,1")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("+ ")
    subprocess.run(["bash", "-c", line[2:]], check=True)
    assert (tmp_path / "a folder/an output").read_text() == "a b|$HOME|it's|"
