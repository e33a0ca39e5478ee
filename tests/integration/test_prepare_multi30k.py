"""`scripts/prepare-multi30k.sh`, whole, on tiny archives under the names of the real ones."""

import fcntl
import gzip
import hashlib
import os
import random
import shutil
import time

import pytest

from tests.integration.preparing import Workplace, contents, read

ARCHIVES = {
    "train": "train",
    "valid": "val",
    "test": "test_2016_flickr",
    "test1": "test_2017_flickr",
    "test2": "test_2017_mscoco",
}
STAGES = ["raw", "tokenised", "codes", "bpe", "bin", "dict.txt", "manifest.tsv"]
FIRST_PAIR = ("Don't  touch “Tom & Jerry”!", "Über 1.000 Männer (u.a. Tom & Jerry) laufen.")
FIRST_TOKENISED = (
    "don &apos;t touch &quot; tom &amp; jerry &quot; !",
    "über 1.000 männer ( u.a. tom &amp; jerry ) laufen .",
)


def sentence_pairs(count, seed):
    rng = random.Random(seed)
    adjectives = [("small", "kleiner"), ("old", "alter"), ("Happy", "glücklicher")]
    nouns = [("man", "Mann"), ("dog", "Hund"), ("boy", "Junge")]
    verbs = [("runs", "läuft"), ("sleeps", "schläft"), ("jumps", "springt")]
    for _ in range(count):
        (a, ein), (n, wort), (v, tut) = rng.choice(adjectives), rng.choice(nouns), rng.choice(verbs)
        yield f"A {a} {n} {v}, today.", f"Ein {ein} {wort} {tut}, heute."


def write_archive(folder, name, lines):
    (folder / name).write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives")
    for seed, (split, stem) in enumerate(ARCHIVES.items()):
        pairs = [FIRST_PAIR, *sentence_pairs(29 if split == "train" else 4, seed)]
        for lang, lines in zip(("en", "de"), zip(*pairs)):
            write_archive(folder, f"{stem}.{lang}.gz", lines)
    return folder


@pytest.fixture
def workplace(tmp_path):
    return Workplace(tmp_path, "prepare-multi30k.sh")


@pytest.fixture(scope="module")
def prepared(archives, tmp_path_factory):
    return Workplace(tmp_path_factory.mktemp("prepared"), "prepare-multi30k.sh").prepared("--from", archives)


def finished(out):
    return [stage for stage in STAGES if (out / stage).exists()]


# --- what comes out ---------------------------------------------------------------------------------------------------


def test_text_of_each_stage(prepared, archives):
    for split, stem in ARCHIVES.items():
        for side, lang in enumerate(("en", "de")):
            raw, tokenised, bpe = (prepared.out / stage / f"{split}.{lang}" for stage in ("raw", "tokenised", "bpe"))
            assert raw.read_bytes() == gzip.decompress((archives / f"{stem}.{lang}.gz").read_bytes())
            assert read(tokenised)[0] == FIRST_TOKENISED[side]
            assert [line.replace("@@ ", "") for line in read(bpe)] == read(tokenised)
    assert read(prepared.out / "tokenised" / "train.de")[1].endswith(", heute .")
    assert read(prepared.out / "codes")[0] == "#version: 0.2"
    assert any("@@ " in line for line in read(prepared.out / "bpe" / "train.en"))


def test_binarised_data_is_the_text(prepared):
    from fairseq.data import Dictionary, data_utils

    folder = prepared.out / "bin"
    dictionary = Dictionary.load(str(prepared.out / "dict.txt"))
    assert len(dictionary) % 8 == 0
    for lang in ("en", "de"):
        assert (folder / f"dict.{lang}.txt").read_bytes() == (prepared.out / "dict.txt").read_bytes()
        for split in ARCHIVES:
            data = data_utils.load_indexed_dataset(str(folder / f"{split}.en-de.{lang}"), dictionary)
            text = read(prepared.out / "bpe" / f"{split}.{lang}")
            assert [dictionary.string(line) for line in data] == [
                " ".join(word if word in dictionary else dictionary.unk_word for word in line.split()) for line in text
            ]


def test_manifest_and_counts(prepared, archives):
    rows = [line.split("\t") for line in read(prepared.out / "manifest.tsv")]
    assert ["command", f"prepare-multi30k.sh '--from' '{archives}' 'out'"] in rows
    assert ["setting", "limit", "none"] in rows
    assert {"torch", "sacremoses", "subword-nmt"} <= {row[1] for row in rows if row[0] == "version"}
    sources = {row[1]: row[2] for row in rows if row[0] == "source"}
    assert sources == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in archives.iterdir()}
    files = {row[1]: row[2] for row in rows if row[0] == "file"}
    made = {
        name: data
        for name, data in contents(prepared.out).items()
        if name not in ("settings", "manifest.tsv", "raw/SHA256SUMS")
    }
    assert files == {name: hashlib.sha256(data).hexdigest() for name, data in made.items()}
    assert [row[3] for row in rows if row[1] == "tokenised/train.de"] == ["30 lines"]
    assert "bpe: test.de 5, test.en 5," in prepared.output
    assert "bin: train.en 30 (0.0% <unk>), valid.en 5" in prepared.output


def test_second_run_does_nothing(prepared, archives, workplace):
    out = workplace.root / "out"
    shutil.copytree(prepared.out, out)
    for tool in ("gzip", "sacremoses", "subword-nmt", "fairseq-preprocess", "python", "sha256sum"):
        workplace.stub(tool, "exit 1")
    times = {file: file.stat().st_mtime_ns for file in [out, *out.rglob("*")]}
    process = workplace.prepare("--from", archives, "out")
    assert process.returncode == 0
    assert process.output.splitlines() == [*(f"{stage}: done before" for stage in STAGES), f"ready: {out}/bin"]
    assert {file: file.stat().st_mtime_ns for file in [out, *out.rglob("*")]} == times


def test_codes_and_dictionary_of_an_earlier_run(prepared, archives, workplace):
    earlier = ["--codes", prepared.out / "codes", "--dict", prepared.out / "dict.txt"]
    process = workplace.prepare("--from", archives, *earlier, "--limit", 7, "out")
    assert process.returncode == 0, process.errors
    before, now = contents(prepared.out), contents(workplace.root / "out")
    assert before.keys() == now.keys()
    changed = {name for name in now if now[name] != before[name]}
    train = {f"{stage}/train.{lang}" for stage in ("raw", "tokenised", "bpe") for lang in ("en", "de")}
    train_bin = {f"bin/train.en-de.{lang}.{kind}" for lang in ("en", "de") for kind in ("bin", "idx")}
    assert changed == {"settings", "manifest.tsv"} | train | train_bin
    for name in train:
        assert now[name].splitlines() == before[name].splitlines()[:7]


# --- interruptions ----------------------------------------------------------------------------------------------------

# Each writes half of what its stage makes, and then the power fails.
HALF_DONE = {
    "raw": ("python", 'echo half >"${@: -1}"; kill -KILL 0'),
    "tokenised": ("sacremoses", "head -n 2; kill -KILL 0"),
    "codes": ("subword-nmt", "echo '#version: 0.2'; kill -KILL 0"),
    "bpe": ("subword-nmt", '[[ $1 != apply-bpe ]] && PATH=${PATH#*:} exec subword-nmt "$@"; head -n 2; kill -KILL 0'),
    "bin": ("fairseq-preprocess", 'mkdir "${@: -1}"; echo half >"${@: -1}/train.en-de.en.bin"; kill -KILL 0'),
    "dict.txt": ("cp", 'echo half >"$2"; kill -KILL 0'),
    "manifest.tsv": ("sha256sum", "echo half; kill -KILL 0"),
}


def test_interrupted_at_every_stage(prepared, archives, workplace):
    out = workplace.root / "out"
    for done, stage in enumerate(STAGES):
        workplace.stub(*HALF_DONE[stage])
        assert workplace.prepare("--from", archives, "out").returncode == -9
        assert finished(out) == STAGES[:done]
        assert list(out.glob(f"{stage}.part.*"))
        workplace.unstub()
    process = workplace.prepare("--from", archives, "out")
    assert process.returncode == 0, process.errors
    assert contents(out) == contents(prepared.out)


def test_orphans_of_a_killed_run_do_no_harm(archives, workplace):
    out = workplace.root / "out"
    workplace.stub(
        "sacremoses", f"touch {workplace.root}/begun; sleep 1; echo an orphan wrote this; touch {workplace.root}/ended"
    )
    killed = workplace.start("scripts/prepare-multi30k.sh", "--from", archives, "out")
    while not (workplace.root / "begun").exists():
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()  # the script alone: its children live on
    killed.wait()
    workplace.stub("sacremoses", "cat")
    workplace.stub("subword-nmt", "exit 1")
    workplace.refused(workplace.prepare("--from", archives, "out"), "stage 'codes' failed")
    while not (workplace.root / "ended").exists():
        time.sleep(0.01)
    assert finished(out) == ["raw", "tokenised"]
    assert sorted(file.name for file in (out / "tokenised").iterdir()) == sorted(
        f"{s}.{lang}" for s in ARCHIVES for lang in ("en", "de")
    )
    for file in (out / "tokenised").iterdir():
        assert file.read_text() == (out / "raw" / file.name).read_text().lower()


def test_one_run_at_a_time(prepared, archives, workplace):
    shutil.copytree(prepared.out, workplace.root / "out")
    lock = os.open(workplace.root / "out", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    second = workplace.start("scripts/prepare-multi30k.sh", "--from", archives, "out")
    assert second.stdout.readline() == "waiting for another run in out\n"
    os.close(lock)
    output, _ = second.communicate(timeout=60)
    assert second.returncode == 0
    assert output.startswith("raw: done before\n")


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], "name the folder OUT"),
        (["a", "b"], "one folder OUT"),
        (["--form", "x", "out"], "no option --form"),
        (["out", "--limit"], "--limit wants a value"),
        (["--limit", "0", "out"], "--limit wants a positive whole number, not '0'"),
        (["--limit", "-3", "out"], "--limit wants a positive whole number, not '-3'"),
        (["--limit", "1e3", "out"], "--limit wants a positive whole number, not '1e3'"),
        (["--from", "nowhere", "out"], "--from nowhere: no such folder"),
        (["--codes", "good.codes", "out"], "--codes and --dict belong together"),
        (["--dict", "good.dict", "out"], "--codes and --dict belong together"),
        (["--codes", "nowhere", "--dict", "good.dict", "out"], "--codes nowhere: no such file"),
        (["--codes", "good.dict", "--dict", "good.dict", "out"], "--codes good.dict: not codes"),
        (["--codes", "good.codes", "--dict", "nowhere", "out"], "--dict nowhere: no such file"),
        (["--codes", "good.codes", "--dict", "good.codes", "out"], "--dict good.codes, line 1: not a dictionary"),
        (["/dev/full"], "/dev/full is not a folder"),
        (["/dev/full/out"], "cannot make the folder /dev/full/out"),
        (["good.codes"], "good.codes is not a folder"),
    ],
)
def test_wrong_arguments(workplace, arguments, wanted):
    (workplace.root / "good.codes").write_text("#version: 0.2\na b\n")
    (workplace.root / "good.dict").write_text("a 2\nb 1\n")
    workplace.refused(workplace.prepare(*arguments), wanted)
    assert not (workplace.root / "out").exists()


def missing(folder):
    (folder / "test_2017_mscoco.de.gz").unlink()
    return "test_2017_mscoco.de.gz is missing"


def unequal(folder):
    write_archive(folder, "val.de.gz", ["eins", "zwei"])
    return "val.en.gz has 5 lines, ", "val.de.gz has 2"


def wrong_encoding(folder):
    (folder / "val.de.gz").write_bytes(gzip.compress("eins\nMänner\n".encode("latin-1")))
    return "val.de.gz, line 2: not UTF-8 at byte 2"


def empty_on_one_side(folder):
    write_archive(folder, "val.de.gz", ["eins", " \t", "", "vier", "fünf"])
    return "val.de.gz, line 2: empty, but not so in ", "val.en.gz"


def half_an_archive(folder):
    whole = (folder / "train.en.gz").read_bytes()
    (folder / "train.en.gz").write_bytes(whole[: len(whole) // 2])
    return "train.en.gz: not a whole gzip archive"


def no_archive(folder):
    (folder / "train.en.gz").write_text("<html>Not found</html>")
    return "train.en.gz: not a whole gzip archive"


def no_lines(folder):
    write_archive(folder, "train.en.gz", [])
    write_archive(folder, "train.de.gz", [])
    return "train.en.gz: no lines in it"


@pytest.mark.parametrize(
    "spoil", [missing, unequal, wrong_encoding, empty_on_one_side, half_an_archive, no_archive, no_lines]
)
def test_bad_archives(archives, workplace, spoil):
    folder, out = workplace.root / "archives", workplace.root / "out"
    shutil.copytree(archives, folder)
    wanted = spoil(folder)
    workplace.refused(workplace.prepare("--from", folder, "out"), *([wanted] if isinstance(wanted, str) else wanted))
    assert not finished(out)
    assert not list(out.glob("*.part.*"))

    # Nothing binds the folder yet: whole archives, from elsewhere, are taken.
    workplace.stub("sacremoses", "exit 1")
    workplace.refused(workplace.prepare("--from", archives, "out"), "stage 'tokenised' failed")
    assert finished(out) == ["raw"]


def test_carriage_returns_and_an_open_last_line_keep_their_place(archives, workplace):
    folder = workplace.root / "archives"
    shutil.copytree(archives, folder)
    (folder / "val.en.gz").write_bytes(gzip.compress(b"one\r\ntwo\rwords\n\nfour"))
    write_archive(folder, "val.de.gz", ["eins", "zwei Wörter", "", "vier"])
    workplace.stub("subword-nmt", "exit 1")
    workplace.refused(workplace.prepare("--from", folder, "out"), "stage 'codes' failed")
    assert (workplace.root / "out/raw/valid.en").read_text() == "one \ntwo words\n\nfour\n"
    assert read(workplace.root / "out/tokenised/valid.en") == ["one", "two words", "", "four"]


def test_mirror(archives, workplace):
    mirror, out = workplace.root / "mirror", workplace.root / "out"
    workplace.stub("sacremoses", "exit 1")
    dead = workplace.prepare("out", MIRROR="http://127.0.0.1:9/raw")
    workplace.refused(dead, "cannot download http://127.0.0.1:9/raw/train.en.gz", "--from")

    shutil.copytree(archives, mirror)
    half_an_archive(mirror)
    workplace.refused(
        workplace.prepare("out", MIRROR=mirror.as_uri()), f"{mirror.as_uri()}/train.en.gz is not a whole archive"
    )
    assert not (out / "download/train.en.gz").exists()

    shutil.copy(archives / "train.en.gz", mirror)
    workplace.refused(workplace.prepare("out", MIRROR=mirror.as_uri()), "stage 'tokenised' failed")
    assert (out / "raw/train.en").read_bytes() == gzip.decompress((archives / "train.en.gz").read_bytes())
    assert sorted(file.name for file in (out / "download").iterdir()) == sorted(
        file.name for file in archives.iterdir()
    )


def test_full_disk(archives, workplace):
    out = workplace.root / "out"
    out.mkdir()
    (out / "settings.part").symlink_to("/dev/full")
    workplace.refused(
        workplace.prepare("--from", archives, "out"), "cannot write in out: it is read-only or the disk is full"
    )
    (out / "settings.part").unlink()
    assert not list(out.iterdir())

    workplace.stub("sacremoses", f'exec {shutil.which("sacremoses", path=workplace.path)} "$@" >/dev/full')
    workplace.refused(
        workplace.prepare("--from", archives, "out"), "stage 'tokenised' failed", "No space left on device"
    )
    assert finished(out) == ["raw"]
    assert not list(out.glob("*.part.*"))


def test_other_settings_are_refused(prepared, archives, workplace):
    out = workplace.root / "out"
    shutil.copytree(prepared.out, out)
    before = contents(out)
    workplace.refused(
        workplace.prepare("--from", archives, "--limit", 3, "out"), "out was prepared with limit none, not limit 3"
    )
    workplace.refused(
        workplace.prepare("--from", workplace.root, "out"), f"with from {archives}, not from {workplace.root}"
    )
    earlier = ["--codes", out / "codes", "--dict", out / "dict.txt"]
    workplace.refused(
        workplace.prepare("--from", archives, *earlier, "out"), "with codes learnt,dict learnt, not codes "
    )
    assert contents(out) == before


def test_a_folder_of_something_else_is_refused(archives, workplace):
    (workplace.root / "out/raw").mkdir(parents=True)
    workplace.refused(workplace.prepare("--from", archives, "out"), "out/raw is there, but was not made by this script")


@pytest.mark.parametrize(("unknown", "accepted"), [("0.0", True), ("6.82e-05", True), ("5.01", False), ("62.5", False)])
def test_dictionary_of_another_run_is_refused(prepared, archives, workplace, unknown, accepted):
    workplace.stub("sacremoses", "cat")
    workplace.stub("subword-nmt", "cat")
    lines = (
        (prepared.out / "bin/preprocess.log")
        .read_text()
        .replace("tokens, 0.0% replaced", f"tokens, {unknown}% replaced")
    )
    (workplace.root / "log").write_text(lines)
    folder = '"${@: -1}"'
    workplace.stub(
        "fairseq-preprocess",
        f"mkdir {folder}; cp {workplace.root}/log {folder}/preprocess.log; touch {folder}/dict.en.txt",
    )
    earlier = ["--codes", prepared.out / "codes", "--dict", prepared.out / "dict.txt"]
    process = workplace.prepare("--from", archives, *earlier, "out")
    if accepted:
        assert process.returncode == 0
    else:
        workplace.refused(process, "unknown to the dictionary", "of one and the same run")
        assert finished(workplace.root / "out") == ["raw", "tokenised", "codes", "bpe"]


# --- the shell functions ----------------------------------------------------------------------------------------------


def test_pieces_keep_their_order(workplace):
    lines = [f"line {number}" for number in range(12_000)] + ["", "", "last"]
    (workplace.root / "from").mkdir()
    for lang in ("en", "de"):
        (workplace.root / "from" / f"train.{lang}").write_text("".join(f"{line}\n" for line in lines))
    process = workplace.common('mark() { sed "s/^/$1 /"; }; mkdir to; in_pieces from mark to')
    assert process.returncode == 0, process.errors
    for lang in ("en", "de"):
        assert (workplace.root / "to" / f"train.{lang}").read_text() == "".join(f"{lang} {line}\n" for line in lines)
    assert sorted(file.name for file in (workplace.root / "to").iterdir()) == ["train.de", "train.en"]


@pytest.mark.parametrize("body", ["false | cat", "head -c 9 && false", "sed 1d"])
def test_a_filter_that_fails_or_loses_lines_is_noticed(workplace, body):
    (workplace.root / "from").mkdir()
    (workplace.root / "from/train.en").write_text("one\ntwo\n")
    process = workplace.common(f"broken() {{ {body}; }}; mkdir to; in_pieces from broken to; echo passed")
    assert process.returncode != 0
    assert "passed" not in process.output


def test_a_stage_stops_at_its_first_failure(workplace):
    process = workplace.common(
        'make() { mkdir "$1"; false; echo whole >"$1/file"; }; enter out; stage folder make; echo passed'
    )
    assert process.returncode == 1
    assert "passed" not in process.output
    assert "stage 'folder' failed: no reason given" in process.errors
    assert sorted(file.name for file in (workplace.root / "out").iterdir()) == ["folder.log", "settings.part"]
