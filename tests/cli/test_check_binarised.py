"""`fairseq-capsule check-data` on folders of fairseq-preprocess without text."""

import json
import shutil

import pytest

from tests.cli.conftest import fairseq
from tests.cli.test_check_data import TEXT, write

UNSEEN = (
    "note: there is no text with the binarised data: not checked are broken characters, whether the tokens are those"
)
SETS = "--trainpref text/train --validpref text/valid --testpref text/test"


def preprocess(folder, options, text=TEXT):
    for split, pairs in text.items():
        write(folder / "text", split, pairs)
    fairseq(folder, "preprocess", f"{options} --destdir data")
    return folder / "data"


@pytest.mark.parametrize("form", ["mmap", "cached", "lazy", "raw"])
@pytest.mark.parametrize("dictionaries", ["--joined-dictionary", ""])
def test_sound_binarised_data_of_two_languages_has_nothing_to_fix(command, tmp_path, form, dictionaries):
    data = preprocess(tmp_path, f"-s en -t de {dictionaries} {SETS} --dataset-impl {form}")
    result = command("check-data", data)
    *lines, note, last = result.out.splitlines()
    assert (result.status, last) == (0, "nothing to fix") and note.startswith(UNSEEN)
    assert lines == [
        "test     3 pairs, 0 of them in train; unknown tokens: de 0.00%, en 0.00%",
        "valid    2 pairs, 0 of them in train; unknown tokens: de 0.00%, en 0.00%",
        "train    12 pairs; unknown tokens: de 0.00%, en 0.00%",
    ]


@pytest.mark.parametrize("form", ["mmap", "cached", "raw"])
def test_wrong_sentences_in_binarised_data_are_named(command, tmp_path, form):
    test = [*TEXT["train"][:2], ("e f g h", "d"), ("", "d"), ("a " * 30, "d"), ("a <pad>", "d")]
    text = {**TEXT, "test": test}
    data = preprocess(
        tmp_path, f"-s en -t de --trainpref text/train --validpref text/valid --dataset-impl {form}", text
    )
    fairseq(
        tmp_path,
        "preprocess",
        f"-s en -t de --testpref text/test --srcdict data/dict.en.txt --tgtdict data/dict.de.txt --dataset-impl {form} "
        "--destdir other",
    )
    for file in (tmp_path / "other").glob("test*"):
        file.rename(data / file.name)
    result = command("check-data", data, "--longest", 20)
    name = "test.en-de.{}" + ("" if form == "raw" else ".idx")
    found = [line for line in result.out.splitlines() if line.startswith("test.")]
    assert result.status == 1
    for start in (
        f"{name.format('de')}, line 1: the pair is also in train, line 1, so ",
        f"{name.format('en')}, line 4: empty: drop",
        f"{name.format('en')}, line 5: too long: ",
        f"{name.format('en')}, line 6: contains <pad>: ",
        f"{name.format('en')}: ",
    ):
        assert any(line.startswith(start) for line in found), (start, found)
    assert any("% of its tokens are <unk>: codes and dictionary are of different runs" in line for line in found)
    assert result.out.splitlines()[-1] == "5 to fix"


def test_a_folder_with_sources_only_is_checked(command, tmp_path):
    data = preprocess(tmp_path, "-s en -t de --only-source --trainpref text/train --testpref text/test")
    (data / "train.en-de.en.idx").unlink()  # a folder for translation only
    (data / "train.en-de.en.bin").unlink()
    result = command("check-data", data)
    assert result.status == 0
    assert result.out.splitlines()[0] == "test     3 pairs, 0 of them in train; unknown tokens: en 0.00%"
    notes = [line for line in result.out.splitlines() if line.startswith("note: ")]
    assert notes[1] == "note: there is no dict.de.txt, as with --only-source: de was not checked"
    assert [note[:24] for note in notes[2:]] == ["note: there is no train ", "note: there is no valid "]
    assert json.loads(command("check-data", data, "--json").out)["notes"] == [note[6:] for note in notes]


def test_a_single_text_without_a_language_is_checked(command, tmp_path):
    preprocess(tmp_path, "-s en -t de --trainpref text/train")
    for split in ("train", "valid"):
        (tmp_path / f"text/{split}").write_bytes((tmp_path / f"text/{split}.en").read_bytes())
    fairseq(tmp_path, "preprocess", "--only-source --trainpref text/train --validpref text/valid --destdir single")
    result = command("check-data", tmp_path / "single")
    assert result.status == 0 and "train    12 pairs; unknown tokens: text 0.00%" in result.out


@pytest.mark.parametrize("form", ["mmap", "cached"])
@pytest.mark.parametrize("kind", [".bin", ".idx"])
def test_any_truncation_is_found(command, tmp_path, form, kind):
    data = preprocess(tmp_path, f"-s en -t de {SETS} --dataset-impl {form}")
    file = data / f"valid.en-de.de{kind}"
    whole = file.read_bytes()
    for length in sorted({0, 1, 8, 9, 20, 33, len(whole) // 2, len(whole) - 1} & set(range(len(whole)))):
        file.write_bytes(whole[:length])
        result = command("check-data", data)
        assert result.status == 1 and "valid.en-de.de" in result.out.splitlines()[-2], length
    file.write_bytes(whole)
    assert command("check-data", data).status == 0


def test_a_missing_language_of_a_split_is_named(command, tmp_path):
    data = preprocess(tmp_path, f"-s en -t de {SETS}")
    (data / "test.en-de.de.idx").unlink()
    assert "test.en-de.de.idx: missing, but the other language is there" in command("check-data", data).out


def test_further_parts_of_the_training_set_are_not_compared_with_it(command, tmp_path):
    data = preprocess(tmp_path, f"-s en -t de {SETS}")
    for path in list(data.glob("train.*")):
        shutil.copy(path, data / path.name.replace("train.", "train1."))
    lines = command("check-data", data).out.splitlines()
    assert any(line.startswith("train1   12 pairs; unknown tokens: ") for line in lines), lines
    assert any(line.startswith("test     3 pairs, 0 of them in train; ") for line in lines)


def test_each_file_of_a_language_has_its_own_counts(command, tmp_path):
    """Of a folder that was binarised as text and for mmap, both files of a language are checked."""
    data = preprocess(tmp_path, f"-s en -t de {SETS}", {**TEXT, "test": [("", "ein d"), ("e e e", "ein"), ("a", "d")]})
    for language in ("en", "de"):  # as --dataset-impl raw does
        shutil.copy(tmp_path / f"text/test.{language}", data / f"test.en-de.{language}")
    report = json.loads(command("check-data", data, "--json").out)
    findings = {(fault["file"], fault["line"], fault["problem"].partition(":")[0]) for fault in report["findings"]}
    assert findings == {
        (f"test.en-de.en{index}", line, problem)
        for index in ("", ".idx")
        for line, problem in ((1, "empty"), (None, "75.00% of its tokens are <unk>"))
    }
    assert report["splits"]["test"]["unknown"] == {"de": 0.0, "en": 75.0}


def test_a_split_without_a_complete_pair_has_no_sentences(command, tmp_path):
    data = preprocess(tmp_path, f"-s en -t de {SETS} --dataset-impl raw")
    (data / "test.en-de.de").write_bytes(b"")
    starts = [line.partition(", ")[0] for line in command("check-data", data).out.splitlines() if "test.en-de" in line]
    assert starts == ["test.en-de.en", "test.en-de.de: no sentences: binarise the text again"]
