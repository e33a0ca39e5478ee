"""Commands in separate processes that do not import torch and fairseq again, which takes seconds of CPU time.

A server process imports both once. Each command runs in a fork of it, with its own arguments, folder, environment,
input and output, as `python -m` runs it.
"""

import atexit
import contextlib
import functools
import importlib
import multiprocessing
import os
import runpy
import sys
import tempfile
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from subprocess import CompletedProcess

FORKS = multiprocessing.get_context("forkserver")
# fairseq's commands themselves are not imported: each configures the logging when it is imported.
# The server ignores what it cannot import; tests/test_processes.py notices it.
PRELOADED = [
    "fairseq",
    "fairseq.trainer",
    "hydra.core.override_parser.overrides_parser",
    "matplotlib.pyplot",
    "sacrebleu",
    "sentencepiece",
    "torch._dynamo",
    "tests.warm_fairseq",
]
FORKS.set_forkserver_preload(PRELOADED)


@functools.cache
def _start_server():
    with contextlib.chdir(Path(__file__).parent.parent):  # it imports `tests` from its folder
        forkserver.ensure_running()


def start_fork(target, *arguments):
    """Call `target` with `arguments` in a fork of the server. Returns the process."""
    _start_server()
    process = FORKS.Process(target=_in_fork, args=(target, arguments))
    process.start()
    return process


def _in_fork(target, arguments):
    # Without this, torch's loaders of data would be forks of a second server, which imports torch and fairseq again.
    # The real command forks itself.
    multiprocessing.set_start_method(None, force=True)
    target(*arguments)


def run_forked(module, function, arguments, cwd, env=None, stdin=None, one_output=False):
    """Run `module.function()` with `arguments` as its command line.

    Returns:
        a `CompletedProcess` with standard output and standard error as text, both in `stdout` if `one_output`.
    """
    command = [module, *map(str, arguments)]
    return _forked(partial(_call, module, function), command, cwd, env, stdin, one_output)


def run_script(script, arguments, cwd=None):
    """Run a Python file with `arguments` as its command line. Returns the same as `run_forked`."""
    command = [str(script), *map(str, arguments)]
    return _forked(partial(_run_file, str(script)), command, cwd or os.getcwd())


def run_code(code, arguments, cwd=None, env=None, one_output=False):
    """Run a program that is given as text, as `python -c` does. Returns the same as `run_forked`."""
    program = partial(exec, code, {"__name__": "__main__"})
    return _forked(program, ["-c", *map(str, arguments)], cwd or os.getcwd(), env, one_output=one_output)


def run_without_fairseq(code, cwd):
    """Run a program that is given as text and that cannot import fairseq. Returns the same as `run_forked`."""
    return _forked(partial(_hide_fairseq_and_run, code), ["-c"], cwd)


def _hide_fairseq_and_run(code):
    for name in [*sys.modules, "fairseq"]:  # the server has imported fairseq's modules, each of which would be found
        if name == "fairseq" or name.startswith("fairseq."):
            sys.modules[name] = None
    exec(code, {"__name__": "__main__"})


def _forked(program, command, cwd, env=None, stdin=None, one_output=False):
    with tempfile.TemporaryDirectory() as folder:
        given, output, errors = (Path(folder, name) for name in ("stdin", "stdout", "stderr"))
        given.write_text(stdin or "", encoding="utf-8")
        output.touch()
        errors.touch()
        files = (given, output, output if one_output else errors)
        process = start_fork(run_program, program, command, cwd, {**os.environ, **(env or {})}, files)
        process.join()
        return CompletedProcess(
            command, process.exitcode, output.read_text(encoding="utf-8"), errors.read_text(encoding="utf-8")
        )


def run_program(program, command, cwd, environment, files):
    """Call `program` with `command` as its words, and with three files as its input and outputs."""
    for descriptor, (file, mode) in enumerate(zip(files, "raa")):
        with open(file, mode) as opened:
            os.dup2(opened.fileno(), descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = command
    try:
        program()
    finally:
        atexit._run_exitfuncs()  # a process of `multiprocessing` leaves them out; TensorBoard's files need them


def _call(module, function):
    sys.exit(getattr(importlib.import_module(module), function)())


def _run_file(path):
    sys.path.insert(0, os.path.dirname(path))  # as `python FILE` does
    runpy.run_path(path, run_name="__main__")
