"""Messages for wrong options, archives, downloads, disks and folders.

`prepare-multi30k.sh` stands for all prepare scripts.
"""

import gzip
import shutil

import pytest

from tests.integration.commands import PATH
from tests.integration.multi30k import finished, write_archive
from tests.integration.preparing import Workplace, contents, read


@pytest.fixture
def workplace(tmp_path):
    return Workplace(tmp_path, "prepare-multi30k.sh")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--limit", "0", "out"], "--limit must be a positive whole number, not '0'"),
        (["--limit", "-3", "out"], "--limit must be a positive whole number, not '-3'"),
        (["--limit", "1e3", "out"], "--limit must be a positive whole number, not '1e3'"),
        (["--from", "nowhere", "out"], "--from nowhere: no such folder"),
        (["--pair", "en-es", "out"], "--pair takes two of en, de, fr and cs, such as en-fr, not 'en-es'"),
        (["--pair", "de-de", "out"], "--pair takes two of en, de, fr and cs, such as en-fr, not 'de-de'"),
        (["--codes", "good.codes", "out"], "--codes and --dict belong together"),
        (["--dict", "good.dict", "out"], "--codes and --dict belong together"),
        (["--codes", "nowhere", "--dict", "good.dict", "out"], "--codes nowhere: no such file"),
        (["--codes", "good.dict", "--dict", "good.dict", "out"], "--codes good.dict: not codes"),
        (["--codes", "good.codes", "--dict", "nowhere", "out"], "--dict nowhere: no such file"),
        (["--codes", "good.codes", "--dict", "good.codes", "out"], "good.codes, line 1: '#version: 0.2' is not"),
        (["/dev/full"], "/dev/full is not a folder"),
        (["/dev/full/out"], "cannot make the folder /dev/full/out"),
        (["good.codes"], "good.codes is not a folder"),
    ],
)
def test_wrong_arguments_are_refused(workplace, arguments, wanted):
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
    return "val.de.gz, line 2: empty, but not in ", "val.en.gz"


def half_an_archive(folder):
    whole = (folder / "train.en.gz").read_bytes()
    (folder / "train.en.gz").write_bytes(whole[: len(whole) // 2])
    return "train.en.gz: not a complete gzip archive"


def no_archive(folder):
    (folder / "train.en.gz").write_text("<html>Not found</html>")
    return "train.en.gz: not a complete gzip archive"


def no_lines(folder):
    write_archive(folder, "train.en.gz", [])
    write_archive(folder, "train.de.gz", [])
    return "train.en.gz: no lines in it"


@pytest.mark.parametrize(
    "corrupt", [missing, unequal, wrong_encoding, empty_on_one_side, half_an_archive, no_archive, no_lines]
)
def test_bad_archives_are_refused_and_complete_ones_accepted_later(archives, workplace, corrupt):
    folder, out = workplace.root / "archives", workplace.root / "out"
    shutil.copytree(archives, folder)
    wanted = corrupt(folder)
    workplace.refused(workplace.prepare("--from", folder, "out"), *([wanted] if isinstance(wanted, str) else wanted))
    assert not finished(out)
    assert not list(out.glob("*.part.*"))

    # The folder has no settings yet, so complete archives from another folder are accepted.
    workplace.fail("tokenised")
    workplace.refused(workplace.prepare("--from", archives, "out"), "stage 'tokenised' failed")
    assert finished(out) == ["raw"]


def test_carriage_returns_and_a_last_line_without_a_newline_keep_their_place(archives, workplace):
    folder = workplace.root / "archives"
    shutil.copytree(archives, folder)
    (folder / "val.en.gz").write_bytes(gzip.compress(b"one\r\ntwo\rwords\n\nfour"))
    write_archive(folder, "val.de.gz", ["eins", "zwei Wörter", "", "vier"])
    workplace.fail("codes")
    workplace.refused(workplace.prepare("--from", folder, "out"), "stage 'codes' failed")
    assert (workplace.root / "out/raw/valid.en").read_text() == "one \ntwo words\n\nfour\n"
    assert read(workplace.root / "out/tokenised/valid.en") == ["one", "two words", "", "four"]


def test_downloads_from_a_mirror_are_checked(archives, workplace):
    mirror, out = workplace.root / "mirror", workplace.root / "out"
    workplace.fail("tokenised")
    dead = workplace.prepare("out", MIRROR="http://127.0.0.1:9/raw")
    workplace.refused(dead, "cannot download http://127.0.0.1:9/raw/train.en.gz", "--from")

    shutil.copytree(archives, mirror)
    half_an_archive(mirror)
    workplace.refused(
        workplace.prepare("out", MIRROR=mirror.as_uri()), f"{mirror.as_uri()}/train.en.gz is not a complete archive"
    )
    assert not (out / "download/train.en.gz").exists()

    shutil.copy(archives / "train.en.gz", mirror)
    workplace.refused(workplace.prepare("out", MIRROR=mirror.as_uri()), "stage 'tokenised' failed")
    assert (out / "raw/train.en").read_bytes() == gzip.decompress((archives / "train.en.gz").read_bytes())
    assert sorted(file.name for file in (out / "download").iterdir()) == sorted(
        file.name for file in archives.iterdir()
    )


def test_a_full_disk_is_reported(archives, workplace):
    out = workplace.root / "out"
    limited = ("bash", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "-")  # no file may have a byte
    workplace.path = f"{workplace.stubs}:{PATH}"  # a warm command has other limits
    full = workplace.run(*limited, "scripts/prepare-multi30k.sh", "--from", archives, "out")
    workplace.refused(full, "cannot write in out, which is read-only or on a full disk")
    assert [file.stat().st_size for file in out.iterdir()] == [0]

    workplace.stub_library("sacremoses", "print('a', file=open('/dev/full', 'w'), flush=True)")
    workplace.refused(
        workplace.prepare("--from", archives, "out"), "stage 'tokenised' failed", "No space left on device"
    )
    assert finished(out) == ["raw"]
    assert not list(out.glob("*.part.*"))


@pytest.mark.parametrize("name", ["settings", "settings.part", "raw.log", "raw", "download", "raw/SHA256SUMS"])
def test_a_folder_with_a_link_is_refused(archives, workplace, name):
    victim, place = workplace.root / "victim", workplace.root / "out" / name
    victim.write_text("untouched")
    place.parent.mkdir(parents=True)
    place.symlink_to(victim)
    refused = workplace.prepare("--from", archives, "out")
    workplace.refused(refused, f"out/{name}: a link, not a file or a folder; delete it, or name another folder")
    assert victim.read_text() == "untouched" and [path.name for path in place.parent.iterdir()] == [place.name]


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
        workplace.prepare("--from", archives, *earlier, "out"), "with codes learnt,dict learnt: delete it"
    )
    assert contents(out) == before


def test_a_folder_of_something_else_is_refused(archives, workplace):
    (workplace.root / "out/raw").mkdir(parents=True)
    workplace.refused(workplace.prepare("--from", archives, "out"), "out/raw exists, but was not made by this script")


@pytest.mark.parametrize(("unknown", "accepted"), [("0.0", True), ("6.82e-05", True), ("5.01", False), ("62.5", False)])
def test_the_dictionary_of_another_run_is_refused(prepared, archives, workplace, unknown, accepted):
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
        workplace.refused(process, "unknown to the dictionary", "of the same run")
        assert finished(workplace.root / "out") == ["raw", "tokenised", "codes", "bpe"]
