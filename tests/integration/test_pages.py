"""The commands of the documents, in order, on a small text and for a few updates: own text, bridges, README."""

import ast
import os
import re
import shutil
import subprocess

import pytest

from fairseq_capsule_lab.corpora.embedded import draw_splits
from fairseq_capsule_lab.runs.configuration import read_configuration
from fairseq_capsule_lab.runs.settings import Settings
from tests.cli.scored import write_comet
from tests.integration.commands import REPOSITORY
from tests.integration.preparing import copy_checkout, read
from tests.integration.warm_commands import warm_path
from tests.libraries import library
from tests.processes import run_code

PAGE = (REPOSITORY / "docs/your-own-corpus.md").read_text(encoding="utf-8")
BLOCKS = list(re.finditer(r"```(sh|python)\n(.*?)```", PAGE, re.DOTALL))
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def blocks_of(page):
    found = re.finditer(r"```(sh|python)\n(.*?)```", (REPOSITORY / page).read_text(encoding="utf-8"), re.DOTALL)
    return [block for block in found if "pip install" not in block[2]]


BRIDGE_BLOCKS = blocks_of("docs/bridges.md")
WATCHED = [block for block in blocks_of("docs/training.md") if "--tensorboard-logdir" in block[2]]
SYSTEMS = ["runs/my-student", "runs/my-teacher"]  # in the order of the command
# The other direction, models and baselines of the page take minutes. The other blocks do not need them.
FURTHER = [
    block
    for block in BLOCKS
    if (block.start() > PAGE.index("## Models") or "runs/my-reverse" in block[2]) and block[1] == "sh"
]
# Replacements that make the commands fast: fewer lines and merges, few epochs or updates, and a narrow model.
TRAINING = "--gpus 0 dataset.max_tokens=400 optimization.max_epoch=2 lr_scheduler.warmup_updates=4"
LAYERS = "++model.encoder_layers=2 ++model.decoder_layers=1"  # GRET needs several encoder layers
SMALLER = [
    (r"\\\n +", ""),
    (r"data/multi30k", "data/my"),  # in docs/training.md
    (r"-lines 1000", "-lines 8"),
    (r"(scripts/prepare\.sh .*)", r"\1 --merges 150"),
    (r"(scripts/train\.sh (?!.*like-baseline).*)", rf"\1 {LAYERS}"),
    (r"(scripts/train\.sh .*baseline.*)", rf"\1 {TRAINING} optimization.max_update=2"),
    (r"(scripts/train\.sh (?!.*baseline).*)", rf"\1 {TRAINING}"),
    (r"(scripts/distill\.sh)", r"\1 --shards 2 --beam 1 --max-tokens 2000"),
    (r"(fairseq-train .*)--max-epoch 10", r"\1--max-update 2 --cpu --num-workers 0"),
    (r"(fairseq-interactive .*)", r"\1 --cpu"),
    (r"""--eval-bleu-args '{"beam": 5}'""", """--eval-bleu-args '{"beam": 1, "max_len_b": 5}'"""),
    (r"--max-tokens 4096", "--max-tokens 400"),
    (r"--last 10", "--last 2"),
    (r"--ids 0,1,2", "--ids 0"),
    (r"(\.attribute\(.*?)\)", r"\1, 'une phrase')"),  # a model that is hardly trained does not end its translation
]


def smaller(commands):
    for pattern, replacement in SMALLER:
        commands = re.sub(pattern, replacement, commands)
    return commands


class Clone:
    """A clone of the repository that contains the user's text."""

    def __init__(self, folder):
        self.folder, self.said = folder, {}
        copy_checkout(folder)
        pairs = draw_splits("english-german", {"train": 150})["train"]
        for language, sentences in zip(("en", "fr"), zip(*pairs)):
            starts = (" ".join(sentence.split()[:3]) for sentence in sentences)  # so that translations soon end
            text = [f"{start}.\n" for start in starts]
            (folder / f"my.{language}").write_text("".join(text))
            (folder / f"mono.{language}").write_text("".join(text[:9]))

    def run(self, blocks):
        environment = {"PATH": warm_path(), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        for block in blocks:
            text = smaller(block[2])
            if block[1] == "sh":
                shell = ["bash", "-euo", "pipefail", "-c", text]
                finished = subprocess.run(
                    shell,
                    cwd=self.folder,
                    env={**os.environ, **environment},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            else:
                finished = run_code(text, [], self.folder, environment, one_output=True)
            assert finished.returncode == 0, f"{text}\n{finished.stdout}"
            self.said[block[2]] = finished.stdout

    def output(self, part):
        """Return the output of the block that contains this part of a command."""
        (found,) = (said for block, said in self.said.items() if part in block)
        return found


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone in which the commands of the page were run, except `FURTHER`."""
    clone = Clone(tmp_path_factory.mktemp("clone"))
    clone.run([block for block in BLOCKS if block not in FURTHER])
    return clone


@pytest.fixture(scope="module")
def whole(clone):
    """A clone in which all commands of the page were run."""
    clone.run(FURTHER)
    return clone


def test_the_commands_give_a_score_and_a_page(clone):
    output = clone.output("runs/my-capsules data/my --against")
    assert re.search(r"detokenised sacreBLEU = \d+\.\d\d", output)
    assert "paired bootstrap, 1000 samples" in output
    assert (clone.folder / "inspected/index.html").exists()
    assert len(list((clone.folder / "inspected").glob("*.npz"))) == 1


def test_pieces_are_joined_to_text(clone):
    output = clone.output("fairseq-interactive data/my-pieces")
    assert "inspected-pieces/index.html: sentences: 1" in output
    assert re.search(r"^S-0\t▁", output, re.MULTILINE)
    assert "▁" not in re.search(r"^D-0\t(.*)$", output, re.MULTILINE)[1]
    assert "▁" not in (clone.folder / "runs/my-pieces/evaluation/test/translations.fr").read_text()


@pytest.mark.slow
def test_the_tag_of_back_translated_text_stays_whole(whole):
    lines = read(whole.folder / "data/my-more/bpe/train.en")
    assert sum(line.startswith("<BT> ") for line in lines) >= 8 and not any("<@@" in line for line in lines)
    assert (whole.folder / "runs/my-more/evaluation").exists()


@pytest.mark.slow
@pytest.mark.parametrize("baseline, run", [("my-baseline", "my-gdr"), ("my-lstm", "my-gdr-lstm")])
def test_a_baseline_of_the_user_gives_its_sizes_and_parameters(whole, baseline, run):
    log = (whole.folder / f"runs/{run}/train.log").read_text()
    assert re.search(rf"{baseline}/checkpoint_best.pt: took .*encoder_embed_dim=64, ", log)
    assert re.search(rf"{baseline}/checkpoint_best.pt: took \d+ of the model's \d+ .*; new: decoder.past", log)


def test_the_data_are_checked_with_the_text(clone):
    output = clone.output("check-data")
    assert "train " in output and "nothing to fix\n" in output and "note: " not in output


@pytest.mark.slow
def test_a_student_s_translations_are_scored_as_text(whole):
    assert "training sentences, " in whole.output("distill.sh")
    assert "▁" not in (whole.folder / "runs/my-capsnmt/evaluation/test/translations.fr").read_text()


def test_the_python_example_prints_and_draws(clone):
    assert "sentence 1: " in clone.output("hub.translate")
    assert (clone.folder / "attention.png").stat().st_size > 1000


def test_the_table_of_recipes_is_what_the_files_and_the_settings_of_the_page_give():
    recipes = [[], *(block.split() for block in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL))]
    rows = [row for row in PAGE.splitlines() if re.match(r"\| (tens|hundreds|millions)", row)]
    for row, overrides in zip(rows, recipes, strict=True):
        _, _, _, dropout, tokens, length, averaged = (cell.strip() for cell in row.strip("|").split("|"))
        path = REPOSITORY / "configs/own/transformer.yaml"
        settings = Settings(read_configuration(path, [*overrides, "task.data=bin"], {}))
        assert dropout.split()[0] == str(settings.get("model.dropout"))
        (accumulation,) = settings.get("optimization.update_freq") or [1]
        assert tokens == f"{settings.get('dataset.max_tokens') * accumulation:,}"
        wanted = settings.get("optimization.max_update") or settings.get("optimization.max_epoch")
        assert length.split()[0] == f"{wanted:,}"
        assert str(settings.get("checkpoint.keep_last_epochs")) in averaged


@pytest.fixture(scope="module")
def bridges(clone, tmp_path_factory):
    """A clone in which the commands of docs/bridges.md were run. COMET is not: its file has invented scores.

    Its data and its teacher are those of `clone`.
    """
    for name in ("ctranslate2", "transformers", "inseq", "tensorboardX"):
        library(name)
    earlier, clone = clone.folder, Clone(tmp_path_factory.mktemp("bridges"))
    shutil.copytree(earlier / "data/my", clone.folder / "data/my")
    shutil.copytree(earlier / "runs/my-capsules", clone.folder / "runs/my-teacher")
    (scored,) = (number for number, block in enumerate(BRIDGE_BLOCKS) if "--external" in block[2])
    clone.run(BRIDGE_BLOCKS[:scored])
    raw = [read(clone.folder / f"data/my/raw/test.{language}") for language in ("en", "fr")]
    files = [f"{system}/evaluation/test/translations.fr" for system in SYSTEMS]
    translations = {file: [line.strip() for line in read(clone.folder / file)] for file in files}
    scores = ([0.5 + number / 100, *[0.5] * (len(raw[0]) - 1)] for number in (8, 0))
    write_comet(clone.folder / "comet.json", *raw, dict(zip(files, zip(translations.values(), scores))))
    clone.run([*BRIDGE_BLOCKS[scored:], *WATCHED])
    return clone


def test_a_routed_teacher_gives_a_student_that_is_exported(bridges):
    output = bridges.output("--to fairseq")
    assert "wrote exported/my-student: en-fr for fairseq alone" in output
    assert re.search(r"detokenised sacreBLEU = \d+\.\d\d", output)  # of evaluate.sh
    assert (bridges.folder / "exported/my-student-ctranslate2/model.bin").is_file()


def test_the_student_translates_raw_text(bridges):
    (line,) = bridges.output("ctranslate2.Translator").splitlines()
    assert "@@ " not in line  # the last word of an untrained model may be cut off


def test_the_teacher_is_exported_and_translates_raw_text(bridges):
    assert "wrote exported/my-teacher: en-fr for transformers" in bridges.output("--to transformers")
    last = bridges.output("AutoModelForSeq2SeqLM").splitlines()[-1]
    (translation,) = ast.literal_eval(last)
    assert "@@ " not in translation
    names = {"config.json", "generation_config.json", "model.safetensors", "README.md"}
    names |= {"tokenizer_config.json", "vocabulary.json", "codes"}
    assert {file.name for file in (bridges.folder / "exported/my-teacher").iterdir()} == names


def test_a_translation_is_attributed_to_the_words_of_the_source(bridges):
    output = bridges.output("inseq.load_model")
    assert "Source Saliency Heatmap" in output
    assert re.search(r"│ +This │|│ +\S+@@ │", output)


def test_scores_in_the_format_of_comet_are_compared(bridges):
    output = bridges.output("--external COMET=comet.json")
    assert "COMET = 0.5100  (scores of comet.json)" in output
    assert "0.5100 of my-student - 0.5000 of my-teacher = +0.0100, p = " in output


def test_tensorboard_gets_the_losses_and_the_routing(bridges):
    from tensorboardX.proto import event_pb2

    folder = bridges.folder / "runs/watched/tensorboard"
    (file,) = (folder / "valid").iterdir()
    assert {part.name for part in folder.iterdir()} >= {"train", "valid"}
    content, start, tags = file.read_bytes(), 0, {}
    while start < len(content):  # of each event: its length in 8 bytes, 4 bytes, the event, 4 bytes
        length = int.from_bytes(content[start : start + 8], "little")
        event = event_pb2.Event.FromString(content[start + 12 : start + 12 + length])
        tags.update((value.tag, value.simple_value) for value in event.summary.value)
        start += length + 16
    assert tags["loss"] > 0
    assert 0 < tags["routing_past_future_entropy"] <= 1


def shell(text):
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_fairseqs_commands_run_as_printed(tmp_path, whole):
    """With all epochs, the model has learnt to translate. With one, its translations would not end by themselves."""
    for name in ("examples", "fairseq_capsule"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    (block,) = shell(README.split("## Train with fairseq")[1].split("\n## ")[0])
    if not whole:
        block = re.sub(r"--max-epoch \d+", "--max-epoch 1", block).replace("--beam 5", "--beam 5 --max-len-b 10")
    words = ["bash", "-euo", "pipefail", "-c", block]
    finished = subprocess.run(
        words, cwd=tmp_path, env={**os.environ, "PATH": warm_path()}, capture_output=True, text=True
    )
    output = finished.stdout + finished.stderr
    assert finished.returncode == 0, output
    assert "took 87 of the model's 98 parameter tensors; new: decoder.past_future" in output and "| bow_loss " in output
    assert len(re.findall(r"^D-", (tmp_path / "runs/gdr/test.out").read_text(encoding="utf-8"), re.MULTILINE)) == 100
    bleu = float(finished.stdout.split()[-1])
    assert 0 <= bleu <= 100 and (bleu > 85 or not whole)


def test_the_commands_for_own_text_are_those_of_the_page():
    (block,) = (block for block in shell(README) if block.startswith("scripts/prepare.sh"))
    assert block in shell(PAGE)
