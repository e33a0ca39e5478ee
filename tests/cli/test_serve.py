"""`fairseq-capsule serve`: its port, its end, and what it refuses before it loads a model."""

import functools
import signal
import socket
import subprocess
import sys
import urllib.request


def arguments(world, *more):
    return ["serve", world / "model.pt", world / "data/bin", *more]


def test_the_server_runs_until_it_is_stopped(world):
    words = [str(word) for word in arguments(world, "--port", 0, "--against", world / "plain.pt")]
    command = [sys.executable, "-m", "fairseq_capsule_lab.cli", *words]
    # A shell that starts the tests in the background ignores Ctrl-C, and so would the server.
    heeds = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, preexec_fn=heeds)
    try:
        address = process.stdout.readline().split()[0]
        with urllib.request.urlopen(address, b"text=a+b&beam=1", timeout=60) as answer:
            assert b"<h2><bdi>a b</bdi></h2>" in answer.read()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, output) == (0, "stopped\n")
    assert "Traceback" not in errors and "a b" not in errors


def test_a_busy_port_is_refused(refused, world):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refused(*arguments(world, "--port", port)) == f"--port {port}: Address already in use; choose another"
