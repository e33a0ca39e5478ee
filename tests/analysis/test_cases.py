"""The sentences that two systems translate most differently."""

from pathlib import Path

import pytest
import sacrebleu

from fairseq_capsule_lab.analysis.cases import analyze_cases, compare, mark, most_different
from fairseq_capsule_lab.evaluation.translations import Translations

TARGETS = ["ein hund läuft im park", "zwei kinder", "eine katze schläft", "das | <b>haus</b>"]
FIRST = ["ein hund läuft", "zwei kinder", "eine katze schläft", "ein *haus*"]
SECOND = ["ein hund läuft im park", "zwei kinder", "ein tier schläft", "das | <b>haus</b>"]


@pytest.fixture
def outputs():
    return [Translations(Path(name), lines, True, TARGETS, TARGETS) for name, lines in (("a", FIRST), ("b", SECOND))]


def test_scores_are_those_of_sacrebleu(outputs):
    cases = compare(*outputs)
    assert [case.sentence for case in cases] == [0, 1, 2, 3]
    for case, first, second, target in zip(cases, FIRST, SECOND, TARGETS):
        assert (case.source, case.reference, case.first, case.second) == (target, target, first, second)
        assert case.first_score == pytest.approx(sacrebleu.sentence_chrf(first, [target]).score)
        assert case.difference == pytest.approx(sacrebleu.sentence_chrf(second, [target]).score - case.first_score)


def test_lowercase_ignores_case(outputs):
    upper = Translations(Path("c"), [line.upper() for line in SECOND], True, TARGETS, TARGETS)
    assert compare(outputs[1], upper)[1].difference < 0
    assert compare(outputs[1], upper, lowercase=True)[1].difference == 0


def test_largest_gains_and_losses_are_found(outputs):
    cases = compare(*outputs)
    gains, losses = most_different(cases, 5)
    assert [case.sentence for case in gains] == [3, 0]
    assert [case.sentence for case in losses] == [2]  # sentence 1 is the same in both
    assert [case.sentence for case in most_different(cases, 1)[0]] == [3]


def test_words_of_only_one_system_are_marked():
    assert mark("a b c d", "a c d e") == "a **b** c d"
    assert mark("a c d e", "a b c d") == "a c d **e**"
    assert mark("", "a") == ""


def test_an_analysis_escapes_table_and_tag_characters(outputs):
    analysis = analyze_cases(("a", "b"), compare(*outputs), 1)
    assert "b is better in 2 of 4 sentences and worse in 1" in analysis.markdown
    assert r"| reference | das \| &lt;b&gt;haus&lt;/b&gt; |" in analysis.markdown
    assert r"| b, 100.0 | **das \| &lt;b&gt;haus&lt;/b&gt;** |" in analysis.markdown
    assert "## Where b gains most" in analysis.markdown and "## Where b loses most" in analysis.markdown
    same = analyze_cases(("a", "b"), compare(outputs[0], outputs[0]), 1)
    assert "## Where" not in same.markdown
