"""The complete `scripts/prepare-toy.sh` on a small corpus. The tests of the other scripts cover what they share."""

import hashlib
import os
import shutil
import subprocess

import pytest

from fairseq_capsule_lab.corpora.embedded import draw_splits
from tests.integration.commands import PATH
from tests.integration.preparing import Workplace, contents, read

STAGES = ["raw", "tokenised", "codes", "bpe", "bin", "dict.txt", "manifest.tsv"]
SIZES = {"train": 120, "valid": 6, "test": 7}
OPTIONS = [word for split, size in SIZES.items() for word in (f"--{split}", str(size))]


@pytest.fixture
def workplace(tmp_path):
    return Workplace(tmp_path, "prepare-toy.sh")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Made with the installed commands, each in a process of its own."""
    return Workplace(tmp_path_factory.mktemp("prepared"), "prepare-toy.sh", PATH).prepared(*OPTIONS)


def test_every_stage_has_the_expected_text(prepared):
    splits = draw_splits("english-german", SIZES)
    for split, pairs in splits.items():
        for lang, sentences in zip(("en", "de"), zip(*pairs)):
            raw, tokenised, bpe = (
                read(prepared.out / stage / f"{split}.{lang}") for stage in ("raw", "tokenised", "bpe")
            )
            assert raw == list(sentences)
            assert [line.replace(" .", ".").replace(" ?", "?").replace(" ,", ",") for line in tokenised] == [
                line.replace("'s ", " &apos;s ") for line in raw
            ]
            assert [line.replace("@@ ", "") for line in bpe] == tokenised


def test_the_shown_command_can_be_pasted(prepared):
    """A dry run prints it too, and makes nothing."""
    (shown,) = prepared.shown
    line = shown[2:].replace("--destdir bin", "--destdir pasted")
    subprocess.run(["bash", "-c", line], env={**os.environ, "PATH": PATH}, check=True)
    pasted = contents(prepared.out / "pasted")
    assert pasted.keys() == contents(prepared.out / "bin").keys()
    for name in pasted.keys() - {"preprocess.log"}:
        assert pasted[name] == contents(prepared.out / "bin")[name]
    shutil.rmtree(prepared.out / "pasted")


def test_a_dry_run_prints_the_command_and_makes_nothing(workplace):
    process = workplace.prepare("--dry-run", *OPTIONS, "out")
    (shown,) = process.shown
    assert process.returncode == 0 and process.errors == "# raw, tokenised, codes, bpe: made by this command itself\n"
    assert f"(cd {workplace.out} && fairseq-preprocess" in shown and "--trainpref bpe/train --validpref" in shown
    assert not workplace.out.exists()


def test_alignments_count_the_words_of_the_tokenised_text(prepared):
    for split in SIZES:
        english, german = (read(prepared.out / "tokenised" / f"{split}.{lang}") for lang in ("en", "de"))
        for source, target, alignment in zip(english, german, read(prepared.out / "raw/alignments" / f"{split}.align")):
            assert alignment.split()[-1] == f"{len(source.split()) - 1}-{len(target.split()) - 1}"


def test_both_languages_are_binarised_with_one_dictionary(prepared):
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(prepared.out / "dict.txt"))
    for lang in ("en", "de"):
        assert read(prepared.out / "bin" / f"dict.{lang}.txt") == read(prepared.out / "dict.txt")
        for split, size in SIZES.items():
            data = data_utils.load_indexed_dataset(str(prepared.out / "bin" / f"{split}.en-de.{lang}"), dictionary)
            assert len(data) == size
            if split == "train":  # other splits may contain unknown tokens
                text = read(prepared.out / "bpe" / f"train.{lang}")
                assert [dictionary.string(line) for line in data] == text


def test_the_manifest_has_the_settings(prepared):
    rows = [line.split("\t") for line in read(prepared.out / "manifest.tsv")]
    assert ["setting", "grammar", "2"] in rows
    assert ["setting", "seed", "1"] in rows
    assert ["setting", "train", "120"] in rows
    sources = {row[1]: row[2] for row in rows if row[0] == "source"}
    assert sources == {
        f"{split}.{lang}": hashlib.sha256((prepared.out / "raw" / f"{split}.{lang}").read_bytes()).hexdigest()
        for split in SIZES
        for lang in ("en", "de")
    }


def test_a_second_run_does_nothing(prepared, workplace):
    shutil.copytree(prepared.out, workplace.out)
    workplace.stub("fairseq-preprocess", "exit 1")
    before = contents(workplace.out)
    process = workplace.prepare(*OPTIONS, "out")
    assert process.returncode == 0
    assert process.output.splitlines() == [
        *(f"{stage}: done before" for stage in STAGES),
        f"ready: {workplace.out}/bin",
    ]
    assert contents(workplace.out) == before


def test_an_interrupted_run_is_resumed(prepared, workplace):
    for stage in ("raw", "bin"):
        workplace.kill(stage)
        assert workplace.prepare(*OPTIONS, "out").returncode == -9
        assert [name for name in STAGES if (workplace.out / name).exists()] == STAGES[: STAGES.index(stage)]
        workplace.unstub()
    process = workplace.prepare(*OPTIONS, "out")
    assert process.returncode == 0, process.errors
    assert contents(workplace.out) == contents(prepared.out)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--train", "0", "out"], "--train must be a positive whole number, not '0'"),
        (["--test", "40000", "out"], "test: 40000 pairs, but the corpus has only 31000 left; ask for fewer"),
        (["/dev/full"], "/dev/full is not a folder"),
    ],
)
def test_bad_input_gives_one_clear_line(workplace, arguments, wanted):
    process = workplace.prepare(*arguments)
    assert workplace.refused(process, wanted)
    assert not (workplace.out / "raw").exists()


def test_other_settings_are_refused(prepared, workplace):
    shutil.copytree(prepared.out, workplace.out)
    process = workplace.prepare(*OPTIONS, "--valid", "5", "out")
    assert process.returncode != 0
    assert "was prepared with valid 6, not valid 5" in process.errors
