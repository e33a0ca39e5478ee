"""The tokenizer makes of raw text the subwords that the training text was made of, and raw text of a translation."""

import json
import pickle
import sys
from pathlib import Path

import pytest

from tests.libraries import library

library("transformers")
from transformers import AutoTokenizer  # noqa: E402

from capsule_routing.errors import UserError  # noqa: E402
from capsule_routing.huggingface import CapsuleConfig, CapsuleTokenizer  # noqa: E402

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
SOURCE = [
    *SPECIAL,
    "the",
    "do@@",
    "g",
    "&apos;s",
    "house",
    ".",
    "rot",
    "@-@",
    "weiß",
    "rot-weiß",
    "&lt;",
    "/",
    "s",
    "&gt;",
]
TARGET = [*SPECIAL, "das", "Ha@@", "us", ",", "it", "&amp;", "."]


def side(tokenizer, language, dashes, lower, subwords):
    attributes = {"splits_hyphens": dashes, "lower": lower, "subwords": subwords}
    return {"language": language, "tokenizer": tokenizer, **attributes}


def make(folder, words=(SOURCE, TARGET), source="moses", target="moses", dashes=False, lower=False, **options):
    subwords = "subword-nmt" if "codes" in options else "sentencepiece" if "pieces" in options else "none"
    vocabulary = folder / "vocabulary.json"
    vocabulary.write_text(json.dumps(dict(zip(("source", "target"), words))), encoding="utf-8")
    both = (("source", source, "en"), ("target", target, "de"))
    sides = {name: side(tokenizer, language, dashes, lower, subwords) for name, tokenizer, language in both}
    return CapsuleTokenizer(str(vocabulary), **sides, **options)


@pytest.fixture
def moses(tmp_path):
    (tmp_path / "codes").write_text("#version: 0.2\nd o\nt h\nth e</w>\n", encoding="utf-8")
    return make(tmp_path, codes=str(tmp_path / "codes"))


def test_text_is_tokenised_and_split_into_subwords(tmp_path, moses):
    assert moses.tokenize("The dog,") == ["T@@", "h@@", "e", "do@@", "g", ","]
    lower = make(tmp_path, codes=str(tmp_path / "codes"), lower=True)
    assert lower.tokenize("The\u00a0dog\t.") == ["the", "do@@", "g", "."]
    batch = lower(["the dog", "the"], padding=True, padding_side="left")
    assert batch["input_ids"] == [[4, 5, 6, 2], [1, 1, 4, 2]]
    assert batch["attention_mask"] == [[1, 1, 1, 1], [0, 0, 1, 1]]


def test_an_unknown_word_and_the_name_of_a_special_token_are_text(tmp_path):
    tokenizer = make(tmp_path)
    assert tokenizer("house nothing")["input_ids"] == [8, 3, 2]
    assert tokenizer("</s>")["input_ids"] == [14, 15, 16, 17, 2]


def test_control_symbols_in_a_text_are_unknown_words(tmp_path):
    tokenizer = make(tmp_path, source="none", target="none")
    assert tokenizer("house </s> <pad> <s> house")["input_ids"] == [8, 3, 3, 3, 8, 2]
    assert tokenizer(text_target="das </s> it")["input_ids"] == [4, 3, 8, 2]
    assert tokenizer.convert_tokens_to_ids("</s>") == 2


@pytest.mark.parametrize("number", [-100, -1, len(TARGET)])
def test_a_number_of_no_word_is_refused(tmp_path, number):
    tokenizer = make(tmp_path)
    for call in (tokenizer.decode, tokenizer.convert_ids_to_tokens):
        with pytest.raises(UserError, match=f"no word has the number {number}; replace -100 in labels"):
            call([4, number])


def test_the_dictionaries_are_fixed(tmp_path):
    tokenizer = make(tmp_path)
    for add in (tokenizer.add_tokens, lambda words: tokenizer.add_special_tokens({"extra_special_tokens": words})):
        with pytest.raises(UserError, match="<2de> is not in the dictionaries"):
            add(["<2de>"])
    assert len(tokenizer) == len(SOURCE)


def test_numbers_of_a_source_are_read_on_request(tmp_path):
    tokenizer = make(tmp_path)
    ids = tokenizer("the house.")["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=True, use_source_tokenizer=True) == "the house."
    assert tokenizer.convert_ids_to_tokens(ids, use_source_tokenizer=True) == ["the", "house", ".", "</s>"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "das it &"
    tokenizer = make(tmp_path, target="none")  # only the source is detokenised
    assert tokenizer.decode(ids, skip_special_tokens=True, use_source_tokenizer=True) == "the house."
    assert tokenizer.decode(ids, skip_special_tokens=True) == "das it &amp;"


def test_an_option_of_moses_is_used(tmp_path):
    assert make(tmp_path)("rot-weiß")["input_ids"] == [13, 2]
    assert make(tmp_path, dashes=True)("rot-weiß")["input_ids"] == [10, 11, 12, 2]


def test_a_translation_is_joined_and_detokenised_with_the_words_of_the_target(moses):
    ids = [2, 4, 5, 6, 7, 3, 8, 9, 10, 2, 1]
    assert moses.decode(ids, skip_special_tokens=True) == "das Haus, <unk> it &."
    assert moses.convert_ids_to_tokens([4, 5]) == ["das", "Ha@@"] and moses.convert_ids_to_tokens(6) == "us"
    assert moses.batch_decode([[2, 4, 2], [2, 6, 2]], skip_special_tokens=True) == ["das", "us"]


def test_a_saved_tokenizer_is_the_same(tmp_path, moses):
    for folder in (tmp_path, tmp_path / "copy"):  # over its own files, and elsewhere
        moses.save_pretrained(folder)
        CapsuleConfig().save_pretrained(folder)
        loaded = AutoTokenizer.from_pretrained(folder)
        assert type(loaded) is CapsuleTokenizer
        assert loaded.tokenize("The dog's") == moses.tokenize("The dog's")
        assert loaded.decode([2, 4, 5, 6, 2], skip_special_tokens=True) == "das Haus"
        assert len(loaded) == loaded.vocab_size == len(SOURCE) and loaded.get_vocab()["house"] == 8
        assert {file.name for file in Path(folder).iterdir()} >= {"vocabulary.json", "codes", "tokenizer_config.json"}
    assert pickle.loads(pickle.dumps(moses)).tokenize("The dog's") == moses.tokenize("The dog's")


def test_a_target_is_split_as_its_language_is(tmp_path):
    words = [*SPECIAL, "do@@", "g", "rot", "@-@", "weiß", "rot-weiß"]
    tokenizer = make(tmp_path, (words, words), target="none", dashes=True)
    batch = tokenizer("rot-weiß", text_target="rot-weiß g")
    assert (batch["input_ids"], batch["labels"]) == ([6, 7, 8, 2], [9, 5, 2])
    assert tokenizer("rot-weiß")["input_ids"] == [6, 7, 8, 2]  # a source again
    assert make(tmp_path, (words, words), source="none")("rot-weiß", text_target="g!")["labels"] == [5, 3, 2]


def test_a_target_has_the_numbers_of_its_own_dictionary_and_its_own_merges(tmp_path, moses):
    batch = moses("the dog", text_target="das ,")
    assert (batch["input_ids"], batch["labels"]) == ([4, 5, 6, 2], [3, 3, 3, 7, 2])  # d@@ a@@ s ,
    (tmp_path / "codes.target").write_text("#version: 0.2\nd a\nda s</w>\nH a\nu s</w>\n", encoding="utf-8")
    both = make(tmp_path, codes=str(tmp_path / "codes"), target_codes=str(tmp_path / "codes.target"))
    both.save_pretrained(tmp_path / "copy")
    for tokenizer in (both, CapsuleTokenizer.from_pretrained(tmp_path / "copy")):
        batch = tokenizer("the dog", text_target="das Haus")
        assert (batch["input_ids"], batch["labels"]) == ([4, 5, 6, 2], [4, 5, 6, 2])
        assert tokenizer.decode(batch["labels"], skip_special_tokens=True) == "das Haus"
        assert tokenizer("the dog")["input_ids"] == [4, 5, 6, 2]  # a source again


def test_dictionaries_with_different_special_tokens_are_refused(tmp_path):
    with pytest.raises(UserError, match="<pad> must have the same number in both dictionaries"):
        make(tmp_path, (SOURCE, ["<s>", "</s>", "<pad>", "<unk>", "das"]))


def test_long_texts_are_cut_and_still_end(tmp_path):
    tokenizer = make(tmp_path, model_max_length=3)
    batch = tokenizer("house . house .", text_target="it , it", truncation=True)
    assert (batch["input_ids"], batch["labels"]) == ([8, 9, 2], [8, 7, 2])


def test_only_the_needed_libraries_are_imported(tmp_path, monkeypatch):
    for name in ("sacremoses", "sentencepiece", "subword_nmt", "subword_nmt.apply_bpe"):
        monkeypatch.setitem(sys.modules, name, None)
    assert make(tmp_path, source="none", target="none")("house")["input_ids"] == [8, 2]
