"""Text is composed (NFC) on every way in: each corpus counts the pairs that it composed."""

import re
import unicodedata
from pathlib import Path

import pytest

from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.corpora.iwslt14 import DE_EN
from fairseq_capsule_lab.corpora.lcsts import LCSTS
from fairseq_capsule_lab.corpora.nist import ZH_EN
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.wmt16 import EN_RO
from tests.corpora.test_broken_characters import DOCUMENT
from tests.integration.archives import EN_RO as WMT16
from tests.integration.archives import make_ldc, pack, sentences, sgm, text

SETS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")


def decomposed(content):
    """Return a text in NFD whose sentences end with é."""
    return unicodedata.normalize("NFD", content.decode().replace(".", "é.").replace("。", "é。")).encode()


def write_wmt16(folder):
    for name, members in WMT16.items():
        pack(folder, name, {member: decomposed(content) for member, content in members.items()})


def write_iwslt14(folder):
    members = {}
    for language, kind in (("de", "src"), ("en", "ref")):
        members[f"train.tags.de-en.{language}"] = decomposed(text(language, 24, 1))
        for seed, name in enumerate(SETS):
            members[f"IWSLT14.{name}.de-en.{language}.xml"] = decomposed(sgm(kind, language, 2, seed))
    pack(folder, "de-en.tgz", members)


def write_nist(folder):
    make_ldc(folder)
    for file in filter(Path.is_file, folder.rglob("*")):
        file.write_bytes(decomposed(file.read_bytes()))


def write_lcsts(folder):
    for seed, name in enumerate(("PART_I", "PART_II", "PART_III")):
        content = DOCUMENT.format(0, *sentences("zh", 2, seed)).encode()
        (folder / f"{name}.txt").write_bytes(decomposed(content))


def test_text_is_composed_and_the_pairs_are_counted(tmp_path):
    characters = [unicodedata.normalize("NFD", chr(code)) for code in range(0xA0, 0xD000, 40)]
    changed = sum(unicodedata.normalize("NFC", text) != text for text in characters)
    assert 9 < changed < len(characters)
    (tmp_path / "text.en").write_text("".join(f"a{text}\n" for text in characters), "utf-8", newline="\n")
    (tmp_path / "text.de").write_text("".join(f"{number}\n" for number in range(len(characters))))
    raw = RawTexts(tmp_path / "raw", ("en", "de"), Path, limit=0)
    files = [tmp_path / "text.en", tmp_path / "text.de"]
    raw.append_held_out("valid", files)
    assert raw.append(*files) == f"{len(characters)} pairs (composed, NFC: {changed})"
    noted = (tmp_path / "raw/PARTS").read_text().splitlines()
    assert noted[0] == f"text.en\t{changed} pairs were composed (NFC)"
    for split in ("train", "valid"):
        assert unicodedata.is_normalized("NFC", raw.files(split)[0].read_text("utf-8"))


@pytest.mark.parametrize(
    "recipe, write", [(EN_RO, write_wmt16), (DE_EN, write_iwslt14), (ZH_EN, write_nist), (LCSTS, write_lcsts)]
)
def test_a_corpus_counts_the_pairs_that_it_composed(recipe, write, tmp_path):
    folder, raw = tmp_path / "archives", tmp_path / "raw"
    folder.mkdir()
    write(folder)
    corpus = recipe.corpus({"from": folder, "vocabulary": 9, "dict": None})
    corpus.raw(RawTexts(raw, corpus.languages, lambda address: folder / Path(address).name, limit=0))
    pairs = 0
    for file in raw.glob("*.*"):
        content = file.read_text("utf-8")
        assert content.count("é") == content.count("\n") > 0, file
        pairs += content.count("\n") * (file.suffix == f".{corpus.languages[0]}")
    counted = re.findall("(?:composed, NFC: ([0-9]+)|([0-9]+) pairs were composed)", (raw / "PARTS").read_text())
    assert sum(int(number) for numbers in counted for number in numbers if number) == pairs


def test_a_step_of_a_script_counts_the_pairs_that_it_composed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pack(tmp_path, "news.tgz", {f"news.{language}": decomposed(text(language, 3, 1)) for language in ("en", "de")})
    words = ["raw", "en", "de", "news.en", "news.de", "https://example.org/news.tgz"]
    assert main(["filter", "held-out-pairs", "valid", "--from", ".", *words]) == 0
    assert Path("raw/PARTS").read_text() == "news.en\t3 pairs were composed (NFC)\n"
    assert Path("raw/valid.en").read_text("utf-8").count("é") == 3
