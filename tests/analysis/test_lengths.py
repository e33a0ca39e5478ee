"""Groups of sentences by their length, and the BLEU of each group."""

from pathlib import Path

import pytest
import sacrebleu

from fairseq_capsule_lab.analysis.lengths import by_length, equal_groups, intervals, longer_than
from fairseq_capsule_lab.evaluation.scores import measures
from fairseq_capsule_lab.evaluation.translations import Translations

LENGTHS = [3, 10, 11, 20, 21, 55]


def test_intervals_include_their_upper_bound():
    assert list(intervals([10, 11, 12], [10, 11])) == ["≤ 10", "11", "> 11"]
    assert intervals(LENGTHS, [20, 10, 50]) == {"≤ 10": [0, 1], "11–20": [2, 3], "21–50": [4], "> 50": [5]}


def test_empty_groups_are_left_out():
    assert intervals([3, 55], [10, 20, 30]) == {"≤ 10": [0], "> 30": [1]}
    assert longer_than([3, 15], [0, 10, 20]) == {"> 0": [0, 1], "> 10": [1]}


def test_longer_than_contains_all_longer_sentences():
    assert longer_than(LENGTHS, [0, 10, 20]) == {"> 0": [0, 1, 2, 3, 4, 5], "> 10": [2, 3, 4, 5], "> 20": [4, 5]}


def test_equal_groups_have_about_the_same_size():
    assert equal_groups([8, 7, 6, 5, 4, 3, 2, 1], 4) == {"≤ 2": [6, 7], "3–4": [4, 5], "5–6": [2, 3], "> 6": [0, 1]}
    # All sentences of one length are in one group, so there may be fewer groups, of different sizes.
    assert equal_groups([5, 5, 5, 5, 9], 2) == {"≤ 5": [0, 1, 2, 3], "> 5": [4]}
    assert equal_groups([5, 9], 1) == {"all": [0, 1]}


def test_scores_are_computed_on_the_sentences_of_a_group():
    targets = ["a b c d e", "f g h i j k l m", "a b c d e f"]
    systems = {"same": targets, "short": ["a b c d", "f g h i x k l m", "a b c d e f"]}
    outputs = [Translations(Path(name), lines, True, targets, targets) for name, lines in systems.items()]
    measure = next(measures(outputs, [targets], "de"))
    rows = by_length(list(systems), measure, intervals([5, 8, 6], [6]))
    assert [(row.system, row.words, row.sentences) for row in rows] == [
        ("same", "≤ 6", 2),
        ("same", "> 6", 1),
        ("short", "≤ 6", 2),
        ("short", "> 6", 1),
    ]
    assert [row.bleu for row in rows[:2]] == pytest.approx([100, 100])
    expected = sacrebleu.corpus_bleu(["a b c d", "a b c d e f"], [["a b c d e", "a b c d e f"]], tokenize="none")
    assert rows[2].bleu == pytest.approx(expected.score)
    assert rows[2].length_ratio == pytest.approx(10 / 11)
    # 7 of 8, 5 of 7, 3 of 6, 1 of 5 n-grams
    assert rows[3].bleu == pytest.approx(100 * (7 / 8 * 5 / 7 * 3 / 6 * 1 / 5) ** 0.25)
    assert rows[3].length_ratio == 1
