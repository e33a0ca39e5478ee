"""What the settings of a prepared folder say about its text."""

from pathlib import Path

import pytest

from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.runs.prepared import SCRIPTS, Preparation, preparation
from fairseq_capsule_lab.runs.prepared import SidePreparation as Side


@pytest.fixture
def prepared(tmp_path):
    """Make a folder with settings and files."""

    def make(settings, *files):
        (tmp_path / "bin").mkdir()
        (tmp_path / "settings").write_text("".join(f"{line}\n" for line in settings.split(", ")))
        for file in files:
            (tmp_path / file).touch()
        return tmp_path

    return make


def moses(language, dashes=False):
    return Side(language, "moses", dashes)


CASES = [
    ("script prepare-toy.sh", "en de", "codes", Preparation(moses("en"), moses("de"), False, "subword-nmt", "codes")),
    (
        "script prepare-multi30k.sh",
        "de en",
        "codes",
        Preparation(moses("de"), moses("en"), True, "subword-nmt", "codes"),
    ),
    (
        "script prepare-multi30k.sh, bpe sentencepiece, tokenise none",
        "en de",
        "sentencepiece.model",
        Preparation(
            Side("en", "none", False),
            Side("de", "none", False),
            True,
            "sentencepiece",
            "sentencepiece.model",
        ),
    ),
    (
        "script prepare-wmt14-en-de.sh",
        "en de",
        "codes",
        Preparation(moses("en", True), moses("de", True), False, "subword-nmt", "codes"),
    ),
    (
        "script prepare-nist-zh-en.sh",
        "zh en",
        "codes.zh codes.en",
        Preparation(Side("zh", "jieba", False), moses("en"), True, "subword-nmt", "codes.zh"),
    ),
    (
        "script prepare.sh, source ja, target pt_BR, tokenise characters,moses, lower no",
        "ja pt_BR",
        "codes",
        Preparation(Side("ja", "characters", False), moses("pt"), False, "subword-nmt", "codes"),
    ),
    (
        "script prepare.sh, source ja, target pt_BR, tokenise characters,moses, lower yes",
        "pt_BR ja",
        "codes.ja codes.pt_BR",
        Preparation(moses("pt"), Side("ja", "characters", False), True, "subword-nmt", "codes.pt_BR"),
    ),
    (
        "script prepare-headlines.sh",
        "text summary",
        "",
        Preparation(
            Side("text", "characters", False),
            Side("summary", "characters", False),
            False,
            "none",
            None,
        ),
    ),
]


@pytest.mark.parametrize("settings, pair, files, expected", CASES, ids=[case[0] for case in CASES])
def test_the_text_of_a_script_is_known(prepared, settings, pair, files, expected):
    actual = preparation(prepared(settings, *files.split()), *pair.split())
    assert actual == Preparation(
        expected.source,
        expected.target,
        expected.lowercase,
        expected.subwords,
        expected.codes and actual.codes.parent / expected.codes,
    )


def test_every_prepare_script_is_known():
    assert set(SCRIPTS) == {path.name for path in Path(__file__).parents[2].glob("scripts/prepare*.sh")}


def test_text_that_needs_more_than_a_tokeniser_is_refused(prepared):
    folder = prepared("script prepare-wmt16-en-ro.sh", "codes")
    assert preparation(folder, "en", "ro").target == moses("ro")
    with pytest.raises(LabError, match="changes the letters of Romanian"):
        preparation(folder, "ro", "en")


@pytest.mark.parametrize("settings", ["", "script other.sh", "lower yes"])
def test_the_folder_of_no_script_is_refused(prepared, settings):
    with pytest.raises(LabError, match="name the OUT of a prepare script"):
        preparation(prepared(settings, "codes"), "en", "de")
