"""Shared helpers of the tests of `scripts/prepare-*.sh`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from capsule_routing.text.folders import preparations
from fairseq_capsule_lab.corpora.archives import CHECKSUMS
from tests.integration.commands import REPOSITORY
from tests.integration.warm_commands import warm_path

# Without variables for GPUs and Slurm, which the machine of the tests may set.
ELSEWHERE = ("SLURM_", "MASTER_", "NODE_RANK", "CUDA_VISIBLE_DEVICES")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(ELSEWHERE)}
# A stub of `fairseq-capsule`, in which one stage of a preparation writes half a file and then ends otherwise.
STOPPED = """#!{python}
import os, signal, sys

from fairseq_capsule_lab import cli, stages

run = stages.Folder._run


def stop(unfinished, log):
    unfinished.write_text("half")
    {ending}


def run_or_stop(folder, stage):
    run(folder, stage._replace(make=stop) if stage.output == {stage!r} else stage)


stages.Folder._run = run_or_stop
sys.exit(cli.main())
"""
SCRIPTS = REPOSITORY / "scripts"


def copy_checkout(folder, *copied):
    """Fill a folder with the scripts and `copied`, and with links to the other parts of the checkout.

    It has no `.venv`, so that the scripts use the commands of PATH, which can be warm or stubs.
    """
    for name in ("fairseq_capsule", "fairseq_capsule_lab", "experiments", "configs"):
        if name not in copied:
            (folder / name).symlink_to(REPOSITORY / name)
    for name in ("scripts", *copied):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


class Workplace:
    """A copy of the scripts outside the checkout, so that stubs can replace the tools that they call.

    The tools are those of `path`, without a `path` the warm commands.
    """

    def __init__(self, root, script, path=None):
        self.root, self.stubs, self.out, self.script = root, root / "stubs", root / "out", script
        self.stubs.mkdir()
        shutil.copytree(SCRIPTS, root / "scripts")
        self.path = f"{self.stubs}:{path or warm_path()}"
        self.checksums = Path(shutil.copy(CHECKSUMS, root))
        self.stub("nvidia-smi", "exit 9")  # hide the GPUs

    def stub(self, tool, body):
        (self.stubs / tool).write_text(f"#!/bin/bash\n{body}\n")
        (self.stubs / tool).chmod(0o755)

    def fail(self, stage, ending="raise RuntimeError('out of luck')"):
        """Let a stage of a preparation fail, or end in the way of `ending`."""
        (self.stubs / "fairseq-capsule").write_text(STOPPED.format(python=sys.executable, stage=stage, ending=ending))
        (self.stubs / "fairseq-capsule").chmod(0o755)

    def kill(self, stage):
        """Let a stage of a preparation kill the script and all its processes."""
        self.fail(stage, "os.killpg(0, signal.SIGKILL)")

    def kill_at(self, stage):
        """Let a script of bash kill itself and all its processes where a stage is half made."""
        half = f'[[ ${{!#}} != {stage} ]] || {{ rm -rf "$1"; echo half >"$1"; kill -9 0; }}'
        self.stub("mv", f'{half}\nPATH=${{PATH#*:}} exec mv "$@"')

    def stub_library(self, module, code):
        """Replace a Python module. It must not be one that `warm_commands` imports."""
        (self.root / "libraries").mkdir(exist_ok=True)
        (self.root / "libraries" / f"{module}.py").write_text(code)

    def unstub(self):
        shutil.rmtree(self.root / "libraries", ignore_errors=True)
        for tool in self.stubs.iterdir():
            if tool.name != "nvidia-smi":
                tool.unlink()

    def start(self, *command, **environment):
        return subprocess.Popen(
            [str(word) for word in command],
            cwd=self.root,
            env={**ENVIRONMENT, **self.environment(), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a stub may kill its whole process group
        )

    def environment(self):
        libraries, checksums = str(self.root / "libraries"), str(self.checksums)
        return {"PATH": self.path, "PYTHONPATH": libraries, "CAPSULE_CHECKSUMS": checksums}

    def run(self, *command, **environment):
        return ended(self.start(*command, **environment))

    def prepare(self, *arguments, **environment):
        return self.run(f"scripts/{self.script}", *arguments, **environment)

    def prepared(self, *arguments):
        """Run to the end into `out`. The returned process has the folder as `out`."""
        process = self.prepare(*arguments, "out")
        assert process.returncode == 0, process.errors
        process.out = self.out
        return process

    def refused(self, process, *wanted):
        """Check that the process failed with one line that contains `wanted`, after warnings or none."""
        assert process.returncode not in (0, None)
        *warnings, line = process.errors.splitlines()
        assert all(warning.startswith(f"{self.script}: warning: ") for warning in warnings), process.errors
        assert line.startswith(f"{self.script}: ")
        for text in wanted:
            assert text in line, process.errors
        return True


def ended(process):
    """Wait for a process. It gets the attributes `output`, `shown`, the commands that it showed, and `errors`."""
    process.output, errors = process.communicate(timeout=600)
    lines = errors.splitlines(keepends=True)
    process.shown = [line for line in lines if line.startswith("+ ")]
    process.errors = "".join(line for line in lines if not line.startswith("+ "))
    return process


def check_reading(out):
    """Check that the raw text of the validation and test sets becomes the subwords in the folder, which has some."""
    stage = next(name for name in ("bpe", "characters") if (out / name).is_dir())
    languages = [file.name.split(".")[1] for file in sorted((out / "bin").glob("dict.*.txt"))]
    read_lines = 0
    for text in preparations(out / "bin", *languages):
        for file in sorted((out / stage).glob(f"[tv][ea][sl]*.{text.language}")):  # test, valid
            raw = read(out / "raw" / file.name)
            assert [text.encode(line) for line in raw] == read(file), file
            read_lines += len(raw)
    assert read_lines


def contents(out):
    """Return every file of a prepared folder except logs, which contain times."""
    files = (file for file in out.rglob("*") if file.is_file() and file.suffix != ".log")
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def read(file):
    return file.read_text(encoding="utf-8").splitlines()
