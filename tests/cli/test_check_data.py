"""`fairseq-capsule check-data` names the file and the line of what is wrong with a data folder."""

import hashlib
import json
import re
import shutil
import unicodedata

import pytest
from fairseq import options
from fairseq_cli import preprocess
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fairseq_capsule_lab.cli import main

TEXT = {
    "train": [("a b@@ c", "ein b@@ c"), ("a d", "ein d"), ("a c b@@ c", "ein c b@@ c"), ("d a", "d und ein")] * 3,
    "valid": [("a d b@@ c", "ein d b@@ c"), ("a c d", "ein c d")],
    "test": [("d b@@ c", "d b@@ c"), ("c a d", "c ein d"), ("d d", "d und")],
}
FIGURES = [
    "test     3 pairs, 0 of them in train; unknown tokens: de 0.00%, en 0.00%",
    "valid    2 pairs, 0 of them in train; unknown tokens: de 0.00%, en 0.00%",
    "train    12 pairs; unknown tokens: de 0.00%, en 0.00%",
]


def write(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in text.items():
        for language, lines in zip(("en", "de"), zip(*pairs)):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def binarise(texts, folder, *more):
    sets = [word for file in texts.glob("*.en") for word in (f"--{file.stem}pref", str(texts / file.stem))]
    arguments = ["-s", "en", "-t", "de", *sets, *more, "--destdir", str(folder)]
    preprocess.main(options.get_preprocessing_parser().parse_args([str(word) for word in arguments]))


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A folder without settings and manifest, so that each check has to find its own faults."""
    folder = tmp_path_factory.mktemp("data")
    write(folder / "bpe", TEXT)
    write(folder / "raw", TEXT)
    binarise(folder / "bpe", folder / "bin")
    return folder


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A folder with as many sentences of other words."""
    folder = tmp_path_factory.mktemp("other")
    text = {name: [(f"{a} e f g", f"{b} e f") for a, b in pairs] for name, pairs in TEXT.items()}
    write(folder / "bpe", text)
    binarise(folder / "bpe", folder / "bin")
    return folder


@pytest.fixture
def data(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "data")


def test_sound_data_have_nothing_to_fix(command, sound):
    result = command("check-data", sound)
    assert (result.status, result.out.splitlines()) == (0, [*FIGURES, "nothing to fix"])
    *figures, note, last = command("check-data", sound / "bin").out.splitlines()
    assert (figures, last) == (FIGURES, "nothing to fix") and note.startswith("note: there is no text with ")


# --- faults -----------------------------------------------------------------------------------------------------------

BIN, IDX = "bin/test.en-de.de.bin", "bin/test.en-de.de.idx"
STALE = "bin/test.en-de.en.bin, line {}: not the tokens of bpe/test.en with dict.en.txt: delete bin and prepare again"


def change(number, line):
    """Replace a line by bytes, or remove it."""

    def damage(file, other):
        lines = file.read_bytes().splitlines(keepends=True)
        lines[number - 1 : number] = [] if line is None else [line + b"\n"]
        file.write_bytes(b"".join(lines))

    return damage


def cut(by):
    return lambda file, other: file.write_bytes(file.read_bytes()[:-by])


def overwrite(offset, content):
    def damage(file, other):
        whole = bytearray(file.read_bytes())
        whole[offset : offset + len(content)] = content
        file.write_bytes(bytes(whole))

    return damage


def exchange(file, other):
    """Exchange the binarised text of both languages."""
    for kind in ("bin", "idx"):
        first, second = (file.with_name(f"test.en-de.{language}.{kind}") for language in ("de", "en"))
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)


def take_other(file, other):
    for name in (file.name, file.with_suffix(".idx").name):
        shutil.copy(other / "bin" / name, file.with_name(name))


def take_train(file, other):
    for language in ("en", "de"):
        lines = file.with_name(f"train.{language}").read_text().splitlines(keepends=True)
        file.with_name(f"test.{language}").write_text("".join(lines[:3]))
    shutil.rmtree(file.parents[1] / "bin")
    binarise(file.parent, file.parents[1] / "bin")


@pytest.mark.parametrize(
    "file, damage, wanted",
    [
        ("bpe/test.en", change(1, b""), STALE.format(1)),
        ("bpe/test.en", change(4, b"a\nb"), STALE.format(4) + " (and 1 more lines)"),
        ("bpe/test.en", lambda file, other: file.unlink(), "bpe/test.de: 3 lines, but bpe/test.en has none: prepare"),
        ("raw/test.en", change(2, None), "raw/test.de: 3 lines, but raw/test.en has 2: prepare it again"),
        ("raw/test.de", change(2, "schön".encode("latin-1")), "raw/test.de, line 2: not UTF-8, or a replacement"),
        ("raw/test.de", change(2, "sch\ufffdn".encode()), "raw/test.de, line 2: not UTF-8, or a replacement"),
        ("raw/train.en", change(12, b"a\0b"), "raw/train.en, line 12: a NUL character: "),
        ("raw/valid.en", change(1, b"a\r"), "raw/valid.en, line 1: a carriage return: "),
        ("raw/valid.en", cut(1), "raw/valid.en, line 2: no line feed at its end: it may be cut short"),
        ("bpe/test.en", take_train, "bpe/test, line 1: the pair is also in train, so scores on test measure memori"),
        (BIN, overwrite(0, b"\xff\xff"), f"{BIN}: token 1 has the number 65535, but the dictionary has 0 to "),
        (BIN, lambda file, other: file.unlink(), f"{BIN}: missing"),
        (IDX, lambda file, other: file.unlink(), "bin/test.*.idx: missing in one language or both"),
        (BIN, exchange, "bin/test.en-de.en.bin: token 10 has the number 8, but the dictionary has 0 to 7"),
        (BIN, take_other, f"{BIN}, line 1: not the tokens of bpe/test.de with dict.de.txt: delete bin and prepare"),
        ("bin/dict.de.txt", change(1, None), "bin/t"),
        ("bin/dict.de.txt", lambda file, other: shutil.copy(other / "bin/dict.de.txt", file), "bin/t"),
    ],
)
def test_faults_are_named(command, data, other, file, damage, wanted):
    damage(data / file, other)
    result = command("check-data", data)
    assert result.status == 1
    assert any(line.startswith(wanted) for line in result.out.splitlines()), result.out


@pytest.mark.parametrize("kind", ["bin", "idx"])
def test_any_truncation_is_found(command, data, kind):
    file = data / f"bin/valid.en-de.de.{kind}"
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert command("check-data", data / "bin").status == 1, length


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.data())
def test_every_changed_byte_of_binarised_data_is_found(sound, tmp_path, draw):
    shutil.rmtree(tmp_path / "changed", ignore_errors=True)
    folder = shutil.copytree(sound, tmp_path / "changed")
    path = folder / draw.draw(st.sampled_from([BIN, IDX, "bin/valid.en-de.en.bin", "bin/valid.en-de.en.idx"]))
    content = bytearray(path.read_bytes())
    content[draw.draw(st.integers(0, len(content) - 1))] ^= draw.draw(st.integers(1, 255))
    assume(path.suffix == ".bin" or content[17] != 3)  # as the type int16 the numbers are the same
    path.write_bytes(bytes(content))
    assert main(["check-data", str(folder)]) == 1


def test_a_pair_that_is_repeated_counts_as_often_as_it_is_scored(command, sound, tmp_path):
    train, other = TEXT["train"][0], ("d d", "d und")
    write(tmp_path / "bpe", {**TEXT, "test": [train, other, train, train]})
    dictionaries = ["--srcdict", sound / "bin/dict.en.txt", "--tgtdict", sound / "bin/dict.de.txt"]
    binarise(tmp_path / "bpe", tmp_path / "bin", *dictionaries)
    result = command("check-data", tmp_path, "--most-overlap", 50)
    assert result.out.startswith("test     4 pairs, 3 of them in train;")
    assert "bpe/test, line 1: the pair is also in train" in result.out and "(and 2 more lines)" in result.out


@pytest.mark.parametrize("has_text", [True, False])
def test_wrong_sentences_are_named(command, sound, tmp_path, has_text):
    wrong = [("e f g h", "d"), ("", "d"), ("a " * 30, "d"), ("a <pad>", "d"), ("", "d"), ("a d", "d")]
    test = [*TEXT["train"][:2], *wrong]
    write(tmp_path / "bpe", {**TEXT, "test": test})
    dictionaries = ["--srcdict", sound / "bin/dict.en.txt", "--tgtdict", sound / "bin/dict.de.txt"]
    binarise(tmp_path / "bpe", tmp_path / "bin", *dictionaries)
    result = command("check-data", tmp_path if has_text else tmp_path / "bin", "--longest", 20, "--most-overlap", 24)
    place, pairs = ("bpe/test.en", "bpe/test") if has_text else ("test.en-de.en.idx", "test")
    *figures, last = result.out.splitlines()
    assert (result.status, last) == (1, "5 to fix")
    assert figures[0].startswith("test     8 pairs, 2 of them in train; unknown tokens: de 0.00%, en ")
    for start in (
        f"{place}, line 3: 9.30% of the tokens are not in dict.en.txt: codes and dictionary are of different runs",
        f"{place}, line 4: empty: drop the line in every language (and 1 more lines)",
        f"{place}, line 5: too long: ",
        f"{place}, line 6: contains <pad>: ",
        f"{pairs}, line 1: the pair is also in train, so scores on test measure memorisation: drop it in one (and 1 ",
    ):
        assert any(line.startswith(start) for line in figures), (start, figures)
    more = command("check-data", tmp_path / "bin", "--longest", 30, "--most-overlap", 25, "--most-unknown", 10).out
    assert "too long" not in more and "also in train, so" not in more and "are not in dict" not in more


@pytest.mark.parametrize("has_settings", [True, False])
@pytest.mark.parametrize("as_subwords", [True, False])
def test_text_that_is_not_composed_is_the_cause_of_unknown_tokens(command, tmp_path, has_settings, as_subwords):
    """Equal on the screen, a letter with its mark is another word than the two characters."""
    words = ["th\u00e9", "no\u00ebl", "\u00e9t\u00e9", "\u00e0", "ge\u00e7it", "d\u00e9j\u00e0"]

    def pairs(form, number):
        texts = [unicodedata.normalize(form, f"{words[i % 6]} {words[i % 5]}") for i in range(number)]
        split = [" ".join("@@ ".join(word) for word in text.split()) if as_subwords else text for text in texts]
        return [(f"w{i} {text}", f"w{i} x {text}") for i, text in enumerate(split)]

    write(tmp_path / "bpe", {"train": pairs("NFC", 12), "valid": pairs("NFD", 4)})
    binarise(tmp_path / "bpe", tmp_path / "bin")
    if has_settings:
        (tmp_path / "settings.json").write_text('{"script": "other.sh"}')
    result = command("check-data", tmp_path)
    assert result.status == 1
    assert re.search(r"valid\.de, line 1: .*%.* not in dict\.de\.txt: .* not composed \(NFC\): compose", result.out)
    assert "training text is small" not in result.out + result.err and "different runs" not in result.out


def test_languages_with_different_numbers_of_sentences_are_named(command, data):
    for kind in ("bin", "idx"):
        shutil.copy(data / f"bin/valid.en-de.de.{kind}", data / f"bin/test.en-de.de.{kind}")
    wanted = "test.en-de.de.idx: 2 sentences, and test.en-de.en.idx has 3: binarise the text again"
    assert wanted in command("check-data", data / "bin").out.splitlines()


def test_equal_sides_are_named(command, tmp_path):
    write(tmp_path / "bpe", {split: [(source, source) for source, _ in pairs] for split, pairs in TEXT.items()})
    binarise(tmp_path / "bpe", tmp_path / "bin")
    result = command("check-data", tmp_path, "--most-overlap", 100)
    wanted = "bin/test.*.idx: source and target are equal in 3 of 3 lines: binarise a text and its translation"
    assert result.status == 1 and wanted in result.out.splitlines()


def test_the_files_of_a_manifest_are_compared(command, data):
    (data / "settings.json").write_text('{"script": "prepare.sh"}')
    assert "manifest.json: missing, because the preparation did not finish" in command("check-data", data).out
    files = {str(file.relative_to(data)): file for file in data.rglob("*.*") if file.suffix != ".log"}
    facts = {name: {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()} for name, file in files.items()}
    texts = [{"name": "my.en", "taken": "12 pairs", "warning": "9 were left out"}]
    manifest = json.dumps({"texts": texts, "files": facts})
    for damaged in (manifest[:-9], "[]", '{"texts": null, "files": {}}', '{"texts": [], "files": {"codes": "x"}}'):
        (data / "manifest.json").write_text(damaged)
        assert "manifest.json: damaged: copy it again" in command("check-data", data).out
    (data / "manifest.json").write_text(manifest)
    result = command("check-data", data)
    assert result.status == 0 and "note: 9 were left out" in result.out.splitlines()
    (data / "raw/train.en").write_text("".join(f"{first}\n" for first, _ in TEXT["train"][::-1]))
    for language in ("en", "de"):
        (data / f"raw/test.{language}").unlink()
    out = command("check-data", data).out.splitlines()
    named = {line.partition(":")[0] for line in out if "missing, or not the file that manifest.json lists" in line}
    assert named == {"raw/train.en", "raw/test.de", "raw/test.en"} and out[-1] == "3 to fix"
    (data / "settings.json").unlink()
    out = command("check-data", data).out
    assert "settings.json: missing, or not the file" in out and "raw/test.de: missing, or not the file" in out


def test_other_folders_are_refused(refused, data):
    assert "no dict.*.txt; name a folder that fairseq-preprocess made" in refused("check-data", data / "raw")
    shutil.rmtree(data / "raw")
    shutil.rmtree(data / "bpe")
    for file in (data / "bin").glob("*.*-*.*"):
        file.unlink()
    assert "bin: no text of its languages; " in refused("check-data", data)


def test_a_missing_training_set_is_noted(command, data):
    for file in (data / "bin").glob("train.*"):
        file.unlink()
    assert "there is no train set" in command("check-data", data / "bin").out
    (data / "settings.json").write_text('{"script": "prepare.sh"}')
    shutil.rmtree(data / "raw")
    shutil.rmtree(data / "bpe")
    result = command("check-data", data)
    assert result.status == 1 and "bin/train: missing" in result.out
