"""What the prepare scripts refuse: wrong options, archives, downloads, disks and folders.

`prepare-multi30k.sh` stands for the scripts in Python, `prepare-wmt17-zh-en.sh` for those in bash.
"""

import gzip
import re
import shutil

import pytest

from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.corpora.archives import CHECKSUMS
from tests.integration import archives as wmt
from tests.integration.archives import EN_RO, make_workplace, pack
from tests.integration.multi30k import finished, write_archive
from tests.integration.preparing import Workplace, read


@pytest.fixture
def workplace(tmp_path):
    return Workplace(tmp_path, "prepare-multi30k.sh")


@pytest.fixture
def chinese(tmp_path):
    place = make_workplace("wmt17-zh-en", tmp_path)
    place.checksums.write_text("")
    return place


def nothing_made(out):
    return not any((out / stage).exists() for stage in ("raw", "settings.json")) and not list(out.glob("*.part.*"))


def halve(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


# --- archives and texts -----------------------------------------------------------------------------------------------


def test_bad_archives_are_refused_and_complete_ones_accepted_later(archives, tmp_path, refuses):
    folder, out = tmp_path / "archives", tmp_path / "out"
    for name, content, wanted in (
        ("test_2017_mscoco.de.gz", None, "test_2017_mscoco.de.gz is missing"),
        ("val.de.gz", gzip.compress(b"eins\nzwei\n"), "val.de.gz has 2: give parallel texts"),
        ("val.de.gz", gzip.compress("eins\nMänner\n".encode("latin-1")), "val.de.gz, line 2: not UTF-8 at byte 2"),
        ("val.de.gz", gzip.compress(b"eins\n \t\n\nvier\nfuenf\n"), "val.de.gz, line 2: empty, but not in "),
        ("train.en.gz", (archives / "train.en.gz").read_bytes()[:99], "train.en.gz: not a complete gzip archive"),
    ):
        shutil.copytree(archives, folder)
        (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
        assert wanted in refuses("multi30k", "--from", folder, out)
        assert not finished(out) and not list(out.glob("*.part.*"))
        shutil.rmtree(folder)
    # The folder has no settings yet, so complete archives from another folder are accepted.
    assert "stage 'tokenised' failed" in refuses("multi30k", "--from", archives, out)
    assert finished(out) == ["raw"]


def test_bad_archives_of_wmt_are_refused(tmp_path, refuses, monkeypatch):
    place = make_workplace("wmt16-en-ro", tmp_path)
    monkeypatch.setenv("CAPSULE_CHECKSUMS", str(place.checksums))
    folder = tmp_path / "archives"

    def refused():
        line = refuses("wmt16-en-ro", "--from", folder, place.out)
        assert nothing_made(place.out)
        return line

    halve(folder / "test.tgz")
    assert "test.tgz: wrong checksum, MD5 " in refused()
    pack(folder, "test.tgz", {"README": b"nothing else\n"})
    place.checksums.write_text("")
    assert "test.tgz has no newstest2016-enro-src.en.sgm: check that this is the right archive" in refused()
    pack(folder, "en-ro.txt.zip", {**EN_RO["en-ro.txt.zip"], "SETIMES.en-ro.en": b"one\n"})
    assert "SETIMES.en-ro.ro has 9: give parallel texts" in refused()
    for name in ("en-ro.txt.zip", "training-parallel-ep-v8.tgz"):
        halve(folder / name)
        assert f"{name}: cannot be unpacked (" in refused()


def cut_an_archive(folder):
    halve(folder / "archives/UNv1.0.en-zh.tar.gz.01")
    return "stage 'raw' failed: ", "UNv1.0.en-zh.tar.gz.01: cannot be unpacked (Compressed file ended"


def keep_real_checksums(folder):
    shutil.copy(CHECKSUMS, folder / "archives.md5")
    return ("archives/dev.tgz: wrong checksum, MD5 ", "delete it and fetch it again")


@pytest.mark.parametrize(("parts", "harm"), [("un", cut_an_archive), ("nc", keep_real_checksums)])
def test_a_script_in_bash_refuses_bad_archives(chinese, parts, harm):
    wanted = harm(chinese.root)
    chinese.refused(chinese.prepare("--from", "archives", "--parts", parts, "out"), *wanted)
    assert nothing_made(chinese.out)


def test_licensed_sets_that_are_not_parallel_are_refused_and_references_are_kept(tmp_path, refuses):
    make_workplace("nist-zh-en", tmp_path)
    options = ["nist-zh-en", "--from", tmp_path / "archives", tmp_path / "out"]
    file = tmp_path / "archives/LDC2010T11/nist_openmt_2003/data/mt03_chinese_evalset_v0-ref.xml"
    whole = file.read_text()
    file.write_text(whole.replace("E03", "E02"))
    assert "-ref.xml, segment 1 of document d: it is there twice" in refuses(*options)
    file.write_text(whole[: whole.rindex("<refset")])
    assert "-ref.xml: 3 translations, not 4" in refuses(*options)
    file.write_text(whole.replace('id="3"', 'id="4"', 1))
    assert "-ref.xml, translation E00: it has no segment 3 of document d, but " in refuses(*options)
    file.unlink()
    assert "mt03_chinese_evalset*-ref.xml is missing" in refuses(*options)
    ordered = re.findall("<seg.*</seg>", whole)[:3]
    file.write_text(whole.replace("\n".join(ordered), "\n".join(ordered[::-1])))
    source = file.with_name("mt03_chinese_evalset_v0.xml")
    segments = source.read_text()
    source.write_text(segments.replace("seg", "line"))
    assert "mt03_chinese_evalset_v0.xml: markup without <seg>" in refuses(*options)
    source.write_text(segments)
    assert "stage 'tokenised' failed" in refuses(*options)
    for split, seed in (("valid", 3), ("test", 4), ("test1", 5), ("test2", 6)):
        references = [read(tmp_path / "out/raw" / f"{split}.en{number}") for number in ("", 1, 2, 3)]
        assert references == [list(wmt.sentences("en", seed, seed + 10 * number)) for number in range(4)]


def test_carriage_returns_and_a_last_line_without_a_newline_keep_their_place(archives, tmp_path, refuses):
    folder = shutil.copytree(archives, tmp_path / "archives")
    (folder / "val.en.gz").write_bytes(gzip.compress(b"one\r\ntwo\rwords\n\nfour"))
    write_archive(folder, "val.de.gz", ["eins", "zwei Wörter", "", "vier"])
    assert "stage 'tokenised' failed" in refuses("multi30k", "--from", folder, tmp_path / "out")
    assert (tmp_path / "out/raw/valid.en").read_text() == "one \ntwo words\n\nfour\n"


# --- downloads, disks and folders -------------------------------------------------------------------------------------


def test_downloads_from_a_mirror_are_resumed(archives, tmp_path, refuses, monkeypatch):
    mirror, out = tmp_path / "mirror", tmp_path / "out"
    monkeypatch.setenv("MIRROR", "http://127.0.0.1:9/raw")
    line = refuses("multi30k", out)
    assert "cannot download http://127.0.0.1:9/raw/train.en.gz" in line and "--from" in line
    shutil.copytree(archives, mirror)
    monkeypatch.setenv("MIRROR", mirror.as_uri())
    (mirror / "val.de.gz").rename(mirror / "later")
    assert f"cannot download {mirror.as_uri()}/val.de.gz" in refuses("multi30k", out)
    (mirror / "later").rename(mirror / "val.de.gz")
    (mirror / "train.en.gz").unlink()
    assert "stage 'tokenised' failed" in refuses("multi30k", out)
    assert (out / "raw/train.en").read_bytes() == gzip.decompress((archives / "train.en.gz").read_bytes())
    assert {file.name for file in (out / "download").iterdir()} == {file.name for file in archives.iterdir()}


def test_a_script_in_bash_resumes_a_download_and_refuses_other_options(chinese):
    options, mirror = ["--parts", "nc", "out"], (chinese.root / "archives").as_uri()
    chinese.refused(
        chinese.prepare(*options, MIRROR="http://127.0.0.1:9"),
        "stage 'raw' failed: cannot download http://127.0.0.1:9/",
    )
    fails = "[[ $2 != moses-words ]] || { echo out of luck >&2; exit 1; }"
    chinese.stub("fairseq-capsule", f'{fails}\nPATH=${{PATH#*:}} exec fairseq-capsule "$@"')
    chinese.refused(chinese.prepare(*options, MIRROR=mirror), "stage 'raw' failed: out of luck")
    assert (chinese.out / "download/dev.tgz").read_bytes() == (chinese.root / "archives/dev.tgz").read_bytes()
    assert nothing_made(chinese.out)
    chinese.unstub()
    chinese.kill_at("tokenised")
    assert chinese.prepare(*options, MIRROR=mirror).returncode == -9
    refused = chinese.prepare("--limit", "3", *options, MIRROR=mirror)
    chinese.refused(refused, "out was prepared with other options (see out/settings.json): delete it")
    (chinese.out / "settings.json").write_text('{"config": {}}')  # of a training
    chinese.refused(
        chinese.prepare(*options, MIRROR=mirror), "out/settings.json: not of this script: name another folder"
    )


@pytest.mark.parametrize(("unknown", "accepted"), [("6.82e-05", True), ("5.01", False)])
def test_the_dictionary_of_another_run_is_refused(prepared, archives, workplace, unknown, accepted):
    log = (prepared.out / "bin/preprocess.log").read_text()
    (workplace.root / "log").write_text(log.replace("tokens, 0.0% replaced", f"tokens, {unknown}% replaced"))
    folder = '"${@: -1}"'
    make = f"mkdir {folder}; cp {workplace.root}/log {folder}/preprocess.log; touch {folder}/dict.en.txt"
    workplace.stub("fairseq-preprocess", make)
    earlier = ["--codes", prepared.out / "codes", "--dict", prepared.out / "dict.txt"]
    process = workplace.prepare("--from", archives, *earlier, "out")
    if accepted:
        assert process.returncode == 0
    else:
        workplace.refused(process, "5.01% of ", "unknown to the dictionary", "of one run", "--unknown-up-to 6")
        assert finished(workplace.root / "out") == ["raw", "tokenised", "codes", "bpe"]
        assert workplace.prepare("--from", archives, *earlier, "--unknown-up-to", 6, "out").returncode == 0


def test_a_script_in_bash_refuses_a_dictionary_with_a_symbol_that_stands_for_another(chinese):
    """fairseq-preprocess drops the mark, and nothing can read the folder."""
    files = ["--codes", chinese.root / "codes", "--dict", chinese.root / "dict.txt"]
    for language in ("zh", "en"):
        (chinese.root / f"codes.{language}").write_text("#version: 0.2\na b\n")
        (chinese.root / f"dict.{language}.txt").write_text("a 1\n<s> 1 #fairseq:overwrite\n")
    process = chinese.prepare("--from", "archives", "--parts", "nc", *files, "out")
    assert chinese.refused(process, "dict.zh.txt: #fairseq:overwrite: remove the symbol that is there twice")
    assert nothing_made(chinese.out)


@pytest.mark.parametrize("script", ["multi30k", "wmt17-zh-en"])
def test_offsets_that_fairseq_computed_are_computed_again(archives, tmp_path, capsys, script):
    place = Workplace(tmp_path, "prepare-multi30k.sh") if script == "multi30k" else make_workplace(script, tmp_path)
    wrong = 'truncate --size=-8 "$index"; printf "\\377%.0s" 1 2 3 4 5 6 7 8 >>"$index"'
    damage = f'for index in "${{@: -1}}"/*.idx; do {wrong}; done'
    place.stub("fairseq-preprocess", f'PATH=${{PATH#*:}} fairseq-preprocess "$@"\n{damage}')
    options = ["--from", archives] if script == "multi30k" else ["--from", "archives", "--parts", "nc"]
    out = place.prepared(*options).out
    assert main(["check-data", str(out), "--most-overlap", "100", "--most-unknown", "100"]) == 0, (
        capsys.readouterr().out
    )
