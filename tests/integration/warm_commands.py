"""fairseq's commands and `fairseq-capsule` for shell scripts. They do not import torch each time, which takes seconds.

Each command is a client of a socket in this process. This process forks the command from the server of
`tests/processes.py`, with the arguments, folder, environment, input and outputs of the client.
"""

import importlib
import json
import os
import socketserver
import sys
import threading
from contextlib import contextmanager

from tests.processes import SERVER

COMMANDS = {
    "fairseq-capsule": ("fairseq_capsule.cli", "main"),
    "fairseq-generate": ("fairseq_cli.generate", "cli_main"),
    "fairseq-hydra-train": ("fairseq_cli.hydra_train", "cli_main"),
    "fairseq-interactive": ("fairseq_cli.interactive", "cli_main"),
    "fairseq-preprocess": ("fairseq_cli.preprocess", "cli_main"),
    "fairseq-train": ("fairseq_cli.train", "cli_main"),
}
CLIENT = """#!{python} -SE
import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({place!r})
asked = dict(command=sys.argv, folder=os.getcwd(), environment=dict(os.environ), process=os.getpid())
connection.sendall(json.dumps(asked).encode() + b"\\n")
sys.exit(int(connection.recv(10) or 1))
"""


class _Handler(socketserver.StreamRequestHandler):
    def handle(self):
        process = SERVER.Process(target=_run, args=(json.loads(self.rfile.readline()),))
        process.start()
        process.join()
        self.wfile.write(str(process.exitcode & 255).encode())


def _run(asked):
    for descriptor, mode in enumerate("raa"):  # the input and outputs of the client, which it keeps open
        with open(f"/proc/{asked['process']}/fd/{descriptor}", mode) as opened:
            os.dup2(opened.fileno(), descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.argv = asked["command"]
    module, function = COMMANDS[os.path.basename(sys.argv[0])]
    sys.exit(getattr(importlib.import_module(module), function)())


@contextmanager
def warm_commands(folder):
    """Make the commands in a folder. Put it first in PATH. They work within the context."""
    place = str(folder / "socket")
    for name in COMMANDS:
        (folder / name).write_text(CLIENT.format(python=sys.executable, place=place))
        (folder / name).chmod(0o755)
    with socketserver.ThreadingUnixStreamServer(place, _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield folder
        finally:
            server.shutdown()
            os.unlink(place)
