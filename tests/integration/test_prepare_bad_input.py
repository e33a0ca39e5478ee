"""What the prepare scripts refuse: wrong options, archives, downloads, disks and folders.

`prepare-multi30k.sh` stands for the scripts in Python, `prepare-wmt17-zh-en.sh` for those in bash.
"""

import gzip
import shutil

import pytest

from fairseq_capsule_lab.corpora.archives import CHECKSUMS
from tests.integration import archives as wmt
from tests.integration.archives import EN_RO, ZH_EN, make_workplace, pack
from tests.integration.commands import PATH
from tests.integration.multi30k import finished, write_archive
from tests.integration.preparing import Workplace, contents, read


@pytest.fixture
def workplace(tmp_path):
    return Workplace(tmp_path, "prepare-multi30k.sh")


@pytest.fixture
def romanian(tmp_path):
    return make_workplace("wmt16-en-ro", tmp_path)


@pytest.fixture
def chinese(tmp_path):
    place = make_workplace("wmt17-zh-en", tmp_path)
    place.checksums.write_text("")
    return place


@pytest.fixture
def licensed(tmp_path):
    return make_workplace("nist-zh-en", tmp_path)


def nothing_made(out):
    return not any((out / stage).exists() for stage in ("raw", "settings")) and not list(out.glob("*.part.*"))


def halve(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize(
    ("script", "arguments", "wanted"),
    [
        ("prepare-multi30k.sh", "", "Missing argument 'OUT'"),
        ("prepare-multi30k.sh", "a b", "unexpected extra argument (b)"),
        ("prepare-multi30k.sh", "--form x out", "No such option '--form'"),
        ("prepare-multi30k.sh", "--limit 0 out", "--limit must be a positive whole number, not '0'"),
        ("prepare-multi30k.sh", "--from nowhere out", "--from nowhere: no such folder"),
        ("prepare-multi30k.sh", "--codes good.codes out", "--codes and --dict belong together"),
        ("prepare-multi30k.sh", "--codes good.dict --dict good.dict out", "--codes good.dict: not codes"),
        ("prepare-multi30k.sh", "--codes good.codes --dict good.codes out", "good.codes, line 1: '#version: 0.2' is"),
        ("prepare-multi30k.sh", "good.codes", "good.codes is not a folder"),
        ("prepare-wmt16-en-ro.sh", "--from . --share both out", "--share takes joint or separate, not 'both'"),
        ("prepare-lcsts.sh", "out", "give --from DIR: the authors of LCSTS distribute it only on application"),
        ("prepare-lcsts.sh", "--from . out", "PART_I.txt is missing: --from takes the folder of PART_I.txt"),
        ("prepare-nist-zh-en.sh", "out", "give --from DIR: the LDC distributes these corpora only under"),
        ("prepare-wmt17-zh-en.sh", "out", "CWMT is available only on registration: give its folder by --cwmt DIR"),
        ("prepare-wmt17-zh-en.sh", "--parts nc,news out", "--parts takes some of nc,un,cwmt, not 'nc,news'"),
        ("prepare-wmt17-zh-en.sh", "--parts nc --merges 0 out", "--merges takes a positive whole number, not '0'"),
        ("prepare-wmt17-zh-en.sh", "--parts nc --form x out", "unrecognized option '--form'"),
        ("prepare-wmt17-zh-en.sh", "--parts nc --codes a --dict b out", "a.zh: no such file"),
    ],
)
def test_wrong_options_are_refused(tmp_path, script, arguments, wanted):
    place = Workplace(tmp_path, script)
    (tmp_path / "good.codes").write_text("#version: 0.2\na b\n")
    (tmp_path / "good.dict").write_text("a 2\nb 1\n")
    place.refused(place.prepare(*arguments.split()), wanted)
    assert nothing_made(place.out)


# --- archives and texts -----------------------------------------------------------------------------------------------


def missing(folder):
    (folder / "test_2017_mscoco.de.gz").unlink()
    return ("test_2017_mscoco.de.gz is missing",)


def unequal(folder):
    write_archive(folder, "val.de.gz", ["eins", "zwei"])
    return "val.en.gz has 5 lines, ", "val.de.gz has 2"


def wrong_encoding(folder):
    (folder / "val.de.gz").write_bytes(gzip.compress("eins\nMänner\n".encode("latin-1")))
    return ("val.de.gz, line 2: not UTF-8 at byte 2",)


def empty_on_one_side(folder):
    write_archive(folder, "val.de.gz", ["eins", " \t", "", "vier", "fünf"])
    return "val.de.gz, line 2: empty, but not in ", "val.en.gz"


def half_an_archive(folder):
    halve(folder / "train.en.gz")
    return ("train.en.gz: not a complete gzip archive",)


@pytest.mark.parametrize("corrupt", [missing, unequal, wrong_encoding, empty_on_one_side, half_an_archive])
def test_bad_archives_are_refused_and_complete_ones_accepted_later(archives, workplace, corrupt):
    folder, out = workplace.root / "archives", workplace.root / "out"
    shutil.copytree(archives, folder)
    wanted = corrupt(folder)
    workplace.refused(workplace.prepare("--from", folder, "out"), *wanted)
    assert not finished(out)
    assert not list(out.glob("*.part.*"))

    # The folder has no settings yet, so complete archives from another folder are accepted.
    workplace.fail("tokenised")
    workplace.refused(workplace.prepare("--from", archives, "out"), "stage 'tokenised' failed")
    assert finished(out) == ["raw"]


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
    romanian.refused(romanian.prepare("--from", "archives", "out"), wanted, "fetch it again")
    assert nothing_made(romanian.out)


def test_an_archive_of_other_texts_is_refused(romanian):
    members = {**EN_RO["en-ro.txt.zip"], "SETIMES.en-ro.en": b"one\n"}
    pack(romanian.root / "archives", "en-ro.txt.zip", members)
    romanian.checksums.write_text("")
    process = romanian.prepare("--from", "archives", "out")
    romanian.refused(process, "SETIMES.en-ro.en has 1 lines, ", "SETIMES.en-ro.ro has 9: give parallel texts")
    pack(romanian.root / "archives", "test.tgz", {"README": b"nothing else\n"})
    pack(romanian.root / "archives", "en-ro.txt.zip", EN_RO["en-ro.txt.zip"])
    process = romanian.prepare("--from", "archives", "out")
    romanian.refused(process, "test.tgz has no newstest2016-enro-src.en.sgm: check that this is the right archive")


def cut_an_archive(folder):
    halve(folder / "archives/UNv1.0.en-zh.tar.gz.01")
    return "stage 'raw' failed: ", "tar.gz.01: no complete archive with UNv1.0.en-zh.zh and UNv1.0.en-zh.en"


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


@pytest.mark.parametrize("harm", [cut_an_archive, leave_out_a_text, break_a_text, keep_real_checksums])
def test_a_script_in_bash_refuses_bad_archives(chinese, harm):
    wanted = harm(chinese.root)
    chinese.refused(chinese.prepare("--from", "archives", "--cwmt", "cwmt", "out"), *wanted)
    assert nothing_made(chinese.out)


def test_licensed_sets_that_are_not_parallel_are_refused_and_references_are_kept(licensed):
    licensed.fail("tokenised")
    licensed.refused(licensed.prepare("--from", "archives", "out"), "stage 'tokenised' failed")
    for split, seed in (("valid", 3), ("test", 4), ("test1", 5), ("test2", 6)):
        references = [read(licensed.out / "raw" / f"{split}.en{number}") for number in ("", 1, 2, 3)]
        assert references == [list(wmt.sentences("en", seed, seed + 10 * number)) for number in range(4)]
    file = licensed.root / "archives/LDC2010T11/nist_openmt_2003/data/mt03_chinese_evalset_v0-ref.xml"
    whole = file.read_text()
    file.write_text(whole.replace("E03", "E02"))
    licensed.refused(licensed.prepare("--from", "archives", "other"), "-ref.xml: 3 translations, not 4")
    head, _, tail = whole.rpartition('<seg id="2">')
    file.write_text(f'{head}<seg id="9">{tail}')
    process = licensed.prepare("--from", "archives", "other")
    licensed.refused(process, "-ref.xml: E03 has no segment 2 of document d: fetch it again")
    file.unlink()
    licensed.refused(licensed.prepare("--from", "archives", "other"), "mt03_chinese_evalset*-ref.xml is missing")


def test_carriage_returns_and_a_last_line_without_a_newline_keep_their_place(archives, workplace):
    folder = workplace.root / "archives"
    shutil.copytree(archives, folder)
    (folder / "val.en.gz").write_bytes(gzip.compress(b"one\r\ntwo\rwords\n\nfour"))
    write_archive(folder, "val.de.gz", ["eins", "zwei Wörter", "", "vier"])
    workplace.fail("codes")
    workplace.refused(workplace.prepare("--from", folder, "out"), "stage 'codes' failed")
    assert (workplace.root / "out/raw/valid.en").read_text() == "one \ntwo words\n\nfour\n"
    assert read(workplace.root / "out/tokenised/valid.en") == ["one", "two words", "", "four"]


# --- downloads, disks and folders -------------------------------------------------------------------------------------


def test_downloads_from_a_mirror_are_checked(archives, workplace):
    mirror, out = workplace.root / "mirror", workplace.root / "out"
    workplace.fail("tokenised")
    dead = workplace.prepare("out", MIRROR="http://127.0.0.1:9/raw")
    workplace.refused(dead, "cannot download http://127.0.0.1:9/raw/train.en.gz", "--from")

    shutil.copytree(archives, mirror)
    half_an_archive(mirror)
    address = mirror.as_uri()
    workplace.refused(workplace.prepare("out", MIRROR=address), f"{address}/train.en.gz is not a complete archive")
    assert not (out / "download/train.en.gz").exists()

    shutil.copy(archives / "train.en.gz", mirror)
    workplace.refused(workplace.prepare("out", MIRROR=address), "stage 'tokenised' failed")
    assert (out / "raw/train.en").read_bytes() == gzip.decompress((archives / "train.en.gz").read_bytes())
    assert {file.name for file in (out / "download").iterdir()} == {file.name for file in archives.iterdir()}


def test_a_full_disk_is_reported(archives, workplace):
    out = workplace.root / "out"
    limited = ("bash", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "-")  # no file may have a byte
    workplace.path = f"{workplace.stubs}:{PATH}"  # a warm command has other limits
    full = workplace.run(*limited, "scripts/prepare-multi30k.sh", "--from", archives, "out")
    workplace.refused(full, "cannot write in out, which is read-only or on a full disk")
    assert [file.stat().st_size for file in out.iterdir()] == [0]

    workplace.stub_library("sacremoses", "print('a', file=open('/dev/full', 'w'), flush=True)")
    process = workplace.prepare("--from", archives, "out")
    workplace.refused(process, "stage 'tokenised' failed", "No space left on device")
    assert finished(out) == ["raw"]
    assert not list(out.glob("*.part.*"))


def test_a_folder_with_a_link_is_refused(archives, workplace):
    victim, out = workplace.root / "victim", workplace.root / "out"
    victim.write_text("untouched")
    out.mkdir()
    (out / "raw.log").symlink_to(victim)
    process = workplace.prepare("--from", archives, "out")
    workplace.refused(process, "out/raw.log: a link, not a file or a folder; delete it, or name another folder")
    assert victim.read_text() == "untouched" and [path.name for path in out.iterdir()] == ["raw.log"]


def test_other_settings_are_refused(prepared, archives, workplace):
    out = workplace.root / "out"
    shutil.copytree(prepared.out, out)
    before = contents(out)
    limited = workplace.prepare("--from", archives, "--limit", 3, "out")
    workplace.refused(limited, "out was prepared with limit none, not limit 3")
    earlier = ["--codes", out / "codes", "--dict", out / "dict.txt"]
    process = workplace.prepare("--from", archives, *earlier, "out")
    workplace.refused(process, "with codes learnt,dict learnt: delete it")
    assert contents(out) == before


def test_a_script_in_bash_resumes_a_download_and_refuses_other_options(chinese):
    options, mirror = ["--parts", "nc,un", "out"], (chinese.root / "archives").as_uri()
    chinese.refused(chinese.prepare(*options, MIRROR="http://127.0.0.1:9"), "stage 'raw' failed: curl: (7)")
    chinese.stub("sacremoses", "echo out of luck >&2; exit 1")
    chinese.refused(chinese.prepare(*options, MIRROR=mirror), "stage 'raw' failed: out of luck")
    assert (chinese.out / "download/dev.tgz").read_bytes() == (chinese.root / "archives/dev.tgz").read_bytes()
    assert nothing_made(chinese.out)
    chinese.unstub()
    chinese.kill_at("tokenised")
    assert chinese.prepare(*options, MIRROR=mirror).returncode == -9
    refused = chinese.prepare("--limit", "3", *options, MIRROR=mirror)
    chinese.refused(refused, "out was prepared with other options (see out/settings): delete it")


@pytest.mark.parametrize(("unknown", "accepted"), [("6.82e-05", True), ("5.01", False), ("62.5", False)])
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
        workplace.refused(process, "unknown to the dictionary", "of the same run")
        assert finished(workplace.root / "out") == ["raw", "tokenised", "codes", "bpe"]
