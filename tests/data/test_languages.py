"""What the code of a language decides: its script, whether words have spaces, the tokeniser of its BLEU."""

import sys
import unicodedata

import pytest
import regex
from sacrebleu.metrics import BLEU

from capsule_routing.errors import UserError
from capsule_routing.text.languages import (
    KOREAN,
    TOKENISERS,
    WITHOUT_SPACES,
    bleu,
    bleu_tokeniser,
    has_spaces,
    has_words,
    is_chinese,
    rules_of,
    script_of,
)

LISTED = {**WITHOUT_SPACES, **KOREAN}
SEVERAL = {"Hans", "Hant", "Hanb", "Jpan", "Hrkt", "Kore"}  # codes for several scripts of Unicode
SCRIPTS = sorted({*LISTED, "Hani", "Hira", "Kana"} - SEVERAL)
LETTERS = [character for character in map(chr, range(sys.maxunicode)) if unicodedata.category(character) == "Lo"]

# Those that the Unicode of this Python does not have yet.
LATER = {script for script in SCRIPTS if not any(map(regex.compile(rf"\p{{Script={script}}}").match, LETTERS))}


def letters_of(script, number):
    """The first letters of one of Unicode's scripts."""
    of_code = {"Hans": "Hani", "Hant": "Hani", "Hanb": "Hani", "Jpan": "Hira", "Hrkt": "Kana", "Kore": "Hang"}
    pattern = regex.compile(rf"\p{{Script={of_code.get(script, script)}}}")
    if script in LATER:
        pytest.skip(f"the Unicode of this Python has no {script}")
    found = (character for character in LETTERS if pattern.match(character) and unicodedata.name(character, ""))
    return [next(found) for _ in range(number)]


def test_the_scripts_are_those_of_unicode():
    """Those in which lines break between letters, but Hangul; and Tibetan. Letters of Khitan have no names."""
    between = regex.compile(r"[\p{LB=ID}\p{LB=CJ}\p{LB=SA}\p{LB=AK}\p{LB=AS}--\p{Hang}--\p{Latn}--\p{Zyyy}]", regex.V1)
    letters = "".join(filter(between.match, LETTERS))
    found = {script for script in SCRIPTS if regex.search(rf"\p{{Script={script}}}", letters)}
    assert found | SEVERAL | LATER | {"Tibt", "Kits", "Hang"} == set(LISTED)
    listed = regex.compile("".join(["[", *(rf"\p{{Script={script}}}" for script in SCRIPTS), "]*"]))
    assert listed.fullmatch(letters)


@pytest.mark.parametrize("script", [script for script in WITHOUT_SPACES if script not in ("Kits",)])
def test_a_text_of_such_a_script_has_words_only_if_it_was_cut(script):
    text = "".join(letters_of(script, 12))
    assert not has_words([text, f"{text}."]) and has_words([" ".join([text[:2], text[2:5], text[5:]])] * 2)
    assert has_words([text, "with English words, and more of them"]) and has_words(["하나 둘", "ein Satz"])


def test_the_languages_are_those_of_cldr():
    core = pytest.importorskip("babel.core")
    likely, aliases = core.get_global("likely_subtags"), core.get_global("language_aliases")
    names = core.Locale("en").languages

    def script(tag):
        return next((part for part in tag.split("_") if len(part) == 4), "")

    expected = {code: script(tag) for code, tag in likely.items() if "_" not in code}
    for code, tag in aliases.items():
        expected.setdefault(code, script(tag) or expected.get(tag.split("_")[0], ""))
    for code, tag in likely.items():  # und_JP: the language of a country
        country = code.removeprefix("und_").lower()
        if len(country) == 2 and country not in names and country not in expected:
            expected[country] = script(tag)
    codes = {code: script for code, script in expected.items() if script in LISTED and "_" not in code}
    found = {code: script for script, of in LISTED.items() for code in of.split()}
    assert {**codes, "kp": "Kore"} == {**found, "kp": "Kore"}


@pytest.mark.parametrize("script", LISTED)
def test_every_name_of_a_language_has_one_tokeniser(script):
    expected = TOKENISERS.get(script, "char")
    for code in LISTED[script].split() or ["xx"]:
        names = [f"{code}_{script}", f"{code}-{script.lower()}", f"{code}_{script}_XX"]
        names += [code, code.upper(), f"{code}_XX", f"{code}-news"] if LISTED[script] else []
        assert {(script_of(name), bleu_tokeniser(name)) for name in names} == {(script, expected)}
        assert {has_spaces(name) for name in names} == {script in KOREAN}
        assert bleu_tokeniser(f"{code}_Latn") == "13a" and has_spaces(f"{code}_Latn")
        assert is_chinese(code) == (expected == "zh" and code != "xx")
    assert set(TOKENISERS.values()) == {name for name in BLEU.TOKENIZERS if name[:2] in ("zh", "ja", "ko")}


def test_other_languages_have_the_default_tokeniser():
    for name in ("de", "en", "fr", "deu", "pt_BR", "sr_Cyrl", "vi", "he", "hi", "text", "summary", "text1"):
        assert bleu_tokeniser(name) == BLEU.TOKENIZER_DEFAULT and has_spaces(name) and not is_chinese(name)
    assert [rules_of(name) for name in ("pt_BR", "de", "cmn_Hans", "jpn", "kor_Hang")] == ["pt", "de", "zh", "ja", "ko"]


@pytest.mark.parametrize("script", [script for script in WITHOUT_SPACES if script not in ("Jpan", "Kits")])
def test_a_wrong_letter_does_not_cost_all_of_bleu(script):
    """Between spaces, such a sentence is one word, which is right or wrong."""
    letters = letters_of(script, 12)
    text, other = "".join(letters), "".join([*letters[:-1], letters[0]])
    assert 50 < bleu(f"xx_{script}").corpus_score([other], [[text]]).score < 100
    assert bleu("xx").corpus_score([other], [[text]]).score < 1


@pytest.mark.parametrize("language, extra", [("ja", "japanese"), ("kor", "korean")])
def test_a_missing_library_is_named_with_a_way_without_it(monkeypatch, language, extra):
    name = f"sacrebleu.tokenizers.tokenizer_{bleu_tokeniser(language).replace('-', '_')}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    for library in ("MeCab", "mecab_ko"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UserError, match=rf"fairseq-capsule\[{extra}\]'; or compare characters, .*-tokenizer char"):
        bleu(language)
    assert bleu(language, "char").tokenizer_signature == "char"
    with pytest.raises(UserError, match="no tokeniser words; choose from none, zh, 13a"):
        bleu(language, "words")
