"""README.md: the commands of fairseq run as printed. The Python block is run in tests/test_documents.py."""

import os
import re
import subprocess

from tests.integration.commands import REPOSITORY
from tests.integration.warm_commands import warm_path

README, OWN = ((REPOSITORY / page).read_text(encoding="utf-8") for page in ("README.md", "docs/your-own-corpus.md"))


def shell(text):
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


def test_fairseqs_commands_run_as_printed(tmp_path):
    for name in ("examples", "fairseq_capsule"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    (block,) = shell(README.split("## Train with fairseq")[1].split("\n## ")[0])
    words = ["bash", "-euo", "pipefail", "-c", block]
    finished = subprocess.run(
        words, cwd=tmp_path, env={**os.environ, "PATH": warm_path()}, capture_output=True, text=True
    )
    output = finished.stdout + finished.stderr
    assert finished.returncode == 0, output
    assert (
        re.search(r"took 87 of the model's 98 parameters; new: decoder.past_future", output) and "| bow_loss " in output
    )
    assert len(re.findall(r"^D-", (tmp_path / "runs/gdr/test.out").read_text(encoding="utf-8"), re.MULTILINE)) == 100
    assert float(finished.stdout.split()[-1]) > 85  # BLEU


def test_the_commands_for_own_text_are_those_of_the_page():
    """tests/integration/test_own_corpus_page.py runs the page."""
    (block,) = (block for block in shell(README) if block.startswith("scripts/prepare.sh"))
    assert block in shell(OWN)
