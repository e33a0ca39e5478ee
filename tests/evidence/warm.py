"""Commands that do not import torch and fairseq again, which takes seconds: a process that has them forks each command.

    python -m tests.evidence.warm FOLDER

replaces the links in FOLDER to commands of fairseq, of this project and of its tokenisers by commands of the same name.
The process imports nothing of this project. A command runs its own file with the arguments, folder, environment, inputs
and outputs of the caller, in the same process group.
"""

import atexit
import contextlib
import gc
import importlib
import json
import logging
import os
import runpy
import signal
import socket
import sys
import threading
from pathlib import Path

COMMANDS = ("fairseq*", "sacremoses", "subword-nmt")
# fairseq's commands themselves configure the logging when they are imported.
IMPORTED = ("torch", "fairseq.trainer", "fairseq.sequence_generator", "hydra.core.override_parser.overrides_parser")
IMPORTED += ("torch._dynamo", "sacrebleu", "sacremoses", "matplotlib.figure", "scipy.stats")
CLIENT = """#!{python} -SE
import array, json, os, signal, socket, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command receives it too
server = socket.socket(socket.AF_UNIX)
server.connect({place!r})
call = json.dumps([{file!r}, sys.argv, os.getcwd(), dict(os.environ), os.getpgrp()]).encode()
server.sendmsg([len(call).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
server.sendall(call)
sys.exit(int(server.recv(10) or 1))
"""


def write_clients(folder, place):
    for client in [path for pattern in COMMANDS for path in folder.glob(pattern)]:
        file = str(client.resolve())
        client.unlink()
        client.write_text(CLIENT.format(python=sys.executable, place=place, file=file))
        client.chmod(0o755)


def next_call(server):
    """Return the file of the next command in a process that has the caller's state. This process never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for the forks
    connection = server.accept()[0]
    while os.fork():
        connection.close()
        connection = server.accept()[0]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(str(status if status >= 0 else 128 - status).encode())
        os._exit(0)
    size, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
    size, call = int.from_bytes(size, "big"), b""
    while len(call) < size:
        call += connection.recv(size - len(call))
    file, sys.argv, work, environment, group = json.loads(call)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    connection.close()
    server.close()
    with contextlib.suppress(PermissionError):  # the group is of another session, as those of torchrun
        os.setpgid(0, group)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(work)
    return file


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name in IMPORTED:
        importlib.import_module(name)
    logging.root.handlers.clear()  # fairseq sets them when it is imported, unless the command did before
    logging.root.setLevel(logging.WARNING)
    gc.freeze()  # a collection would copy the pages that the forks share
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/socket")
        server.listen(64)
        write_clients(folder, f"{folder}/socket")
        print("ready", flush=True)
        file = next_call(server)
    status = 0
    try:
        runpy.run_path(file, run_name="__main__")
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    # Python would free every module, which takes longer than most commands.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
