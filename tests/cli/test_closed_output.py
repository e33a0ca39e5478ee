"""Standard output: a reader that ends first, as `head` does, and an encoding without all characters."""

import io
import os
import subprocess
import sys

from fairseq_capsule_lab.cli import main
from tests.integration.commands import PLUGIN


def test_a_closed_output_is_not_an_error():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "fairseq_capsule_lab.cli", "table"]
    process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=PLUGIN.parent)
    os.close(writer)
    assert (process.returncode, process.stderr) == (141, "")


def test_an_output_that_lacks_a_character_is_not_an_error(monkeypatch, capsys):
    printed = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", printed)
    assert (main(["table"]), capsys.readouterr().err) == (0, "")
    assert b"\\xa7" in printed.buffer.getvalue()
