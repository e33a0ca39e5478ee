"""ROUGE over characters, compared with counts by hand."""

import pytest

from capsule_routing.text.rouge import CharacterRouge, CharacterTokenizer


def f1(hypothesis, *references):
    return CharacterRouge().f1(hypothesis, references)


def test_f1_equals_a_result_by_hand():
    # ROUGE-1: 今 天 雨 of four characters. ROUGE-2: 今天 of three pairs. ROUGE-L: 今 天 雨 in this order.
    assert f1("今天下雨", "今天有雨") == pytest.approx({"rouge1": 3 / 4, "rouge2": 1 / 3, "rougeL": 3 / 4})
    # ROUGE-1: precision 2/2, recall 2/4. ROUGE-2: no common pair. ROUGE-L: only one character is in order.
    assert f1("雨今", "今天有雨") == pytest.approx({"rouge1": 2 / 3, "rouge2": 0, "rougeL": 1 / 3})
    assert f1("一一一", "一二") == pytest.approx({"rouge1": 2 / 5, "rouge2": 0, "rougeL": 2 / 5})  # 一 once


def test_each_type_takes_its_best_reference():
    assert f1("今天下雨", "今天有雨", "下雨了", "雪") == pytest.approx({"rouge1": 0.75, "rouge2": 0.4, "rougeL": 0.75})


def test_latin_letters_are_counted_and_spaces_are_not():
    assert CharacterTokenizer().tokenize("发布 新▁A5 ") == list("发布新A5")
    assert f1("发 布 ▁ A 5", "发布 A5") == pytest.approx(dict.fromkeys(("rouge1", "rouge2", "rougeL"), 1))


def test_an_unknown_character_is_one_token():
    assert CharacterTokenizer().tokenize("新<unk>产") == ["新", "<unk>", "产"]


@pytest.mark.parametrize("hypothesis, reference", [("", "雨"), ("雨", ""), ("", "")])
def test_empty_texts_score_zero(hypothesis, reference):
    assert set(f1(hypothesis, reference).values()) == {0}
