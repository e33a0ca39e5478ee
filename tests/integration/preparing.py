"""Shared helpers of the tests of `scripts/prepare-*.sh`."""

import os
import shutil
import subprocess

from tests.integration.commands import REPOSITORY
from tests.integration.warm_commands import warm_path

# Without variables for GPUs and Slurm, which the machine of the tests may set.
ELSEWHERE = ("SLURM_", "MASTER_", "NODE_RANK", "CUDA_VISIBLE_DEVICES")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(ELSEWHERE)}
# For the stub of python: the real one checks the folders that a script writes.
CHECKS_FOLDERS = '[[ $* != *fairseq_capsule_lab.runs* ]] || PATH=${PATH#*:} exec python "$@"'
SCRIPTS = REPOSITORY / "scripts"


def copy_checkout(folder, *copied):
    """Fill a folder with the scripts and `copied`, and with links to the other parts of the checkout.

    It has no `.venv`, so that the scripts use the commands of PATH, which can be warm or stubs.
    """
    for name in ("fairseq_capsule", "fairseq_capsule_lab", "benchmarks", "configs", "results", "workflow"):
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
        self.stub("nvidia-smi", "exit 9")  # hide the GPUs

    def stub(self, tool, body):
        (self.stubs / tool).write_text(f"#!/bin/bash\n{body}\n")
        (self.stubs / tool).chmod(0o755)

    def unstub(self):
        for tool in self.stubs.iterdir():
            if tool.name != "nvidia-smi":
                tool.unlink()

    def start(self, *command, **environment):
        return subprocess.Popen(
            [str(part) for part in command],
            cwd=self.root,
            env={**ENVIRONMENT, "PATH": self.path, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a stub may kill its whole process group
        )

    def run(self, *command, **environment):
        process = self.start(*command, **environment)
        process.output, process.errors = process.communicate(timeout=600)
        return process

    def prepare(self, *arguments, **environment):
        return self.run(f"scripts/{self.script}", *arguments, **environment)

    def prepared(self, *arguments):
        """Run to the end into `out`. The returned process has the folder as `out`."""
        process = self.prepare(*arguments, "out")
        assert process.returncode == 0, process.errors
        process.out = self.out
        return process

    def common(self, code):
        """Run shell code that uses the functions of `common.sh`."""
        return self.run("bash", "-c", f"source scripts/common.sh; {code}")

    def refused(self, process, *wanted):
        """Check that the process failed with one line that contains `wanted`."""
        assert process.returncode not in (0, None)
        assert process.errors.count("\n") == 1, process.errors
        assert process.errors.startswith(f"{self.script}: ")
        for text in wanted:
            assert text in process.errors
        return True


def contents(out):
    """Return every file of a prepared folder except logs, which contain times."""
    files = (file for file in out.rglob("*") if file.is_file() and file.suffix != ".log")
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def read(file):
    return file.read_text(encoding="utf-8").splitlines()
