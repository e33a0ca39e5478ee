"""The complete `scripts/prepare-multi30k.sh`, on tiny archives with the names of the real ones."""

import gzip
import hashlib
import json
import shutil

import pytest

from capsule_routing.text.folders import settings_of
from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.processes import FORKS
from tests.integration.multi30k import ARCHIVES, STAGES, finished
from tests.integration.preparing import Workplace, check_reading, contents, read

FIRST_TOKENISED = (
    "don &apos;t touch &quot; tom &amp; jerry &quot; !",
    "über 1.000 männer ( u.a. tom &amp; jerry ) laufen .",
)


@pytest.fixture
def workplace(tmp_path):
    return Workplace(tmp_path, "prepare-multi30k.sh")


# --- results ----------------------------------------------------------------------------------------------------------


def test_every_stage_has_the_expected_text(prepared, archives):
    for split, stem in ARCHIVES.items():
        for side, lang in enumerate(("en", "de")):
            raw, tokenised, bpe = (prepared.out / stage / f"{split}.{lang}" for stage in ("raw", "tokenised", "bpe"))
            assert raw.read_bytes() == gzip.decompress((archives / f"{stem}.{lang}.gz").read_bytes())
            assert read(tokenised)[0] == FIRST_TOKENISED[side]
            assert [line.replace("@@ ", "") for line in read(bpe)] == read(tokenised)
    assert read(prepared.out / "tokenised" / "train.de")[1].endswith(", heute .")
    assert read(prepared.out / "codes")[0] == "#version: 0.2"
    assert any("@@ " in line for line in read(prepared.out / "bpe" / "train.en"))
    for language, frequent in (("en", "today"), ("de", "heute")):  # the merges are of both languages
        assert frequent in read(prepared.out / f"bpe/train.{language}")[1].split()


def test_the_folder_is_sound_and_raw_text_is_read_as_it_was_made(prepared, capsys):
    """check-data compares the binarised data with the text."""
    assert main(["check-data", str(prepared.out), "--most-overlap", "100"]) == 0, capsys.readouterr().out
    check_reading(prepared.out)
    for language in ("en", "de"):
        assert (prepared.out / f"bin/dict.{language}.txt").read_bytes() == (prepared.out / "dict.txt").read_bytes()


def test_the_manifest_has_sources_settings_and_files(prepared, archives):
    manifest = json.loads((prepared.out / "manifest.json").read_text())
    assert manifest["command"] == f"prepare-multi30k.sh '--from' '{archives}' 'out'"
    assert settings_of(prepared.out)["limit"] == "none"
    versions = manifest["versions"].keys()
    assert {"torch", "sacremoses", "subword-nmt"} <= versions and not versions.isdisjoint(FORKS)
    sources = {source["name"]: source["sha256"] for source in manifest["sources"]}
    assert sources == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in archives.iterdir()}
    assert manifest["texts"] == [{"name": "train.en.gz", "taken": "30 pairs"}]
    files = {name: facts["sha256"] for name, facts in manifest["files"].items()}
    made = {
        name: data
        for name, data in contents(prepared.out).items()
        if name not in ("manifest.json", "raw/SHA256SUMS", "raw/PARTS")
    }
    assert files == {name: hashlib.sha256(data).hexdigest() for name, data in made.items()}
    assert manifest["files"]["tokenised/train.de"]["lines"] == 30
    assert "bpe: test.de 5, test.en 5," in prepared.output
    assert "bin: train.en 30 (0.0% <unk>), valid.en 5" in prepared.output


def test_codes_and_dictionary_of_an_earlier_run_are_used(prepared, archives, workplace):
    earlier = ["--codes", prepared.out / "codes", "--dict", prepared.out / "dict.txt"]
    process = workplace.prepare("--from", archives, *earlier, "--limit", 7, "out")
    assert process.returncode == 0, process.errors
    before, now = contents(prepared.out), contents(workplace.root / "out")
    assert before.keys() == now.keys()
    changed = {name for name in now if now[name] != before[name]}
    train = {f"{stage}/train.{lang}" for stage in ("raw", "tokenised", "bpe") for lang in ("en", "de")}
    train_bin = {f"bin/train.en-de.{lang}.{kind}" for lang in ("en", "de") for kind in ("bin", "idx")}
    assert changed == {"settings.json", "manifest.json", "raw/PARTS"} | train | train_bin
    for name in train:
        assert now[name].splitlines() == before[name].splitlines()[:7]


@pytest.mark.parametrize("pair, sets", [("de-en", 5), ("cs-en", 4)])
def test_other_language_pairs_are_prepared(archives, tmp_path, refuses, pair, sets):
    folder, out = shutil.copytree(archives, tmp_path / "archives"), tmp_path / "out"
    for file in archives.glob("*.de.gz"):
        # Czech has no text of 2017.
        if "2017_mscoco" not in file.name:
            shutil.copy(file, folder / file.name.replace(".de.", ".cs.").replace("2017", "2018"))
    shutil.copy(archives / "test_2017_flickr.en.gz", folder / "test_2018_flickr.en.gz")
    assert "stage 'tokenised' failed" in refuses("multi30k", "--from", folder, "--pair", pair, out)
    languages = pair.split("-")
    names = {f"{split}.{language}" for split in list(ARCHIVES)[:sets] for language in languages}
    assert {file.name for file in (out / "raw").glob("*.??")} == names
    assert read(out / f"raw/test.{languages[0]}")[0].startswith("Über")
    assert settings_of(out)["pair"] == pair
    assert f"out was prepared with pair {pair}: " in refuses("multi30k", "--from", folder, out)


# --- interruptions ----------------------------------------------------------------------------------------------------


def test_a_run_that_is_interrupted_at_any_stage_is_resumed(prepared, archives, workplace):
    out = workplace.root / "out"
    for done, stage in enumerate(STAGES):
        workplace.kill(stage)
        assert workplace.prepare("--from", archives, "out").returncode == -9
        assert finished(out) == STAGES[:done]
        assert list(out.glob(f"{stage}.part.*"))
        workplace.unstub()
    process = workplace.prepare("--from", archives, "out")
    assert process.returncode == 0, process.errors
    assert contents(out) == contents(prepared.out)
