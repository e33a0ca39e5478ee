"""Messages of the scripts for the corpora of WMT and NIST: archives and licensed files are missing or broken."""

import shutil

import pytest

from fairseq_capsule_lab.corpora.archives import CHECKSUMS
from tests.integration import archives
from tests.integration.archives import EN_RO, ZH_EN, make_archives, make_cwmt, make_ldc, pack, write_checksums
from tests.integration.commands import PATH
from tests.integration.preparing import Workplace, read


@pytest.fixture
def romanian(tmp_path):
    workplace = Workplace(tmp_path, "prepare-wmt16-en-ro.sh")
    (tmp_path / "archives").mkdir()
    make_archives(tmp_path / "archives", EN_RO)
    write_checksums(workplace.checksums, tmp_path / "archives")
    return workplace


@pytest.fixture
def chinese(tmp_path):
    workplace = Workplace(tmp_path, "prepare-wmt17-zh-en.sh")
    (tmp_path / "archives").mkdir()
    make_archives(tmp_path / "archives", ZH_EN)
    make_cwmt(tmp_path / "cwmt")
    return workplace


@pytest.fixture
def licensed(tmp_path):
    (tmp_path / "LDC").mkdir()
    make_ldc(tmp_path / "LDC")
    return Workplace(tmp_path, "prepare-nist-zh-en.sh")


def nothing_made(out):
    return not any((out / stage).exists() for stage in ("raw", "settings")) and not list(out.glob("*.part.*"))


def halve(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("training-parallel-ep-v8.tgz", "training-parallel-ep-v8.tgz: cannot be unpacked (unexpected end"),
        ("en-ro.txt.zip", "en-ro.txt.zip: cannot be unpacked ("),
        ("test.tgz", "test.tgz: wrong checksum, MD5 "),
    ],
)
def test_a_truncated_archive_is_refused(romanian, name, wanted):
    halve(romanian.root / "archives" / name)
    assert romanian.refused(romanian.prepare("--from", "archives", "out"), wanted, "fetch it again")
    assert nothing_made(romanian.out)


def test_a_file_that_is_not_an_archive_is_refused(romanian):
    (romanian.root / "archives/training-parallel-ep-v8.tgz").write_text("<html>Not found</html>")
    process = romanian.prepare("--from", "archives", "out")
    assert romanian.refused(process, "training-parallel-ep-v8.tgz: cannot be unpacked (not in gzip format)")


def test_a_missing_archive_is_named(romanian):
    (romanian.root / "archives/en-ro.txt.zip").unlink()
    process = romanian.prepare("--from", "archives", "out")
    assert romanian.refused(process, "archives/en-ro.txt.zip is missing: --from takes a folder with all archives")
    assert nothing_made(romanian.out)


@pytest.mark.parametrize(
    "name, member", [("en-ro.txt.zip", "SETIMES.en-ro.en"), ("test.tgz", "newstest2016-enro-src.en.sgm")]
)
def test_an_archive_without_its_files_is_refused(romanian, name, member):
    pack(romanian.root / "archives", name, {"README": b"nothing else\n"})
    romanian.checksums.write_text("")
    process = romanian.prepare("--from", "archives", "out")
    assert romanian.refused(process, f"{name} has no {member}: check that this is the right archive")


def test_parts_that_are_not_parallel_are_refused(romanian):
    members = {**EN_RO["en-ro.txt.zip"], "SETIMES.en-ro.en": b"one\n"}
    pack(romanian.root / "archives", "en-ro.txt.zip", members)
    process = romanian.prepare("--from", "archives", "out")
    assert romanian.refused(process, "SETIMES.en-ro.en has 1 lines, ", "SETIMES.en-ro.ro has 9: give parallel texts")


def test_a_dead_address_and_a_truncated_download_are_refused(romanian):
    dead = romanian.prepare("out", MIRROR="http://127.0.0.1:9")
    assert romanian.refused(
        dead, "cannot download http://127.0.0.1:9/training-parallel-ep-v8.tgz (Connection refused)", "--from"
    )
    halve(romanian.root / "archives/training-parallel-ep-v8.tgz")
    mirror = (romanian.root / "archives").as_uri()
    process = romanian.prepare("out", MIRROR=mirror)
    assert romanian.refused(process, f"{mirror}/training-parallel-ep-v8.tgz is not a complete archive: try again")
    assert not (romanian.out / "download/training-parallel-ep-v8.tgz").exists()
    assert nothing_made(romanian.out)


def test_a_full_disk_is_reported(romanian):
    (romanian.root / "libraries").mkdir()
    (romanian.root / "libraries/tarfile.py").write_text(
        "class TarError(Exception): pass\ndef open(*words, **options): raise OSError(28, 'No space left on device')\n"
    )
    romanian.path = f"{romanian.stubs}:{PATH}"
    assert romanian.refused(romanian.prepare("--from", "archives", "out"), "No space left on device", "free some disk")
    assert nothing_made(romanian.out)


@pytest.mark.parametrize(
    "arguments, wanted",
    [
        (["--diacritics", "none", "out"], "--diacritics must be remove or keep, not 'none'"),
        (["--share", "both", "out"], "--share takes joint or separate, not 'both'"),
        (["--bpe", "joint", "out"], "--bpe takes subword-nmt, sentencepiece or sentencepiece-bpe, not 'joint'"),
        (["--ratio", "high", "out"], "--ratio must be a number, not 'high'"),
        (["--merges", "0", "out"], "--merges must be a positive whole number, not '0'"),
        (["--max-length", "x", "out"], "--max-length must be a positive whole number, not 'x'"),
        (["--codes", "here", "--dict", "here", "--share", "separate", "out"], "--codes here.en: no such file"),
    ],
)
def test_wrong_options_are_refused(romanian, arguments, wanted):
    assert romanian.refused(romanian.prepare("--from", "archives", *arguments), wanted)
    assert not romanian.out.exists()


# --- the scripts in bash ---------------------------------------------------------------------------------------------


def cut_an_archive(folder):
    halve(folder / "archives/UNv1.0.en-zh.tar.gz.01")
    return "stage 'raw' failed: ", "tar.gz.01: no complete archive with UNv1.0.en-zh.zh and UNv1.0.en-zh.en"


def leave_out_an_archive(folder):
    (folder / "archives/dev.tgz").unlink()
    return "archives/dev.tgz is missing: --from takes a folder with all archives", "run the same command again"


def leave_out_a_text(folder):
    (folder / "cwmt/datum2017/Book7_en.txt").unlink()
    return ("Book7_ch.txt (or _cn) or Book7_en.txt of CWMT is missing",)


def break_a_text(folder):
    members = {**ZH_EN["dev.tgz"], "dev/newsdev2017-zhen-src.zh.sgm": b"<seg>one"}
    pack(folder / "archives", "dev.tgz", members)
    return ("newsdev2017-zhen-src.zh.sgm, segment", "no </seg>: fetch the file again")


def keep_real_checksums(folder):
    shutil.copy(CHECKSUMS, folder / "archives.md5")
    return ("archives/dev.tgz: wrong checksum: delete it and fetch it again",)


@pytest.mark.parametrize(
    "harm", [cut_an_archive, leave_out_an_archive, leave_out_a_text, break_a_text, keep_real_checksums]
)
def test_bad_archives_are_refused(chinese, harm):
    chinese.checksums.write_text("")
    wanted = harm(chinese.root)
    assert chinese.refused(chinese.prepare("--from", "archives", "--cwmt", "cwmt", "out"), *wanted)
    assert nothing_made(chinese.out)


@pytest.mark.parametrize(
    "words, wanted",
    [
        ("out", "CWMT is available only on registration: give its folder by --cwmt DIR, or leave it out by --parts"),
        ("--cwmt nowhere out", "--cwmt nowhere: no such folder"),
        ("--parts nc,news out", "--parts takes some of nc,un,cwmt, not 'nc,news'"),
        ("--parts nc --merges 0 out", "--merges takes a positive whole number, not '0'"),
        ("--parts nc --share both out", "--share takes joint or separate, not 'both'"),
        ("--parts nc --form x out", "unrecognized option '--form'"),
        ("--parts nc out --limit", "option '--limit' requires an argument"),
        ("--parts nc a b", "name one folder OUT, not both 'a' and 'b'"),
        ("--parts nc --codes a out", "--codes and --dict belong together"),
        ("--parts nc --codes a --dict b out", "a.zh: no such file"),
    ],
)
def test_wrong_options_of_a_script_are_refused(chinese, words, wanted):
    assert chinese.refused(chinese.prepare(*words.split()), wanted)
    assert not chinese.out.exists()


def test_a_folder_of_other_options_is_refused_and_a_download_is_resumed(chinese):
    chinese.checksums.write_text("")
    options, mirror = ["--parts", "nc,un", "out"], (chinese.root / "archives").as_uri()
    assert chinese.refused(chinese.prepare(*options, MIRROR="http://127.0.0.1:9"), "stage 'raw' failed: curl: (7)")
    chinese.stub("sacremoses", "echo out of luck >&2; exit 1")
    assert chinese.refused(chinese.prepare(*options, MIRROR=mirror), "stage 'raw' failed: out of luck")
    assert (chinese.out / "download/dev.tgz").read_bytes() == (chinese.root / "archives/dev.tgz").read_bytes()
    assert nothing_made(chinese.out)
    chinese.unstub()
    chinese.kill_at("tokenised")
    assert chinese.prepare(*options, MIRROR=mirror).returncode == -9
    refused = chinese.prepare("--limit", "3", *options, MIRROR=mirror)
    assert chinese.refused(refused, "out was prepared with other options (see out/settings): delete it")


# --- available only on registration -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("LDC2003E14/LDC2003E14.en", "LDC2003E14.en is missing: get it from the LDC under its licence"),
        ("LDC2010T14/nist_openmt_2005/data/mt05_chinese_evalset_v0.xml", "mt05_chinese_evalset*.xml is missing"),
        (
            "LDC2010T14/nist_openmt_2005/data/mt05_chinese_evalset_v0-ref.xml",
            "mt05_chinese_evalset*-ref.xml is missing",
        ),
    ],
)
def test_missing_licensed_files_are_named(licensed, name, wanted):
    assert licensed.refused(licensed.prepare("out"), "give --from DIR: the LDC distributes these corpora only under")
    (licensed.root / "LDC" / name).unlink()
    assert licensed.refused(licensed.prepare("--from", "LDC", "out"), wanted)
    assert nothing_made(licensed.out)


def test_evaluation_sets_that_are_not_parallel_are_refused(licensed):
    file = licensed.root / "LDC/LDC2010T11/nist_openmt_2003/data/mt03_chinese_evalset_v0-ref.xml"
    whole = file.read_text()
    file.write_text(whole.replace("E03", "E02"))
    assert licensed.refused(licensed.prepare("--from", "LDC", "out"), "-ref.xml: 3 translations, not 4")
    head, _, tail = whole.rpartition('<seg id="2">')
    file.write_text(f'{head}<seg id="9">{tail}')
    process = licensed.prepare("--from", "LDC", "out")
    assert licensed.refused(process, "-ref.xml: E03 has no segment 2 of document d: fetch it again")
    shutil.copy(file.with_name("mt03_chinese_evalset_v0.xml"), file)
    file.with_name("mt03_chinese_evalset_v0.xml").write_text("<html></html>")
    assert licensed.refused(licensed.prepare("--from", "LDC", "out"), "v0.xml: it has no <seg>")


def test_the_four_references_are_kept(licensed):
    licensed.fail("tokenised")
    assert licensed.prepare("--from", "LDC", "out").returncode
    for split, seed in (("valid", 3), ("test", 4), ("test1", 5), ("test2", 6)):
        references = [read(licensed.out / "raw" / f"{split}.en{number}") for number in ("", 1, 2, 3)]
        assert references == [list(archives.sentences("en", seed, seed + 10 * number)) for number in range(4)]
