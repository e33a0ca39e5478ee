"""The archive of results, scripts/share_results.py."""

import io
import json
import lzma
import os
import random
import tarfile
from pathlib import Path

import pytest

from tests.processes import run_script

SCRIPT = Path(__file__).parents[1] / "scripts" / "share_results.py"
GENERATED = "S-{n}\t{source}\nT-{n}\t{target}\nH-{n}\t-0.5\tein haus\nD-{n}\t-0.5\tein haus\nP-{n}\t-0.5 -0.5\n"
# The second source and target have a word that is not in the dictionary.
SOURCES, TARGETS = ("a house", "a <unk>"), ("ein haus", "ein <<unk>>")
LOG = """\
[2026-11-23 01:55:03,369][fairseq_cli.train][INFO] - task: CapsuleTranslationTask
[2026-11-23 01:55:03,369][fairseq_cli.train][INFO] - num. shared model params: 1,111 (num. trained: 1,111)
[2026-11-23 01:55:17,978][valid][INFO] - epoch 001 | valid on 'valid' subset | loss 11.7 | num_updates 6
"""


def run(*arguments):
    return run_script(SCRIPT, arguments)


@pytest.fixture
def data(tmp_path):
    """Prepared data with two test pairs."""
    folder = tmp_path / "data" / "multi30k"
    texts = {"bpe/test.en": "a house\na house-boat\n", "bpe/test.de": "ein haus\nein hausboot\n"}
    words = {"bin/dict.en.txt": "a 1\nhouse 1\n", "bin/dict.de.txt": "ein 1\nhaus 1\n"}
    for name, text in {**texts, **words}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def runs(tmp_path):
    """A finished run with every file of a run folder, and an unfinished run."""
    runs = tmp_path / "runs"
    folder = runs / "small" / "multi30k" / "transformer" / "seed1"
    (folder / "evaluation" / "test").mkdir(parents=True)
    (folder / "measures").mkdir()
    (folder / "finished").touch()
    (folder / "checkpoint_last.pt").write_bytes(b"x" * 1000)
    (folder / "train.log").write_text(LOG)
    task = {"_name": "capsule_translation", "source_lang": "en", "target_lang": "de"}
    (folder / "settings.json").write_text(json.dumps({"config": {"task": task}}))
    start = {"host": "here", "command": f"train.sh '/home/me/configs/transformer.yaml' '{folder}'", "seed": 1}
    (folder / "manifest.json").write_text(json.dumps({"starts": [start]}, indent=1))
    (folder / "measures" / "nll.json").write_text('{"nll": 2.5}')
    outputs = (
        GENERATED.format(n=n, source=source, target=target) for n, (source, target) in enumerate(zip(SOURCES, TARGETS))
    )
    (folder / "evaluation" / "test" / "generate.out").write_text("a line of the log\n" + "".join(outputs))
    scores = {"references": ["/home/me/My Files/test.de"], "against": str(runs / "small" / "x")}
    (folder / "evaluation" / "test" / "scores.json").write_text(json.dumps(scores))
    several = folder.parent / "seeds1-3" / "compared" / "x"
    several.mkdir(parents=True)
    (several / "test.json").write_text('{"scores": {}}')
    unfinished = folder.parent / "seed2"
    unfinished.mkdir()
    (unfinished / "settings.json").write_text("{}")
    return runs


def test_an_archive_has_no_checkpoints_no_text_of_the_corpus_and_no_paths(runs, tmp_path):
    assert run("pack", runs, tmp_path / "a.tar.xz").returncode == 0
    with tarfile.open(tmp_path / "a.tar.xz") as tar:
        content = {Path(name).name: tar.extractfile(name).read().decode() for name in tar.getnames()}
        assert not any("seed2" in name for name in tar.getnames())
    expected = {"settings.json", "manifest.json", "finished", "train.log", "nll.json", "scores.json", "generate.out"}
    assert set(content) == {*expected, "test.json"}
    assert content["generate.out"] == "H-0\t-0.5\tein haus\nH-1\t-0.5\tein haus\n"
    assert "CapsuleTranslationTask" not in content["train.log"] and "num_updates 6" in content["train.log"]
    assert json.loads(content["scores.json"]) == {"references": ["test.de"], "against": "small/x"}
    [start] = json.loads(content["manifest.json"])["starts"]
    assert start == {"seed": 1}


def test_the_same_results_give_the_same_bytes(runs, tmp_path):
    for name in ("a", "b"):
        assert run("pack", runs, tmp_path / f"{name}.tar.xz").returncode == 0
        (runs / "small/multi30k/transformer/seed1/finished").touch()
    assert (tmp_path / "a.tar.xz").read_bytes() == (tmp_path / "b.tar.xz").read_bytes()


def test_the_sentences_are_added_from_the_data(runs, data, tmp_path):
    run("pack", runs, tmp_path / "a.tar.xz")
    unpacked = run("unpack", tmp_path / "a.tar.xz", tmp_path / "out", "--data", data)
    assert unpacked.returncode == 0, unpacked.stderr
    before, after = (
        set((folder / "small/multi30k/transformer/seed1/evaluation/test/generate.out").read_text().splitlines())
        for folder in (runs, tmp_path / "out")
    )
    assert after == {line for line in before if line[:2] in ("S-", "T-", "H-")}


def test_the_sentences_of_an_adopted_baseline_are_added(runs, data, tmp_path):
    (runs / "small/multi30k/transformer/seed1").rename(runs / "small/multi30k/given")
    run("pack", runs, tmp_path / "a.tar.xz")
    assert run("unpack", tmp_path / "a.tar.xz", tmp_path / "out", "--data", data).returncode == 0
    assert "S-0\ta house\n" in (tmp_path / "out/small/multi30k/given/evaluation/test/generate.out").read_text()


def test_data_of_another_length_are_refused(runs, data, tmp_path):
    run("pack", runs, tmp_path / "a.tar.xz")
    (data / "bpe" / "test.en").write_text("a house\n")
    refused = run("unpack", tmp_path / "a.tar.xz", tmp_path / "out", "--data", data)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1
    assert "translations of 2 sentences, but" in refused.stderr and "has 1 lines" in refused.stderr


@pytest.mark.parametrize(
    "name, message",
    [
        ("multi30k/bin", "multi30k/bin/bin: no such folder; name prepared data, such as data/multi30k"),
        ("nothing", "nothing: No such file or directory"),
        ("toy", "toy: the archive has no translations of this corpus; it has: multi30k; name its data"),
    ],
)
def test_data_that_the_archive_does_not_need_are_refused(runs, data, tmp_path, name, message):
    run("pack", runs, tmp_path / "a.tar.xz")
    (tmp_path / "data/toy/bin").mkdir(parents=True)
    refused = run("unpack", tmp_path / "a.tar.xz", tmp_path / "out", "--data", tmp_path / "data" / name)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1 and message in refused.stderr
    assert not (tmp_path / "out").exists()


def test_the_sentences_of_several_hypotheses_are_added(runs, data, tmp_path):
    outputs = runs / "small/multi30k/transformer/seed1/evaluation/test/generate.out"
    outputs.write_text(outputs.read_text() + "H-0\t-0.7\tdas haus\nH-1\t-0.7\tdas haus\n")
    run("pack", runs, tmp_path / "a.tar.xz")
    unpacked = run("unpack", tmp_path / "a.tar.xz", tmp_path / "out", "--data", data)
    assert unpacked.returncode == 0, unpacked.stderr
    text = (tmp_path / "out" / outputs.relative_to(runs)).read_text()
    assert (text.count("H-"), text.count("S-"), text.count("T-")) == (4, 2, 2)


def test_a_damaged_dictionary_is_named(runs, data, tmp_path):
    run("pack", runs, tmp_path / "a.tar.xz")
    (data / "bin" / "dict.en.txt").write_text("a\n")
    refused = run("unpack", tmp_path / "a.tar.xz", tmp_path / "out", "--data", data)
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert "dict.en.txt, line 1: 'a' is not 'SYMBOL COUNT'" in refused.stderr


@pytest.mark.parametrize("damage", ["bit", "half", "random", "end", "headers"])
def test_an_archive_that_is_damaged_inside_is_refused(tmp_path, damage):
    """tarfile takes a damaged header after the first file for the end of the archive."""
    write_archive(tmp_path / "a.tar.xz", *((f"a/seed{seed}/settings.json", b"{}") for seed in (1, 2, 3)))
    content = bytearray(lzma.decompress((tmp_path / "a.tar.xz").read_bytes()))
    second, header = 2 * tarfile.BLOCKSIZE, b"9 a=bcde\n"
    changed = {
        "bit": content[: second + 3] + bytes([content[second + 3] ^ 1]) + content[second + 4 :],
        "half": content[: second + 100],
        "random": content[:second] + random.Random(1).randbytes(512) + content[second + 512 :],
        "end": content[:second],
        "headers": 2000 * (member("x", header, tarfile.XGLTYPE)[0].tobuf() + header.ljust(512, b"\0")) + content,
    }[damage]
    (tmp_path / "a.tar.xz").write_bytes(lzma.compress(bytes(changed)))
    refused(tmp_path / "a.tar.xz", tmp_path / "out", "a.tar.xz: damaged or cut short; download it again")


@pytest.mark.parametrize("junk", [b"\0", bytes(4), b"junk", lzma.compress(b""), lzma.compress(b"x"), b"\xfd7zXZ\0"])
def test_bytes_after_the_end_of_an_archive_are_refused(tmp_path, junk):
    """Python's lzma.open ignores them, or adds them to the content."""
    write_archive(tmp_path / "a.tar.xz", GOOD)
    with open(tmp_path / "a.tar.xz", "ab") as archive:
        archive.write(junk)
    refused(tmp_path / "a.tar.xz", tmp_path / "out", "a.tar.xz: damaged or cut short; download it again")


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "folder"])
def test_an_archive_is_a_regular_file(tmp_path, kind):
    place = Path(kind) if kind.startswith("/") else tmp_path / kind
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    done = run("unpack", place, tmp_path / "out")
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == f"share_results.py: {place}: a {'folder' if kind == 'folder' else 'pipe or a device'}; name a file\n"
    )


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.9])
def test_a_truncated_archive_is_refused(runs, tmp_path, kept):
    run("pack", runs, tmp_path / "a.tar.xz")
    content = (tmp_path / "a.tar.xz").read_bytes()
    (tmp_path / "a.tar.xz").write_bytes(content[: int(kept * len(content))])
    refused = run("unpack", tmp_path / "a.tar.xz", tmp_path / "out")
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1
    assert "a.tar.xz: damaged or cut short; download it again" in refused.stderr
    assert not list(tmp_path.glob("*out*"))


def test_an_archive_is_unpacked_beside_other_runs(runs, tmp_path):
    run("pack", runs, tmp_path / "a.tar.xz")
    assert run("unpack", tmp_path / "a.tar.xz", runs).returncode == 0
    assert (runs / "small/multi30k/transformer/seed1/checkpoint_last.pt").exists()


GOOD = ("a/seed1/settings.json", b"{}")


def member(name, content=b"", kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(content)
    return info, io.BytesIO(content)


def write_archive(path, *members):
    with tarfile.open(path, "w:xz", preset=0) as tar:
        for entry in members:
            tar.addfile(*(entry if isinstance(entry[0], tarfile.TarInfo) else member(*entry)))
    return path


def refused(archive, out, *texts):
    """Check that nothing is unpacked, and that one line says why."""
    before = {path: path.read_bytes() for path in out.parent.rglob("*") if path.is_file()}
    done = run("unpack", archive, out)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("share_results.py: ")
    for text in texts:
        assert text in done.stderr
    assert {path: path.read_bytes() for path in out.parent.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "name",
    [
        *("../settings.json", "a/../../settings.json", "/tmp/settings.json", "a//settings.json", "a/./settings.json"),
        *(
            ".git/settings.json",
            "a/.hidden/finished",
            "a\n/settings.json",
            "a\x1b[2J/settings.json",
            "a\u202e/finished",
        ),
        *("settings.json/", "x" * 2000 + "/finished"),
    ],
)
def test_a_member_has_a_plain_relative_name(tmp_path, name):
    archive = write_archive(tmp_path / "a.tar.xz", GOOD, (name, b"x"))
    refused(archive, tmp_path / "folder" / "out", "no plain relative name")


@pytest.mark.parametrize(
    "name",
    [
        *("checkpoint_last.pt", "a/seed1/checkpoint_best.pt", "sitecustomize.py", "a/hooks/pre-commit", "train.log.gz"),
        *("evaluation/scores.json", "evaluation/test/sub/scores.json", "a/measures/x.py", "a/compared/x.json"),
    ],
)
def test_a_member_is_a_file_that_pack_writes(tmp_path, name):
    archive = write_archive(tmp_path / "a.tar.xz", GOOD, (name, b"x"))
    refused(archive, tmp_path / "out", "no file of results")


@pytest.mark.parametrize(
    "kind",
    [
        *(tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE),
        *(tarfile.GNUTYPE_SPARSE, tarfile.CONTTYPE, b"?"),
    ],
)
def test_a_member_is_a_regular_file(tmp_path, kind):
    archive = write_archive(tmp_path / "a.tar.xz", GOOD, member("a/finished", kind=kind, link="/etc/passwd"))
    refused(archive, tmp_path / "out", "no regular file")


def test_links_longer_than_a_path_may_be_do_not_lead_outside(tmp_path):
    """Python 3.11's filter "data" follows them: it stops resolving links at the longest path of the system."""
    long, steps, path, members = "d" * 247, "abcdefghijklmnop", "", []
    for step in steps:
        members += [member(f"{path}{long}", kind=tarfile.DIRTYPE), member(f"{path}{step}", b"", tarfile.SYMTYPE, long)]
        path += f"{long}/"
    through = "/".join(steps) + "/" + "l" * 254
    members += [member(through, b"", tarfile.SYMTYPE, "../" * len(steps))]
    members += [member("escape", b"", tarfile.SYMTYPE, f"{through}/../outside"), ("escape/settings.json", b"written")]
    refused(write_archive(tmp_path / "a.tar.xz", *members), tmp_path / "out", "no regular file")


def test_a_name_in_a_header_of_its_own_is_checked(tmp_path):
    header = member("x", b"25 path=a/../../finished\n", tarfile.XHDTYPE)
    refused(write_archive(tmp_path / "a.tar.xz", GOOD, header, ("finished", b"")), tmp_path / "out", "no plain")


@pytest.mark.parametrize(
    "key", ["major", "minor", "size", "realsize", "map", "numblocks", "offset", "numbytes", "name"]
)
@pytest.mark.parametrize("value", ["", "x", "-1", "1.0", "9" * 30, "1,2,3", "a/../finished"])
def test_a_header_of_a_sparse_file_is_refused(tmp_path, key, value):
    records = [f" GNU.sparse.{key}={value}\n"]
    if key in ("major", "minor"):
        records = [f" GNU.sparse.major={value}\n", " GNU.sparse.minor=0\n"]
    lengths = [len(record) + 2 + (len(record) > 97) for record in records]
    content = "".join(f"{length}{record}" for length, record in zip(lengths, records))
    header = member("x", content.encode(), tarfile.XHDTYPE)
    archive = write_archive(tmp_path / "a.tar.xz", GOOD, header, ("b/finished", b"1\n0\n512\n" + bytes(600)))
    done = run("unpack", archive, tmp_path / "out")
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert done.returncode == 1 and done.stderr.startswith("share_results.py: ") and done.stderr.count("\n") == 1
        assert not (tmp_path / "out").exists()


def test_an_archive_without_files_is_refused(tmp_path):
    refused(write_archive(tmp_path / "a.tar.xz"), tmp_path / "out", "no files in it; name an archive that `pack` wrote")


def test_an_archive_of_many_files_is_refused(tmp_path):
    members = [(f"r{number}/finished", b"") for number in range(20_001)]
    refused(write_archive(tmp_path / "a.tar.xz", *members), tmp_path / "out", "over 20000 files")


def test_what_a_killed_pack_left_is_removed(runs, tmp_path):
    ended, living = (tmp_path / f".results.tar.xz.{number}-0.part" for number in (2**22 + 1, os.getpid()))
    ended.touch()
    living.touch()
    assert run("pack", runs, tmp_path / "results.tar.xz").returncode == 0
    assert not ended.exists() and living.exists()


def test_a_large_file_is_refused(tmp_path):
    archive = write_archive(tmp_path / "a.tar.xz", GOOD, ("a/train.log", bytes(32 * 2**20 + 1)))
    refused(archive, tmp_path / "out", "a/train.log: over 32 MiB")


def test_a_large_archive_is_refused_before_it_is_read_completely(tmp_path):
    compressor, zeros = lzma.LZMACompressor(preset=0), bytes(2**20)
    with open(tmp_path / "a.tar.xz", "wb") as file:
        for _ in range(300):
            file.write(compressor.compress(zeros))
        file.write(compressor.flush())
    refused(tmp_path / "a.tar.xz", tmp_path / "out", "over 256 MiB")


@pytest.mark.parametrize("size", [b"\xff" * 12, b"\x80" + b"\xff" * 11, b"77777777777\0"])
def test_a_wrong_size_is_refused(tmp_path, size):
    header = bytearray(member("finished")[0].tobuf())
    header[124:136] = size
    header[148:156] = b"%06o\0 " % tarfile.calc_chksums(bytes(header))[0]
    (tmp_path / "a.tar.xz").write_bytes(lzma.compress(bytes(header) + bytes(1024)))
    refused(tmp_path / "a.tar.xz", tmp_path / "out")


@pytest.mark.parametrize("second", ["a/finished", "a/finished/settings.json"])
def test_no_member_is_in_the_place_of_another(tmp_path, second):
    refused(write_archive(tmp_path / "a.tar.xz", ("a/finished", b"1"), (second, b"2")), tmp_path / "out")


@pytest.mark.parametrize("taken", ["a/seed1/settings.json", "a/seed1", "a"])
def test_what_exists_is_not_overwritten(tmp_path, taken):
    out = tmp_path / "out"
    (out / taken).parent.mkdir(parents=True)
    (out / taken).write_text("mine")
    refused(write_archive(tmp_path / "a.tar.xz", ("finished", b""), GOOD), out, str(out / taken))


@pytest.mark.parametrize("taken", ["a/seed1/settings.json", "a/seed1", "a"])
@pytest.mark.parametrize("exists", [True, False])
def test_no_link_is_followed(tmp_path, taken, exists):
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    (out / taken).parent.mkdir(parents=True)
    (out / taken).symlink_to(elsewhere)
    if exists and taken.endswith(".json"):
        elsewhere.write_bytes(GOOD[1])
    elif exists:
        elsewhere.mkdir()
    refused(write_archive(tmp_path / "a.tar.xz", ("finished", b""), GOOD), out, str(out / taken))


def test_unpacking_again_changes_nothing(runs, data, tmp_path):
    run("pack", runs, tmp_path / "a.tar.xz")
    for more in ([], [], ["--data", data], ["--data", data], []):
        unpacked = run("unpack", tmp_path / "a.tar.xz", tmp_path / "out", *more)
        assert unpacked.returncode == 0, unpacked.stderr
    run("pack", tmp_path / "out", tmp_path / "b.tar.xz")
    assert (tmp_path / "a.tar.xz").read_bytes() == (tmp_path / "b.tar.xz").read_bytes()


def test_unpacking_leaves_the_translations_of_other_runs(runs, data, tmp_path):
    run("pack", runs, tmp_path / "a.tar.xz")
    mine = runs / "small/multi30k/transformer/seed1/evaluation/test/generate.out"
    before = mine.read_bytes()
    assert run("unpack", tmp_path / "a.tar.xz", runs, "--data", data).returncode == 0
    assert mine.read_bytes() == before


def test_what_unpack_refuses_is_not_packed(runs, tmp_path):
    (runs / "small/multi30k/transformer/seed1").rename(runs / "small/multi30k/transformer/.seed1")
    done = run("pack", runs, tmp_path / "a.tar.xz")
    assert done.returncode == 1 and "no plain relative name" in done.stderr and done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("*a.tar*")) and not list(tmp_path.glob(".a.tar*"))


@pytest.mark.parametrize("link", ["seed1/measures/size.json", "seeds1-3/compared/x/test2.json", "seeds1-3/compared/y"])
def test_the_target_of_a_link_is_not_packed(runs, tmp_path, link):
    (tmp_path / "private.json").write_text('{"key": "private"}')
    target = tmp_path / "private.json" if link.endswith(".json") else tmp_path
    (runs / "small/multi30k/transformer" / link).symlink_to(target)
    done = run("pack", runs, tmp_path / "a.tar.xz")
    assert done.returncode == 1 and f"{link}" in done.stderr and ": a link" in done.stderr
    assert not (tmp_path / "a.tar.xz").exists()


def test_a_planted_link_is_not_followed(runs, tmp_path):
    (tmp_path / "victim").write_text("untouched")
    (tmp_path / ".a.tar.xz.part").symlink_to(tmp_path / "victim")
    assert run("pack", runs, tmp_path / "a.tar.xz").returncode == 0
    assert (tmp_path / "victim").read_text() == "untouched"


def test_a_folder_without_finished_runs_is_refused(tmp_path):
    refused = run("pack", tmp_path, tmp_path / "a.tar.xz")
    assert refused.returncode == 1 and "no finished runs" in refused.stderr
    assert not (tmp_path / "a.tar.xz").exists()


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("measures/nll.json", b"", "nll.json: not JSON; "),
        ("manifest.json", b"{}", "manifest.json: no manifest of train.sh; "),
        ("train.log", b"\xff", "train.log: not UTF-8; "),
    ],
)
def test_a_damaged_file_is_named(runs, tmp_path, name, content, message):
    archive, file = tmp_path / "a.tar.xz", runs / "small/multi30k/transformer/seed1" / name
    run("pack", runs, archive)
    file.write_bytes(content)
    refused = run("unpack", archive, runs)
    assert refused.returncode == 1 and f"{name}: exists with another content" in refused.stderr
    archive.unlink()
    refused = run("pack", runs, archive)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1 and message in refused.stderr
    assert not archive.exists()
