"""docs/your-own-corpus.md: every command of the page, in its order, on a small text and for a few updates."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from fairseq_capsule.corpora.english_german.sampler import sentence_pairs
from fairseq_capsule.corpora.splits import draw_splits
from tests.integration.commands import PATH, REPOSITORY
from tests.integration.warm_commands import warm_commands

PAGE = (REPOSITORY / "docs/your-own-corpus.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(sh|python)\n(.*?)```", PAGE, re.DOTALL)
# What makes it small: fewer lines and merges, few epochs or updates of a narrow model.
TRAINING = "--gpus 0 dataset.max_tokens=800 optimization.max_epoch=2"
LAYERS = "model.encoder_layers=2 model.decoder_layers=1"  # GRET goes from layer to layer
SMALLER = [
    (r"\\\n +", ""),
    (r"-lines 1000", "-lines 8"),
    (r"(scripts/prepare\.sh .*)", r"\1 --merges 150"),
    (r"(scripts/train\.sh (?!.*like-baseline).*)", rf"\1 {LAYERS}"),
    (r"(scripts/train\.sh .*baseline.*)", rf"\1 {TRAINING} optimization.max_update=2"),
    (r"(scripts/train\.sh (?!.*baseline).*)", rf"\1 {TRAINING}"),
    (r"(scripts/distill\.sh)", r"\1 --shards 2 --beam 1 --max-tokens 2000"),
    (r"(fairseq-train .*)--max-epoch 10", r"\1--max-update 2 --cpu --num-workers 0"),
    (r"(fairseq-interactive .*)", r"\1 --cpu"),
    (r"--max-tokens 4096", "--max-tokens 400"),
]


def smaller(commands):
    for pattern, replacement in SMALLER:
        commands = re.sub(pattern, replacement, commands)
    return commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A clone of the repository, with the user's text in it; all commands of the page were run there."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("fairseq_capsule", "fairseq_capsule_runs", "configs"):
        (folder / name).symlink_to(REPOSITORY / name)
    shutil.copytree(REPOSITORY / "scripts", folder / "scripts")
    pairs = draw_splits(sentence_pairs(1), {"train": 150})["train"]
    for language, sentences in zip(("en", "fr"), zip(*pairs)):
        (folder / f"my.{language}").write_text("".join(f"{sentence}\n" for sentence in sentences))
    for name in ("said", "commands"):
        (folder / name).mkdir()
    with warm_commands(folder / "commands") as commands:
        environment = {**os.environ, "PATH": f"{commands}:{PATH}", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        for number, (language, block) in enumerate(BLOCKS):
            (folder / "said" / str(number)).write_text(run(language, smaller(block), folder, environment))
    return folder


def run(language, commands, folder, environment):
    shell = ["bash", "-euo", "pipefail", "-c", commands]
    finished = subprocess.run(
        shell if language == "sh" else [sys.executable, "-c", commands],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert finished.returncode == 0, f"{commands}\n{finished.stdout}"
    return finished.stdout


def said(folder, part):
    (number,) = (number for number, (_, commands) in enumerate(BLOCKS) if part in commands)
    return (folder / "said" / str(number)).read_text()


def test_two_files_to_a_score_and_a_page(folder):
    output = said(folder, "runs/my-capsules data/my --against")
    assert re.search(r"detokenised sacreBLEU = \d+\.\d\d", output)
    assert "paired bootstrap, 1000 samples" in output
    assert (folder / "inspected/index.html").exists()
    assert len(list((folder / "inspected").glob("*.npz"))) == 3


def test_pieces_come_back_as_text(folder):
    output = said(folder, "fairseq-interactive")
    assert "inspected-pieces/index.html: sentences: 1" in output
    assert re.search(r"^S-0\t▁", output, re.MULTILINE)
    assert "▁" not in re.search(r"^D-0\t(.*)$", output, re.MULTILINE)[1]
    assert "▁" not in (folder / "runs/my-pieces/evaluation/test/translations.fr").read_text()


@pytest.mark.parametrize("baseline, run", [("my-baseline", "my-gdr"), ("my-lstm", "my-gdr-lstm")])
def test_a_baseline_of_ones_own_gives_its_sizes_and_parameters(folder, baseline, run):
    log = (folder / f"runs/{run}/train.log").read_text()
    assert re.search(rf"{baseline}/checkpoint_best.pt: took .*encoder_embed_dim=64, ", log)
    assert re.search(rf"{baseline}/checkpoint_best.pt: took \d+ of the model's \d+ parameters; new: decoder.past", log)


def test_the_data_are_checked_with_and_without_their_text(folder):
    first, second = said(folder, "check-data").split("nothing to mend\n")[:2]
    assert "note: there is no text beside the binarised data" in second and "note: " not in first
    assert [line for line in first.splitlines() if line.startswith("train ")] == [
        line for line in second.splitlines() if line.startswith("train ")
    ]


def test_a_student_s_translations_are_scored_as_text(folder):
    assert "training sentences, " in said(folder, "distill.sh")
    assert "▁" not in (folder / "runs/my-capsnmt/evaluation/test/translations.fr").read_text()


def test_python_says_little(folder):
    output = said(folder, "hub.translate")
    assert len(output.splitlines()) < 10, output
    assert "sentence 1: " in output
    assert (folder / "attention.png").stat().st_size > 1000


def test_the_table_of_recipes_is_what_the_configurations_are():
    from tests.test_configs import CONFIGS, composed

    rows = [row for row in PAGE.splitlines() if re.search(r"\| `(10k|100k|1m)` \|", row)]
    assert len(rows) == 3
    for row in rows:
        _, recipe, _, _, dropout, tokens, length, *_ = (cell.strip(" `") for cell in row.strip("|").split("|"))
        config = composed(CONFIGS / "own", "transformer", f"recipe={recipe}")
        assert dropout.split()[0] == str(config.model.dropout)
        update = config.dataset.max_tokens * config.optimization.get("update_freq", [1])[0]
        assert tokens == f"{update:,}"
        wanted = config.optimization.max_update or config.optimization.max_epoch
        assert length.split()[0] == f"{wanted:,}"
