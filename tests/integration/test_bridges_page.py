"""docs/bridges.md: every command of the page, in order, on a small text and for a few updates.

TensorBoard's command is of docs/training.md.
"""

import ast
import re

import pytest

from tests.cli.scored import write_comet
from tests.integration.commands import PATH, REPOSITORY
from tests.integration.preparing import read
from tests.integration.test_own_corpus_page import Clone
from tests.libraries import library


def blocks(page):
    found = re.finditer(r"```(sh|python)\n(.*?)```", (REPOSITORY / page).read_text(encoding="utf-8"), re.DOTALL)
    return [block for block in found if "pip install" not in block[2]]


BLOCKS = blocks("docs/bridges.md")
WATCHED = [block for block in blocks("docs/training.md") if "--tensorboard-logdir" in block[2]]

SYSTEMS = ["runs/my-student", "runs/my-teacher"]  # in the order of the command


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone in which the commands of the page were run. COMET is not: its file has invented scores."""
    for name in ("ctranslate2", "transformers", "inseq", "tensorboardX"):
        library(name)
    clone = Clone(tmp_path_factory.mktemp("bridges"))
    (scored,) = (number for number, block in enumerate(BLOCKS) if "--external" in block[2])
    clone.run(BLOCKS[:scored])
    raw = [read(clone.folder / f"data/my/raw/test.{language}") for language in ("en", "fr")]
    files = [f"{system}/evaluation/test/translations.fr" for system in SYSTEMS]
    translations = {file: [line.strip() for line in read(clone.folder / file)] for file in files}
    scores = ([0.5 + number / 100, *[0.5] * (len(raw[0]) - 1)] for number in (8, 0))
    write_comet(clone.folder / "comet.json", *raw, dict(zip(files, zip(translations.values(), scores))))
    clone.run([*BLOCKS[scored:], *WATCHED], PATH)  # fairseq completes TensorBoard's files when it exits
    return clone


def test_a_routed_teacher_gives_a_student_that_is_exported(clone):
    output = clone.output("--to fairseq")
    assert "wrote exported/my-student: en-fr for fairseq alone" in output
    assert re.search(r"detokenised sacreBLEU = \d+\.\d\d", output)  # of evaluate.sh
    assert (clone.folder / "exported/my-student-ctranslate2/model.bin").is_file()


def test_the_student_translates_raw_text(clone):
    (line,) = clone.output("ctranslate2.Translator").splitlines()
    assert "@@ " not in line  # the last word of an untrained model may be cut off


def test_the_teacher_is_exported_and_translates_raw_text(clone):
    assert "wrote exported/my-teacher: en-fr for transformers" in clone.output("--to transformers")
    last = clone.output("AutoModelForSeq2SeqLM").splitlines()[-1]
    (translation,) = ast.literal_eval(last)
    assert "@@ " not in translation
    names = {"config.json", "generation_config.json", "model.safetensors", "README.md"}
    names |= {"tokenizer_config.json", "vocabulary.json", "codes"}
    assert {file.name for file in (clone.folder / "exported/my-teacher").iterdir()} == names


def test_a_translation_is_attributed_to_the_words_of_the_source(clone):
    output = clone.output("inseq.load_model")
    assert "Source Saliency Heatmap" in output
    assert re.search(r"│ +This │|│ +\S+@@ │", output)


def test_scores_in_the_format_of_comet_are_compared(clone):
    output = clone.output("--external COMET=comet.json")
    assert "COMET = 0.5100  (scores of comet.json)" in output
    assert "0.5100 of my-student - 0.5000 of my-teacher = +0.0100, p = " in output


def test_tensorboard_gets_the_losses_and_the_routing(clone):
    from tensorboardX.proto import event_pb2

    folder = clone.folder / "runs/watched/tensorboard"
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
