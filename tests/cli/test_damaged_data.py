"""`check-data` finds every kind of damage to a prepared folder and names the file, in bounded memory."""

import hashlib
import shutil
import struct
import tracemalloc

import numpy as np
import pytest
from fairseq import options
from fairseq_cli import preprocess
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairseq_capsule.data.binarised import HEADER, BinarisedText, BrokenFile
from fairseq_capsule_lab.cli import main

LANGUAGES = ("en", "de")
STAGES = ("raw", "tokenised", "bpe")
SIZES = {"train": 40, "valid": 6, "test": 7}
FIRST = {"train": 0, "valid": 100, "test": 200}


def sentence(split, number, language, offset):
    """Return a sentence. All differ, each contains its language, and the training set contains all words."""
    digits = f"{number + FIRST[split]:o}"
    filling = ["und@@"] * ((number + offset + 2 * LANGUAGES.index(language)) % 4)
    return " ".join([*filling, f"{language}{number % 3}", *(f"{offset}w{digit}@@" for digit in digits), language])


def binarise(folder):
    shutil.rmtree(folder / "bin", ignore_errors=True)
    sets = [word for split in SIZES for word in (f"--{split}pref", str(folder / "bpe" / split))]
    arguments = ["-s", "en", "-t", "de", *sets, "--destdir", str(folder / "bin")]
    preprocess.main(options.get_preprocessing_parser().parse_args(arguments))


def list_files(folder):
    """Write a manifest as the scripts do."""
    rows = ["command\tprepare-x.sh data", "setting\tscript\tprepare-x.sh", "version\tfairseq\t0.12"]
    rows.extend(
        f"file\t{path.relative_to(folder)}\t{hashlib.sha256(path.read_bytes()).hexdigest()}\t1 lines"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("settings", "manifest.tsv", "preprocess.log")
    )
    (folder / "manifest.tsv").write_text("".join(row + "\n" for row in rows))


def prepare(folder, offset):
    for stage in STAGES:
        (folder / stage).mkdir(parents=True)
        for split, size in SIZES.items():
            for language in LANGUAGES:
                lines = [sentence(split, number, language, offset) + "\n" for number in range(size)]
                (folder / stage / f"{split}.{language}").write_text("".join(lines))
    (folder / "codes").write_text(f"#version: 0.2\nw {offset}\n")
    (folder / "settings").write_text("script prepare-x.sh\n")
    binarise(folder)
    shutil.copy(folder / "bin/dict.en.txt", folder / "dict.en.txt")
    list_files(folder)
    return folder


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("sound"), 0)


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A folder of the same kind with other sentences and more words."""
    return prepare(tmp_path_factory.mktemp("other"), 71)


@pytest.fixture
def data(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "data")
    return tmp_path / "data"


# --- kinds of damage: the file that must be named, and the change of the folder --------------------------------------


def cut(path, by=3):
    path.write_bytes(path.read_bytes()[:-by])


def extend(path, content=b"\0\0"):
    path.write_bytes(path.read_bytes() + content)


def swap(first, second):
    contents = first.read_bytes(), second.read_bytes()
    second.write_bytes(contents[0])
    first.write_bytes(contents[1])


def overwrite(path, offset, content):
    whole = bytearray(path.read_bytes())
    whole[offset : offset + len(content)] = content
    path.write_bytes(bytes(whole))


def change_lines(path, function):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(function(lines)), newline="")


def copy_files(other, data, *names):
    for name in names:
        shutil.copy(other / name, data / name)


BIN, IDX = "bin/test.en-de.de.bin", "bin/test.en-de.de.idx"
DICT = "bin/dict.de.txt"
DAMAGES = {
    "a truncated .bin": (BIN, lambda data, other: cut(data / BIN)),
    "half a .bin": (BIN, lambda data, other: cut(data / BIN, (data / BIN).stat().st_size // 2)),
    "an empty .bin": (BIN, lambda data, other: (data / BIN).write_bytes(b"")),
    "an extended .bin": (BIN, lambda data, other: extend(data / BIN)),
    "a missing .bin": (BIN, lambda data, other: (data / BIN).unlink()),
    "a truncated .idx": (IDX, lambda data, other: cut(data / IDX)),
    "the header of an .idx": (IDX, lambda data, other: (data / IDX).write_bytes((data / IDX).read_bytes()[:20])),
    "an empty .idx": (IDX, lambda data, other: (data / IDX).write_bytes(b"")),
    "an extended .idx": (IDX, lambda data, other: extend(data / IDX)),
    "a missing .idx": ("bin/test.*.de.idx", lambda data, other: (data / IDX).unlink()),
    "a wrong magic number": (IDX, lambda data, other: overwrite(data / IDX, 0, b"TNTIDX\0\0")),
    "a wrong version": (IDX, lambda data, other: overwrite(data / IDX, 9, struct.pack("<Q", 2))),
    "a code of no type": (IDX, lambda data, other: overwrite(data / IDX, 17, b"\x63")),
    "the code of a wider type": (IDX, lambda data, other: overwrite(data / IDX, 17, b"\x04")),
    "the code of a type of the same width": (IDX, lambda data, other: overwrite(data / IDX, 17, b"\x03")),
    "a huge number of sentences": (IDX, lambda data, other: overwrite(data / IDX, 18, struct.pack("<Q", 1 << 60))),
    "lengths that changed places": (IDX, lambda data, other: overwrite(data / IDX, 26, struct.pack("<ii", 3, 9))),
    "a negative length": (IDX, lambda data, other: overwrite(data / IDX, 26, struct.pack("<i", -1))),
    "a wrong pointer": (IDX, lambda data, other: overwrite(data / IDX, 26 + 4 * 7 + 8, struct.pack("<q", 1))),
    "another token": (
        BIN,
        lambda data, other: overwrite(data / BIN, 0, struct.pack("<H", 4 + (data / BIN).read_bytes()[0] % 3)),
    ),
    "a token beyond the dictionary": (BIN, lambda data, other: overwrite(data / BIN, 4, b"\xff\xff")),
    "zeros": (BIN, lambda data, other: (data / BIN).write_bytes(bytes((data / BIN).stat().st_size))),
    "the .bin of the other language": (
        "bin/valid.en-de.de.bin",
        lambda data, other: swap(data / "bin/valid.en-de.de.bin", data / "bin/valid.en-de.en.bin"),
    ),
    "both files of the other language": (
        "bin/valid.en-de.de.bin",
        lambda data, other: [
            swap(data / f"bin/valid.en-de.de.{x}", data / f"bin/valid.en-de.en.{x}") for x in ("bin", "idx")
        ],
    ),
    "both files of another split": (
        IDX,
        lambda data, other: [
            swap(data / f"bin/valid.en-de.de.{x}", data / f"bin/test.en-de.de.{x}") for x in ("bin", "idx")
        ],
    ),
    "another folder's binarised text": (
        "bin/train.en-de.de.bin",
        lambda data, other: copy_files(other, data, "bin/train.en-de.de.bin", "bin/train.en-de.de.idx"),
    ),
    "another folder's dictionary": ("bin/train.en-de.de.bin", lambda data, other: copy_files(other, data, DICT)),
    "another folder's codes": ("codes", lambda data, other: copy_files(other, data, "codes")),
    "another folder's text": (
        "bpe/test.en, line 7",
        lambda data, other: swap(data / "bpe/valid.de", data / "bpe/test.de"),
    ),
    "a shorter dictionary": ("bin/train.en-de.de.bin", lambda data, other: change_lines(data / DICT, lambda x: x[:4])),
    "a dictionary in another order": (DICT, lambda data, other: change_lines(data / DICT, lambda x: x[::-1])),
    "a symbol twice": (DICT, lambda data, other: change_lines(data / DICT, lambda x: [*x, x[0]])),
    "a negative count": (DICT, lambda data, other: change_lines(data / DICT, lambda x: [*x, "word -1\n"])),
    "a symbol without a count": (DICT, lambda data, other: change_lines(data / DICT, lambda x: ["word\n", *x])),
    "a count that is no number": (DICT, lambda data, other: change_lines(data / DICT, lambda x: ["word x\n", *x])),
    "a symbol of fairseq's own": (DICT, lambda data, other: change_lines(data / DICT, lambda x: [*x, "</s> 1\n"])),
    "an empty dictionary": (DICT, lambda data, other: (data / DICT).write_text("")),
    "a binary dictionary": (DICT, lambda data, other: (data / DICT).write_bytes(b"\xff\xfe\0a \0")),
    "a missing dictionary": ("data", lambda data, other: (data / DICT).unlink()),
    "a missing split": (
        "bpe/test.de",
        lambda data, other: [(data / f"bpe/test.{lang}").unlink() for lang in LANGUAGES],
    ),
    "a missing split of the binarised data": (
        "bin/valid.*.en.idx",
        lambda data, other: [path.unlink() for path in (data / "bin").glob("valid.*")],
    ),
    "a split that is nowhere": (
        "bpe/valid.de",
        lambda data, other: [path.unlink() for path in data.rglob("valid.*")],
    ),
    "a missing file of an earlier stage": (
        "tokenised/train.en",
        lambda data, other: (data / "tokenised/train.en").unlink(),
    ),
    "a missing line": ("raw/test.en", lambda data, other: change_lines(data / "raw/test.de", lambda x: x[1:])),
    "lines in another order": (
        "bin/test.en-de.de.bin",
        lambda data, other: change_lines(data / "bpe/test.de", lambda x: x[::-1]),
    ),
    "an empty text": ("raw/train.en", lambda data, other: (data / "raw/train.de").write_text("")),
    "an empty line": (
        "bpe/train.de, line 1",
        lambda data, other: change_lines(data / "bpe/train.de", lambda x: ["\n", *x[1:]]),
    ),
    "CRLF": (
        "tokenised/test.de",
        lambda data, other: change_lines(data / "tokenised/test.de", lambda x: [y[:-1] + "\r\n" for y in x]),
    ),
    "NUL": ("tokenised/test.de", lambda data, other: overwrite(data / "tokenised/test.de", 2, b"\0")),
    "a text of NULs": ("raw/test.de", lambda data, other: (data / "raw/test.de").write_bytes(bytes(100))),
    "invalid UTF-8": ("raw/test.de", lambda data, other: overwrite(data / "raw/test.de", 2, b"\xe4")),
    "a replacement character": ("raw/test.de", lambda data, other: overwrite(data / "raw/test.de", 1, b"\xef\xbf\xbd")),
    "no line feed at the end": ("raw/test.de", lambda data, other: cut(data / "raw/test.de", 1)),
    "a text cut short": ("bpe/test.de", lambda data, other: cut(data / "bpe/test.de", 8)),
    "another letter": ("raw/train.de", lambda data, other: overwrite(data / "raw/train.de", 0, b"X")),
    "a text of training in the test set": (
        "bpe/test.de",
        lambda data, other: [shutil.copy(data / f"bpe/train.{lang}", data / f"bpe/test.{lang}") for lang in LANGUAGES],
    ),
    "another folder's manifest": ("bin/dict.de.txt", lambda data, other: copy_files(other, data, "manifest.tsv")),
    "no manifest": ("manifest.tsv", lambda data, other: (data / "manifest.tsv").unlink()),
    "another dictionary in the folder itself": (
        "dict.en.txt",
        lambda data, other: copy_files(other, data, "dict.en.txt"),
    ),
}


def test_a_sound_folder_has_nothing_to_fix(command, sound):
    result = command("check-data", sound)
    assert (result.status, result.out.splitlines()[-1]) == (0, "nothing to fix")


@pytest.mark.parametrize("kind", DAMAGES)
def test_every_damage_is_found_and_named(command, data, other, kind):
    named, damage = DAMAGES[kind]
    damage(data, other)
    result = command("check-data", data)
    assert result.status == 1
    lines = result.out.splitlines() + result.err.splitlines()
    assert any(named in line for line in lines), lines
    assert "Traceback" not in result.err


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.data())
def test_every_changed_byte_of_binarised_data_is_found(sound, tmp_path, draw):
    """With and without a manifest."""
    folder = tmp_path / "changed"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sound, folder)
    (folder / "manifest.tsv").unlink()
    (folder / "settings").unlink()
    path = folder / draw.draw(st.sampled_from([BIN, IDX, "bin/valid.en-de.en.bin", "bin/valid.en-de.en.idx"]))
    content = bytearray(path.read_bytes())
    place = draw.draw(st.integers(0, len(content) - 1))
    content[place] ^= draw.draw(st.integers(1, 255))
    path.write_bytes(bytes(content))
    assert main(["check-data", str(folder)]) == 1


def write_index(path, sizes):
    sizes = np.array(sizes, dtype="<i4")
    pointers = 2 * (np.cumsum(sizes, dtype="<i8") - sizes)
    path.write_bytes(HEADER.pack(b"MMIDIDX\0\0", 1, 8, len(sizes)) + sizes.tobytes() + pointers.tobytes())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.integers(0, 9), max_size=20), piece=st.integers(1, 5))
def test_files_are_read_in_pieces_of_any_size(tmp_path, monkeypatch, sizes, piece):
    monkeypatch.setattr("fairseq_capsule.data.binarised.PIECE", piece)
    index = tmp_path / "test.en-de.de.idx"
    write_index(index, sizes)
    tokens = np.arange(sum(sizes), dtype="<u2")
    index.with_suffix(".bin").write_bytes(tokens.tobytes())
    text = BinarisedText(index)
    assert (text.sentences, text.tokens) == (len(sizes), sum(sizes))
    assert text.sizes(0, len(sizes)).tolist() == sizes
    assert text.piece(1, 3).tolist() == tokens[1:4].tolist()
    text.require_known_tokens(max(1, sum(sizes)))
    if sum(sizes):
        with pytest.raises(BrokenFile, match=f"token {sum(sizes)} has the number {sum(sizes) - 1}"):
            text.require_known_tokens(sum(sizes) - 1)


def test_memory_stays_bounded(tmp_path):
    """Files of 60 and 36 MB are read within 20 MB."""
    index = tmp_path / "train.en-de.de.idx"
    write_index(index, [10] * 3_000_000)
    with open(index.with_suffix(".bin"), "wb") as stream:
        stream.truncate(60_000_000)
    tracemalloc.start()
    BinarisedText(index).require_known_tokens(9)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20_000_000
