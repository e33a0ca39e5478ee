"""README.md: the commands of fairseq run on a small corpus. The Python block is run in tests/test_documents.py."""

import re
import shlex

import pytest

from tests.integration.commands import REPOSITORY, SMALL, run, train

README, OWN = ((REPOSITORY / page).read_text(encoding="utf-8") for page in ("README.md", "docs/your-own-corpus.md"))


def shell(text):
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def place(data, tmp_path):
    """A folder with the data and the baseline that README names."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/bin").symlink_to(data)
    train(data, tmp_path / "runs/transformer", *SMALL, "--share-all-embeddings", "--max-epoch", 1, arch="transformer")
    return tmp_path


def test_fairseqs_commands_run(place):
    commands = {}
    for line in README.split("## With fairseq's commands")[1].split("```sh\n")[1].split("```")[0].split("\nfairseq-"):
        command, *words = shlex.split(line.replace("\\\n", " ").removeprefix("fairseq-"), comments=True)
        commands[command] = words
    assert list(commands) == ["train", "generate"]
    small = [*SMALL, "--cpu", "--num-workers", "0", "--max-tokens", "400", "--max-epoch", "1", "--warmup-updates", "1"]
    assert "--user-dir" in commands["train"] and "--init-from-baseline" in commands["train"]
    plugin = {"fairseq_capsule": str(REPOSITORY / "fairseq_capsule")}
    words = [plugin.get(word, word) for word in commands["train"]]
    output = run("train", *words, *small, user_dir=None, cwd=place)
    assert re.search(r"new: decoder.past_future", output) and "| bow_loss " in output
    words = [plugin.get(word, word) for word in commands["generate"]]
    output = run("generate", *words, "--cpu", "--required-batch-size-multiple", "1", user_dir=None, cwd=place)
    assert len(re.findall(r"^H-", output, re.MULTILINE)) == 20


def test_the_commands_for_own_text_are_those_of_the_page():
    """tests/integration/test_own_corpus_page.py runs the page."""
    (block,) = (block for block in shell(README) if block.startswith("scripts/prepare.sh"))
    assert block in shell(OWN)
