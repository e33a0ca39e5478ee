"""What the settings of a prepared folder say about its text, and the two names of a folder."""

import json
import shutil
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from fairseq.data.data_utils import post_process

from capsule_routing.errors import UserError
from capsule_routing.text.folders import binarised_folder, language_pairs, preparations, prepared_folder, raw_lines
from capsule_routing.text.preparation import SCRIPTS, TextPreparation
from fairseq_capsule.data.tokenizer import PreparedText, PreparedTextConfig
from fairseq_capsule_lab.corpora.subwords import learn_subwords


@pytest.fixture
def prepared(tmp_path):
    """Make a folder with settings and files."""

    def make(settings, *files):
        (tmp_path / "bin").mkdir()
        kept = dict(line.split(" ", 1) for line in settings.split(", ") if line)
        (tmp_path / "settings.json").write_text(json.dumps(kept))
        for file in files:
            (tmp_path / file).touch()
        return tmp_path

    return make


def side(language, tokenizer="moses", **attributes):
    return TextPreparation(language, tokenizer, **attributes)


DROPS = {"drops_controls": True}
CASES = [
    ("script prepare-toy.sh", "en de", "codes", side("en"), side("de")),
    ("script prepare-multi30k.sh", "de en", "codes", side("de", lower=True), side("en", lower=True)),
    (
        *("script prepare-iwslt14-de-en.sh", "de en", "codes"),
        *(side(name, keeps_punctuation=True, lower=True, **DROPS) for name in ("de", "en")),
    ),
    (
        *("script prepare-multi30k.sh, bpe sentencepiece, tokenise none", "en de", "sentencepiece.model"),
        *(side("en", "none", lower=True), side("de", "none", lower=True)),
    ),
    (
        *("script prepare-wmt14-en-de.sh", "en de", "codes"),
        *(side("en", splits_hyphens=True, **DROPS), side("de", splits_hyphens=True, **DROPS)),
    ),
    (
        *("script prepare-wmt16-en-ro.sh, diacritics keep", "ro en", "codes"),
        *(side("ro", diacritics="keep", **DROPS), side("en", **DROPS)),
    ),
    (
        *("script prepare-nist-zh-en.sh", "zh en", "codes.zh codes.en"),
        *(side("zh", "jieba", lower=True, **DROPS), side("en", lower=True, **DROPS)),
    ),
    ("script prepare.sh, tokenise jieba, source zh, target en", "en zh", "codes", side("en"), side("zh", "jieba")),
    (
        *("script prepare.sh, source ja, target pt_BR, tokenise characters,moses, lower no", "ja pt_BR", "codes"),
        *(side("ja", "characters"), side("pt_BR")),
    ),
    (
        "script prepare.sh, source ja, target pt_BR, tokenise characters,moses, lower yes",
        *("pt_BR ja", "codes.ja codes.pt_BR", side("pt_BR", lower=True), side("ja", "characters", lower=True)),
    ),
    (
        *("script prepare-headlines.sh", "text summary", ""),
        *(side("text", "characters", **DROPS), side("summary", "characters", **DROPS)),
    ),
]


@pytest.mark.parametrize("settings, pair, files, source, target", CASES, ids=[case[0] for case in CASES])
def test_the_text_of_a_script_is_known(prepared, settings, pair, files, source, target):
    names = files.split()
    found = preparations(prepared(settings, *names), *pair.split())
    for actual, expected in zip(found, (source, target)):
        codes = next(
            (name for name in names if name in ("codes", "sentencepiece.model", f"codes.{expected.language}")), ""
        )
        assert Path(actual.codes).name == codes
        assert actual.subwords == {"": "none", "sent": "sentencepiece", "code": "subword-nmt"}[codes[:4]]
        attributes = {**vars(actual), "codes": "", "subwords": "none"}
        assert attributes == vars(expected)


@pytest.mark.parametrize(
    "text, line, words",
    [
        (side("en", splits_hyphens=True), "A well-known tab.", "A well @-@ known tab ."),
        (side("en"), "A well-known\x07tab\x9f.", "A well-known tab ."),
        (side("en", drops_controls=True), "A well-known\x07tab\x9f.", "A well-knowntab ."),
        (side("fr"), unicodedata.normalize("NFD", "café noir."), "café noir ."),
        (side("fr", "none"), unicodedata.normalize("NFD", "café noir."), unicodedata.normalize("NFC", "café noir.")),
        (side("yo"), "ọ̀rọ̀ ní ilé.", "ọ̀rọ̀ ní ilé ."),
        (side("tr", lower=True), "IŞIK İyi", "ışık iyi"),
        (side("de", lower=True), "IST", "ist"),
        # Moses sees the case: a full stop before a small letter ends no sentence, and some abbreviations are capital.
        (side("de", lower=True), "Das ist gut. Er geht. Siehe Nr. 5", "das ist gut . er geht . siehe nr. 5"),
        (side("ro", diacritics="keep"), "Ţară Şi ţară și", "Țară Și țară și"),
        (side("ro", diacritics="remove"), "Ţară Şi ţară și", "Tara Si tara si"),
    ],
)
def test_raw_text_becomes_words_by_the_settings(text, line, words):
    assert text.words(line) == words


@pytest.mark.parametrize("subwords", ["ein ha@@ us", "ein ha@@", "@@", "ha@@ ha@@", "a@@b ", "a @@ b"])
def test_subwords_are_joined_as_fairseq_joins_them(subwords):
    """A translation that was cut may end in the middle of a word."""
    assert side("de", "none", subwords="subword-nmt").decode(subwords) == post_process(subwords, "subword_nmt")


TEXTS = {
    "en": ["He doesn't know 1,000 cats.", "<BT> A B well-known dog"],
    "zh": ["我爱北京天安门", "<BT> 他说今天天气很好"],
}
KINDS = [
    *(("en", "moses", "subword-nmt"), ("en", "moses", "sentencepiece"), ("en", "none", "sentencepiece")),
    *(("en", "none", "subword-nmt"), ("zh", "jieba", "subword-nmt"), ("zh", "characters", "none")),
    *(("en", "characters", "none"), ("zh", "none", "sentencepiece-bpe")),
]


@pytest.fixture
def text_of_kind(tmp_path):
    """Return a function that learns subwords of a kind from a text with the protected word `<BT>`."""

    def make(language, tokenizer, subwords):
        text = side(language, tokenizer, lower=True, protected="<BT>")
        (tmp_path / "train").write_text("".join(f"{text.words(line)}\n" for line in 9 * TEXTS[language]))
        texts, codes = [tmp_path / "train"], tmp_path / "codes"
        with open(tmp_path / "log", "wb") as log:
            if subwords != "none":
                learn_subwords(texts, codes, subwords, 30 if subwords == "subword-nmt" else 60, log, ["<BT>"])
        return replace(text, subwords=subwords.removesuffix("-bpe"), codes=str(codes))

    return make


@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_a_protected_word_stays_whole(text_of_kind, kind):
    text, lines = text_of_kind(*kind), TEXTS[kind[0]]
    for line in (lines[1], f"{lines[0]} <BT> {lines[0]}", f"{lines[0]} <BT>"):
        subwords = text.encode(line).split()
        assert subwords.count("<BT>") + subwords.count("▁<BT>") == line.count("<BT>"), subwords
        if kind[1] in ("none", "characters"):
            assert text.decode(" ".join(subwords)) == line.lower().replace("<bt>", "<BT>")
    assert not {"<BT>", "▁<BT>"} & set(text.encode(f"{lines[0]} <BTX> B").split())


@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_white_space_at_an_end_is_no_subword(text_of_kind, kind):
    text, line = text_of_kind(*kind), TEXTS[kind[0]][0]
    for spaced in (f"{line} ", f" {line}", f"{line}\u3000", f"\t{line}"):
        assert text.encode(spaced) == text.encode(line)


@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_a_constraint_is_prepared_as_the_target_or_refused(text_of_kind, kind, monkeypatch):
    """fairseq reads constraints as it reads sources: `encode` of the tokenizer."""
    text = text_of_kind(*kind)
    monkeypatch.setattr("fairseq_capsule.data.tokenizer.preparations", lambda *_: (replace(text, language="xx"), text))
    config = PreparedTextConfig(data="data", source_lang="xx", target_lang=kind[0], constraints="ordered")
    if kind[1] == "moses":
        with pytest.raises(UserError, match="--constraints: fairseq would prepare them as xx, but they are en; leave"):
            PreparedText.build_tokenizer(config)
        return
    tokenizer = PreparedText.build_tokenizer(config)
    line = TEXTS[kind[0]][0].lower()
    assert tokenizer.encode(line) == text.encode(line) and tokenizer.decode(tokenizer.encode(line)) == line
    for name, other in (("codes", "other"), ("tokenizer", "moses"), ("lower", False)):
        changed = replace(text, **{name: other})
        monkeypatch.setattr("fairseq_capsule.data.tokenizer.preparations", lambda *_: (changed, text))
        with pytest.raises(UserError, match="--constraints: "):
            PreparedText.build_tokenizer(config)
    assert PreparedText.build_tokenizer(replace(config, constraints=None))


def test_every_prepare_script_is_known():
    scripts = {path.name for path in Path(__file__).parents[2].glob("scripts/prepare*.sh")}
    assert set(SCRIPTS) == scripts - {"prepare-common.sh"}


@pytest.mark.parametrize("settings", ["", "script other.sh", "lower yes"])
def test_the_folder_of_no_script_says_nothing(prepared, settings):
    folder = prepared(settings, "codes")
    assert preparations(folder, "en", "de") is prepared_folder(folder / "bin") is None


def test_a_file_of_another_program_is_no_settings_and_a_damaged_one_is_refused(prepared):
    folder = prepared("script prepare-toy.sh", "codes")
    kept = (folder / "settings.json").read_text()
    for other in ("[1]", '{"data": "89ab", "config": {}}'):
        (folder / "settings.json").write_text(other)
        assert prepared_folder(folder) is None
    for damaged in (kept[:-5], '{"script": ["prepare.sh"]}', '{"script": "prepare.sh", "tokenise": null}'):
        (folder / "settings.json").write_text(damaged)
        with pytest.raises(UserError, match="settings.json: damaged: copy it again, or delete .* and make it again"):
            prepared_folder(folder)
    shutil.rmtree(folder / "bin")
    (folder / "mine").mkdir()
    assert prepared_folder(folder / "mine") is None  # the file is not of these data


def test_a_folder_without_its_merges_is_refused(prepared):
    with pytest.raises(UserError, match="codes: missing; prepare the data again"):
        preparations(prepared("script prepare-toy.sh"), "en", "de")


def test_a_folder_is_named_by_itself_its_bin_or_a_link(prepared, monkeypatch):
    folder = prepared("script prepare-toy.sh", "codes", "bin/dict.en.txt")
    (folder / "link").symlink_to(folder / "bin")
    for name in (folder, folder / "bin", folder / "link"):
        assert prepared_folder(name).samefile(folder)
        assert binarised_folder(name).samefile(folder / "bin")
    monkeypatch.chdir(folder / "bin")
    assert prepared_folder(".").samefile(folder) and binarised_folder(".") == Path(".")
    (folder / "dict.en.txt").touch()  # separate dictionaries stand beside the settings too
    assert binarised_folder(folder).samefile(folder / "bin")
    assert prepared_folder(folder / "missing") is None


def test_language_pairs_are_read_from_the_names_of_binarised_files(tmp_path):
    both = ("en-de", "en", "de"), ("de-en", "en", "de"), ("zh-Hant-zh", "zh", "zh-Hant")
    names = [f"test.{pair}.{language}" for pair, *languages in both for language in languages]
    for name in [*names, "train.de-fr.de", "train.de-fr.fr", "train.de-cs.de", "train.de-fr.factors", "train.de"]:
        (tmp_path / f"{name}.bin").touch()
    assert language_pairs(tmp_path, "test") == [("de", "en"), ("en", "de"), ("zh-Hant", "zh")]
    assert language_pairs(tmp_path)[:2] == [("de", "en"), ("de", "fr")]  # de-cs has one language only
    assert language_pairs(tmp_path, "valid") == language_pairs(tmp_path / "missing") == []


def test_raw_lines_are_those_of_the_split_or_none(prepared):
    folder = prepared("script prepare-toy.sh", "codes")
    (folder / "raw").mkdir()
    (folder / "raw/test.en").write_text("a\u2028b\nc\n", encoding="utf-8")
    assert raw_lines(folder / "bin", "test", "en", 2) == ["a\u2028b", "c"]
    assert raw_lines(folder, "test", "en", 1) == raw_lines(folder, "test", "de", 2) == []
