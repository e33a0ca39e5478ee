"""The measure of what Moses leaves of a language."""

import unicodedata

import pytest

from capsule_routing.text.preparation import TextPreparation, cut_chinese, detokenise
from fairseq_capsule_lab.corpora.round_trip import LEAST, SAMPLE, evenly_spaced, round_trip

KEPT = {
    "en": "It's a \"well-known\" man's T-shirt - they don't sell it for $5.20 (yet).",
    "fr": "L'homme n'a pas dit \"non\", mais qu'il l'avait vu aujourd'hui, c'est tout.",
    "de": "Das Haus hat 3,5% mehr Räume, z. B. drei Bäder - oder?",
    "yo": "Ọ̀rọ̀ àwọn ọmọdé ní ilé ìwé wa.",  # letters with marks that Unicode does not compose
    "vi": unicodedata.normalize("NFD", "Tiếng Việt là ngôn ngữ của người Việt."),
    "es_MX": "¿Qué hora es? ¡Son las 3:30 de la tarde, amigo!",
    "en_GB": "two words",
}
DAMAGED = {
    "en_US": "It’s a “well-known” man’s T-shirt – they don't sell it for $5.20 (yet).",  # Moses makes quotes straight
    "fr_FR": "L’homme n’a pas dit « non », mais qu'il l'avait vu aujourd'hui ; c'est tout.",
    "de_DE": "Das „Haus“ hat 3,5 % mehr Räume, z. B. drei Bäder - oder?",
    "uk": "Пам'ять комп'ютера та об'єм зв'язку визначає ім'я сім'ї.",
    "tr": "Ankara'da, İstanbul'un ve Türkiye'nin 1920'lerdeki adı.",
    "fa": "همه حساب\u200cها برای ادامه باید مدخل\u200cهای معتبری داشته باشند.",
    "ar": "جميع التثبيتات، والإزالات، والإبقاءات، والترقيات.",
    "th": "ไม่สามารถอ่านรายชื่อแหล่งแพกเกจได้ และ ไม่สามารถ อ่าน รายชื่อ ได้",
    "bn": "সাথে সাথে পরিবর্তিত হতে থাকে। এটি একটি বাক্য।",
    "am": "ክብ ሁሉም ነጥቦች ከመሃል እኩል ርቀት ያላቸው ጥምዝ ነው።",
}


@pytest.mark.parametrize("language", [*KEPT, *DAMAGED])
def test_moses_keeps_the_languages_that_it_knows(language):
    score = round_trip(TextPreparation(language, "moses"), [{**KEPT, **DAMAGED}[language]] * 3)
    assert (score >= LEAST) == (language in KEPT), score


def test_a_sample_is_evenly_spaced_over_a_text_of_any_length():
    assert evenly_spaced(range(7)) == list(range(7))
    for length in (2 * SAMPLE, 2 * SAMPLE + 1, 12_345):
        sample = evenly_spaced(range(length))
        step = sample[1]
        assert SAMPLE <= len(sample) <= 2 * SAMPLE and sample == list(range(0, length, step))


@pytest.mark.parametrize("line", ["他说：“今天很好，是吗？”", "我们（三个人）在《北京》等你……", "共 1,000 元。"])
def test_chinese_has_no_spaces_beside_its_punctuation(line):
    pytest.importorskip("jieba")
    assert detokenise("zh", cut_chinese("zh", line)) == line
    assert detokenise("ja", "a ， b") != detokenise("zh", "a ， b")


def test_text_without_spaces_is_not_for_moses():
    """One sentence is one word of Moses, which comes back whole."""
    japanese = ["母は台所で夕食を作っている", "二人の子供が庭で遊んでいる"]
    assert round_trip(TextPreparation("jpn", "moses"), japanese) == 0
    assert round_trip(TextPreparation("jpn", "none"), japanese) == pytest.approx(100)
