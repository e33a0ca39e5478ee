"""fairseq's commands and others for shell scripts. They do not import torch each time, which takes seconds.

Each command is a client of a socket in this process. This process forks the command from the server of
`tests/processes.py`, with the arguments, folder, environment, input and outputs of the client. If the client is killed,
so is the command. A test of signals that the command handles itself uses the installed commands.
"""

import atexit
import functools
import importlib
import json
import os
import shutil
import socketserver
import sys
import tempfile
import threading
from multiprocessing.connection import wait
from pathlib import Path

from tests.integration.commands import PATH
from tests.processes import run_program, start_fork

COMMANDS = {
    "ct2-fairseq-converter": ("ctranslate2.converters.fairseq", "main"),
    "fairseq-capsule": ("fairseq_capsule_lab.cli", "main"),
    "fairseq-generate": ("fairseq_cli.generate", "cli_main"),
    "fairseq-hydra-train": ("fairseq_cli.hydra_train", "cli_main"),
    "fairseq-interactive": ("fairseq_cli.interactive", "cli_main"),
    "fairseq-preprocess": ("fairseq_cli.preprocess", "cli_main"),
    "fairseq-train": ("fairseq_cli.train", "cli_main"),
    "reproduce.py": ("experiments.reproduce", "main"),
}
CLIENT = """#!{python} -SE
import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({place!r})
asked = dict(command=sys.argv, folder=os.getcwd(), environment=dict(os.environ), process=os.getpid())
connection.sendall(json.dumps(asked).encode() + b"\\n")
sys.exit(int(connection.recv(10) or 1))
"""
# `python`: a client too, if it runs the file that scripts/reproduce.sh calls.
PYTHON = """#!{python} -SE
import os, sys
folder, words = os.path.dirname(sys.argv[0]), sys.argv[1:]
if words and words[0].endswith("/experiments/reproduce.py"):
    program, *words = f"{{folder}}/reproduce.py", *words[1:]
else:
    program = f"{{folder}}/python3"
os.execv(program, [program, *words])
"""


class _Handler(socketserver.StreamRequestHandler):
    def handle(self):
        asked = json.loads(self.rfile.readline())
        files = [f"/proc/{asked['process']}/fd/{number}" for number in range(3)]  # those of the client, which stay open
        process = start_fork(run_program, _run, asked["command"], asked["folder"], asked["environment"], files)
        if wait([process.sentinel, self.connection]) == [self.connection]:  # the end of the client
            process.kill()
            return
        process.join()
        self.wfile.write(str(process.exitcode & 255).encode())


def _run():
    os.setpgid(0, 0)  # a stub may kill its whole process group
    sys.executable = f"{os.path.dirname(sys.argv[0])}/python3"
    sys.path[:] = filter(None, [*os.environ.get("PYTHONPATH", "").split(":"), *sys.path])  # without the current folder
    module, function = COMMANDS[os.path.basename(sys.argv[0])]
    sys.exit(getattr(importlib.import_module(module), function)())


@functools.cache
def warm_path():
    """Start the server of this process. Return a PATH in which its commands come first.

    The commands are in a virtual environment with the packages of this one: a program that looks for a command next to
    its Python, as `reproduce` does, finds them too.
    """
    environment = Path(tempfile.mkdtemp(prefix="commands"))
    atexit.register(shutil.rmtree, environment)
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), environment)
    (environment / "lib").symlink_to(Path(sys.prefix, "lib"))
    folder = environment / "bin"
    folder.mkdir()
    place = str(environment / "socket")
    for name in COMMANDS:
        (folder / name).write_text(CLIENT.format(python=sys.executable, place=place))
        (folder / name).chmod(0o755)
    (folder / "python").write_text(PYTHON.format(python=sys.executable))
    (folder / "python").chmod(0o755)
    (folder / "python3").symlink_to(sys.executable)
    server = socketserver.ThreadingUnixStreamServer(place, _Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"{folder}:{PATH}"
