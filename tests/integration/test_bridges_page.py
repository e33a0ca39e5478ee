"""docs/bridges.md: every command of the page, in order, on a small text and for a few updates."""

import ast
import re

import pytest

from tests.integration.commands import REPOSITORY
from tests.integration.test_own_corpus_page import Clone
from tests.libraries import library

PAGE = (REPOSITORY / "docs/bridges.md").read_text(encoding="utf-8")
BLOCKS = [block for block in re.finditer(r"```(sh|python)\n(.*?)```", PAGE, re.DOTALL) if "pip install" not in block[2]]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone in which the commands of the page were run."""
    library("ctranslate2"), library("transformers")
    clone = Clone(tmp_path_factory.mktemp("bridges"))
    clone.run(BLOCKS)
    return clone


def test_a_routed_teacher_gives_a_student_that_is_exported(clone):
    output = clone.output("--to ctranslate2")
    assert "wrote exported/my-student: en-fr for CTranslate2" in output
    assert re.search(r"detokenised sacreBLEU = \d+\.\d\d", output)  # of evaluate.sh
    names = {"model.bin", "config.json", "shared_vocabulary.json", "codes", "text.json"}
    assert {file.name for file in (clone.folder / "exported/my-student").iterdir()} == names


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
