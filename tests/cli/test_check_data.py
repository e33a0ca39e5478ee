"""`fairseq-capsule check-data` names the file and the line of everything that is wrong with a prepared folder."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.conftest import fairseq

TEXT = {
    "train": [("a b@@ c", "ein b@@ c"), ("a d", "ein d"), ("a c b@@ c", "ein c b@@ c"), ("d a", "d ein")] * 3,
    "valid": [("a d b@@ c", "ein d b@@ c"), ("a c d", "ein c d")],
    "test": [("d b@@ c", "d b@@ c"), ("c a d", "c ein d"), ("d d", "d d")],
}
LANGUAGES = ("en", "de")


def write(folder, split, pairs):
    folder.mkdir(exist_ok=True)
    for language, lines in zip(LANGUAGES, zip(*pairs)):
        (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for split, pairs in TEXT.items():
        write(folder / "bpe", split, pairs)
        write(folder / "raw", split, [[side.replace("@@ ", "").capitalize() + "." for side in pair] for pair in pairs])
    sets = "--trainpref bpe/train --validpref bpe/valid --testpref bpe/test"
    fairseq(folder, "preprocess", f"-s en -t de --joined-dictionary {sets} --destdir bin")
    return folder


@pytest.fixture
def data(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "data")
    return tmp_path / "data"


def change(file, number, line):
    """Replace a line by bytes, or remove it."""
    lines = file.read_bytes().splitlines(keepends=True)
    lines[number - 1 : number] = [] if line is None else [line + b"\n"]
    file.write_bytes(b"".join(lines))


def test_sound_data_has_nothing_to_fix(command, sound):
    result = command("check-data", sound)
    assert result.status == 0
    assert result.out.splitlines() == [
        "test     3 pairs, 0 of them in train; unknown tokens: de 0.00%, en 0.00%",
        "valid    2 pairs, 0 of them in train; unknown tokens: de 0.00%, en 0.00%",
        "train    12 pairs; unknown tokens: de 0.00%, en 0.00%",
        "nothing to fix",
    ]


@pytest.mark.parametrize(
    "file, number, line, wanted",
    [
        ("bpe/train.en", 3, b"", "bpe/train.en, line 3: empty: drop the line in every language"),
        ("bpe/train.en", 3, b" ", "bpe/train.en, line 3: empty: drop the line in every language"),
        ("bpe/test.de", 2, b"d " * 30, "bpe/test.de, line 2: too long: "),
        ("raw/test.de", 2, "schön".encode("latin-1"), "raw/test.de, line 2: not UTF-8: convert the file"),
        ("raw/train.en", 12, b"a\0b", "raw/train.en, line 12: a NUL character: "),
        ("raw/valid.en", 1, b"a\r", "raw/valid.en, line 1: a stray carriage return: "),
        ("raw/valid.de", 2, "sch\ufffdn".encode(), "raw/valid.de, line 2: a replacement character: "),
        ("raw/test.en", 2, None, "raw/test.de, line 3: no such line in raw/test.en: 3 and 2 lines are not parallel"),
        ("bpe/test.en", 2, b"a <pad> a", "bpe/test.en, line 2: contains <pad>: fairseq's control symbols may not be "),
        ("bpe/train.de", 2, b"<unk> d", "bpe/train.de, line 2: contains <unk>: fairseq's control symbols may not be "),
        ("bpe/test.en", 2, b"e f a", "bpe/test.en, line 2: 'e' is not in bin/dict.en.txt, like 25.00% of the tokens: "),
    ],
)
def test_wrong_lines_are_named(command, data, file, number, line, wanted):
    change(data / file, number, line)
    result = command("check-data", data, "--longest", 20)
    assert result.status == 1
    *_, split, finding, last = [line for line in result.out.splitlines() if not line.startswith("bin/")]
    assert finding.startswith(wanted)
    assert "unknown tokens" in split
    # If the text was binarised, the binarised file is another finding.
    assert last == ("2 to fix" if file.startswith("bpe/") else "1 to fix")


def test_the_first_of_several_wrong_lines_is_named(command, data):
    for number in (4, 2, 9):
        change(data / "bpe/train.de", number, b"")
    result = command("check-data", data)
    wanted = "bpe/train.de, line 2: empty: drop the line in every language (and 2 more lines)"
    assert wanted in result.out.splitlines()


def test_overlap_with_the_training_set_is_reported(command, data):
    for language, line in zip(LANGUAGES, TEXT["train"][1]):
        change(data / f"bpe/test.{language}", 3, line.encode())
    result = command("check-data", data)
    assert result.status == 1
    assert "test     3 pairs, 1 of them in train;" in result.out
    assert (
        "bpe/test.de, line 3: the pair is also in train, line 2, so scores on test measure memorisation" in result.out
    )
    assert "the pair is also in train" not in command("check-data", data, "--most-overlap", 34).out


def test_a_pair_overlaps_only_with_both_sides(command, data):
    change(data / "bpe/test.en", 3, TEXT["train"][1][0].encode())
    assert "the pair is also in train" not in command("check-data", data).out


def test_binarised_data_of_another_text_are_reported(command, data):
    write(data / "bpe", "train", TEXT["train"][:5])
    result = command("check-data", data)
    assert (
        "bin/train.en-de.en.idx: 12 sentences, but bpe has 5: delete bin and prepare again" in result.out.splitlines()
    )
    (data / "bin/test.en-de.de.idx").unlink()
    result = command("check-data", data)
    assert "bin/test.*.de.idx: missing, but bpe has test: delete bin and prepare again" in result.out.splitlines()


def test_a_missing_text_is_reported(command, data):
    (data / "raw/test.en").unlink()
    result = command("check-data", data)
    assert "raw/test.en: missing, but the other language is there: prepare it again" in result.out.splitlines()


def test_empty_texts_are_reported(command, data):
    for language in LANGUAGES:
        (data / f"raw/test.{language}").write_text("")
    assert "raw/test.de: no lines: prepare it again" in command("check-data", data).out.splitlines()


def test_json_contains_splits_and_findings(command, data):
    change(data / "bpe/test.de", 2, b"")
    result = command("check-data", data, "--json")
    assert result.status == 1
    report = json.loads(result.out)
    assert not report["ok"]
    assert report["splits"]["test"] == {"pairs": 3, "unknown": {"de": 0.0, "en": 0.0}, "overlap": 0}
    finding, of_bin = report["findings"]
    assert (finding["file"], finding["line"], finding["lines"]) == ("bpe/test.de", 2, 1)
    assert (of_bin["file"], of_bin["line"], of_bin["lines"]) == ("bin/test.en-de.de.bin", 2, 1)


def test_folders_that_are_not_prepared_are_refused(refused, data):
    assert "neither a folder that scripts/prepare-*.sh made nor one that" in refused("check-data", data / "raw")
    (data / "settings").touch()  # a prepare script made it, so its text is required
    shutil.rmtree(data / "bpe")
    assert "it has no folder bpe or characters" in refused("check-data", data)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(
    st.lists(
        st.text(st.characters(categories=["Cc", "Cf", "Zl", "Zp", "L"], exclude_characters="\0.-/"), min_size=1),
        min_size=2,
        max_size=2,
        unique_by=str.encode,
    ),
    st.booleans(),
)
def test_names_of_files_cannot_control_the_terminal(command, sound, tmp_path, names, has_text):
    """Names of splits, languages and listed files with escape sequences and marks of direction are escaped."""
    split, language = (name[:20] for name in names)
    folder = tmp_path / "names"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sound if has_text else sound / "bin", folder)
    if has_text:
        (folder / f"raw/{split}.en").write_text("a\n", encoding="utf-8")
        (folder / "manifest.tsv").write_text(f"file\t{split}\tx\t1\nfile\n", encoding="utf-8")
    else:
        for kind in ("bin", "idx"):
            shutil.copy(folder / f"test.en-de.en.{kind}", folder / f"{split}.en-{language}.en.{kind}")
            shutil.copy(folder / f"test.en-de.en.{kind}", folder / f"{split}.{kind}")
        shutil.copy(folder / "dict.en.txt", folder / f"dict.{language}.txt")
    for form in ([], ["--json"]):
        result = command("check-data", folder, *form)
        assert all(line.isprintable() for line in (result.out + result.err).split("\n")), (names, result)
