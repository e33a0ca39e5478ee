"""A reader of the output that ends first, as `head` does."""

import os
import subprocess
import sys

from tests.integration.commands import PLUGIN


def test_a_closed_output_is_not_an_error():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "fairseq_capsule_lab.cli", "--help"]
    process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=PLUGIN.parent)
    os.close(writer)
    assert (process.returncode, process.stderr) == (141, "")
