"""`fairseq-capsule serve`: its port, its end, and what it refuses before it loads a model."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.pages import server
from fairseq_capsule_lab.pages.server import requests


def arguments(world, *more):
    return ["serve", world / "model.pt", world / "data/bin", *more]


@pytest.mark.parametrize("end, status", [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM)])
def test_the_server_runs_until_it_is_stopped(world, end, status):
    words = [str(word) for word in arguments(world, "--port", 0)]
    process = subprocess.Popen(
        [sys.executable, "-m", "fairseq_capsule_lab.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = process.stdout.readline().split()[0]
        request = urllib.request.Request(
            f"{address}translate", json.dumps({"text": "a b", "beam": 1}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["text"] == "a b"
        process.send_signal(end)
        output, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == status
    assert output == ("stopped\n" if status == 0 else "") and "Traceback" not in errors
    assert "note: made for this computer" in errors and "proxy" in errors


def test_a_busy_port_is_refused(refused, world):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(*arguments(world, "--port", port))
    assert line == f"port {port} of 127.0.0.1: Address already in use; choose another, such as --port {port + 1}"


def test_an_address_of_another_computer_is_refused(refused, world):
    assert refused(*arguments(world, "--host", "192.0.2.1")).startswith("port 8000 of 192.0.2.1: ")
    assert refused(*arguments(world, "--host", "no.such.host.invalid")).startswith("--host no.such.host.invalid: ")


def test_a_second_model_that_does_not_load_is_named(refused, world, tmp_path):
    (tmp_path / "model.pt").write_bytes(b"no checkpoint")
    line = refused(*arguments(world, "--port", 0, "--against", tmp_path / "model.pt"))
    assert f"{tmp_path / 'model.pt'}: not loaded" in line


@pytest.mark.parametrize(
    "option, value",
    [
        ("--port", "65536"),
        ("--port", "-1"),
        ("--beam", str(requests.MOST_BEAM + 1)),
        ("--rate", "0"),
        ("--waiting", "-1"),
        ("--longest", "0"),
    ],
)
def test_values_out_of_range_are_refused(world, capsys, option, value):
    with pytest.raises(SystemExit):
        main([str(word) for word in arguments(world, f"{option}={value}")])
    assert f"argument {option}: " in capsys.readouterr().err


def test_a_missing_framework_is_named(refused, world, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delattr(server, "limits", raising=False)
    monkeypatch.delitem(sys.modules, "fairseq_capsule_lab.pages.server.limits", raising=False)
    assert "pip install 'fairseq-capsule[serve]'" in refused(*arguments(world))
