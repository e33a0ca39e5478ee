"""The source words that PAST and FUTURE hold, compared with results by hand."""

import numpy as np
import pytest
from fairseq.data import Dictionary

from capsule_routing.errors import UserError
from fairseq_capsule_lab.analysis.alignment import read_alignments
from fairseq_capsule_lab.analysis.assignment import (
    Assignment,
    Rates,
    area_under_curve,
    average_precision,
    joined,
    mean_and_interval,
    sentence_rates,
    texts_by_word,
    words_of,
)

# Three source words, four steps (three target words, the last one of two subwords; the end of the sentence follows).
# Word 0 is aligned with target word 0 (step 0), word 1 with the words 1 and 2 (the last step of word 2 is 3), word 2
# with none.
LINKS = {(0, 0), (1, 1), (1, 2)}
ENDS = [0, 1, 3]
PAST = np.array([[0.1, 0.2, 0.3], [0.6, 0.3, 0.3], [0.5, 0.3, 0.3], [0.9, 0.7, 0.3], [0.8, 0.9, 0.3]])
FUTURE = np.array([[0.8, 0.7, 0.1], [0.2, 0.6, 0.1], [0.1, 0.5, 0.1], [0.0, 0.2, 0.1], [0.1, 0.0, 0.1]])


def test_rates_of_a_sentence_equal_a_result_by_hand():
    rates = sentence_rates(Assignment(PAST, PAST - FUTURE, 1 - PAST - FUTURE), LINKS, ENDS)
    # Translated: word 0 at the steps 1-4 (0.6, 0.5, 0.9, 0.8), word 1 at step 4 (0.9). Not: word 0 at step 0 (0.1),
    # word 1 at the steps 0-3 (0.2, 0.3, 0.3, 0.7). Of 5 · 5 pairs, 0.6 and 0.5
    # are each above four, the others above five.
    assert rates.area == pytest.approx((4 + 4 + 5 + 5 + 5) / 25)
    # PAST passes FUTURE at step 1 for word 0, aligned with step 1, and at step 3 for word 1, aligned with step 4.
    assert rates.near == 1.0
    # Redundant, means over steps: word 0 0.18, word 1 0.12, word 2 0.6, which has no link.
    assert rates.precision == 1.0


def test_a_word_that_passes_late_early_or_never_is_not_near():
    margin = np.array([[-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    assignment = Assignment(margin, margin, None)
    assert sentence_rates(assignment, {(0, 0), (1, 2)}, ENDS) == Rates(pytest.approx(area(margin)), 0.0, None)
    never = Assignment(margin, -np.ones((5, 2)), None)
    assert sentence_rates(never, {(0, 0)}, ENDS).near == 0.0


def area(margin):
    positive = [*margin[1:, 0], *margin[4:, 1]]
    negative = [margin[0, 0], *margin[:4, 1]]
    return np.mean([(p > n) + 0.5 * (p == n) for p in positive for n in negative])


def test_a_sentence_without_links_has_no_rate():
    assert sentence_rates(Assignment(PAST, PAST, PAST), set(), ENDS) == Rates(None, None, None)


def test_areas_and_precisions_by_hand():
    assert area_under_curve(np.array([1.0, 2.0]), np.array([1.0, 0.0])) == pytest.approx((0.5 + 1 + 1 + 1) / 4)
    assert area_under_curve(np.array([]), np.array([1.0])) is None
    scores = np.array([0.9, 0.8, 0.7, 0.6])
    assert average_precision(scores, [True, False, True, False]) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision(scores, [False] * 4) is None and average_precision(scores, [True] * 4) is None


def test_an_interval_is_over_sentences_with_a_rate():
    assert mean_and_interval([0.5, None, 0.5]) == (0.5, "0.500 to 0.500")
    mean, interval = mean_and_interval([0.0, 1.0] * 50)
    low, high = map(float, interval.split(" to "))
    assert mean == 0.5 and 0.35 < low < 0.45 and 0.55 < high < 0.65
    assert mean_and_interval([None]) == (None, "")


def test_subwords_are_joined_to_words():
    assert words_of(["a@@", "b", "c", "d@@", "e@@", "f"], "subword_nmt") == [0, 0, 1, 2, 2, 2]
    assert words_of(["▁a", "b", "▁c"], "sentencepiece") == [0, 0, 1]
    shares = np.array([[0.2, 0.4, 0.6]])
    assert joined(shares, [0, 0, 1]).tolist() == [[pytest.approx(0.3), 0.6]]
    assert joined(shares, [0, 0, 1], mean=False).tolist() == [[pytest.approx(0.6), 0.6]]


@pytest.mark.parametrize(
    "subwords, text", [("a@@ b c d@@ e@@ f", "ab c def"), ("▁a b ▁ ▁c d", "ab ▁ cd"), ("a <unk> c", "a <unk> c")]
)
def test_a_text_has_the_words_that_are_counted(subwords, text):
    dictionary = Dictionary()
    tokens = dictionary.encode_line(subwords, add_if_not_exist=True).long()
    assert texts_by_word(dictionary, [tokens]) == [text]


@pytest.mark.parametrize("link", ["0", "0:1", "-1-2"])
def test_a_line_that_has_no_links_is_named(tmp_path, link):
    (tmp_path / "links").write_text(f"0-0 1-2\n\n0-1 {link}\n")
    with pytest.raises(
        UserError, match=f"links, line 3: '{link}' is no link such as 0-1; give a word aligner's output"
    ):
        read_alignments(tmp_path / "links")


def test_links_are_read(tmp_path):
    (tmp_path / "links").write_text("0-0 1-2\n\n3-1\n")
    assert read_alignments(tmp_path / "links") == [{(0, 0), (1, 2)}, set(), {(3, 1)}]
