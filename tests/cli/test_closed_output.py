"""Standard output: a reader that ends first, as `head` does, and an encoding without all characters."""

import os
import subprocess
import sys

from tests.integration.commands import PLUGIN


def test_a_closed_output_is_not_an_error():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "fairseq_capsule.cli", "table"]
    process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=PLUGIN.parent)
    os.close(writer)
    assert (process.returncode, process.stderr) == (141, "")


def test_an_output_that_lacks_a_character_is_not_an_error():
    command = [sys.executable, "-m", "fairseq_capsule.cli", "table"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = subprocess.run(command, capture_output=True, text=True, cwd=PLUGIN.parent, env=environment)
    assert (process.returncode, process.stderr) == (0, "")
    assert "\\xa7" in process.stdout
