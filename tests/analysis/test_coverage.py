"""Coverage of the source, compared with counts by hand."""

from dataclasses import replace

import pytest

from capsule_routing.errors import UserError
from fairseq_capsule_lab.analysis import coverage
from fairseq_capsule_lab.analysis.alignment import MOST_WORDS
from fairseq_capsule_lab.analysis.coverage import analyze_coverage, coverage_rates
from fairseq_capsule_lab.evaluation.translations import Translations
from tests.references import zheng2019


def test_rates_equal_a_result_by_hand():
    """Two sentences of 4 and 6 source words. The reference covers words 0, 1, 2 and words 0, 5."""
    reference = [{(0, 0), (1, 1), (1, 2), (2, 3)}, {(0, 0), (5, 1)}]
    # Under-translated: word 2 of the first sentence and word 5 of the second. Over-translated: word 0 of the first,
    # which has two links instead of one. Neither: word 1 with two links in both, and word 3 with one link in the
    # translation.
    translation = [{(0, 0), (0, 4), (1, 1), (1, 2), (3, 3)}, {(0, 0)}]
    rates = coverage_rates([4, 6], reference, translation)
    covered, kept = ({(n, i) for n, links in enumerate(every) for i, _ in links} for every in (reference, translation))
    assert rates.cdr == pytest.approx(zheng2019.coverage_difference_ratio(covered, kept))
    assert rates == (pytest.approx(1 - 2 / 5), pytest.approx(100 * 2 / 10), pytest.approx(100 * 1 / 10))


def test_a_word_not_in_the_reference_is_over_translated_from_two_links():
    links = [{(0, 0)}], [{(0, 0), (1, 1), (1, 2)}]
    assert coverage_rates([2], *links).over == 50


def test_the_reference_covers_itself_completely():
    links = [{(0, 0), (1, 1)}]
    assert coverage_rates([2], links, links) == (1, 0, 0)


def test_a_reference_without_links_is_refused():
    with pytest.raises(UserError, match="no source word could be aligned"):
        coverage_rates([2], [set()], [{(0, 0)}])


def test_an_analysis_has_means_over_alignments(monkeypatch):
    """The stub aligns equal words. In every second alignment the second system's translation has no links."""
    runs = []

    def align(sources, targets):
        assert sources[0] == "train" and targets[0] == "training"  # the training text comes first
        runs.append(len(sources))
        pairs = [(source.split(), target.split()) for source, target in zip(sources, targets)]
        links = [{(i, j) for i, s in enumerate(a) for j, t in enumerate(b) if s == t} for a, b in pairs]
        if len(runs) % 2 == 0:
            links[3] = set()
        return links, links

    monkeypatch.setattr(coverage, "align", align)
    texts = {"whole": "a b c d", "half": "a b b"}
    outputs = [Translations(name, [text], True, ["a b c d"], ["a b c d"]) for name, text in texts.items()]
    analysis = analyze_coverage(list(texts), outputs, (["train"], ["training"]), runs=2)
    assert runs == [4, 4]
    whole, half = analysis.rows
    assert (whole.cdr, whole.cdr_spread, whole.under, whole.over) == (1, 0, 0, 0)
    assert (half.cdr, half.cdr_spread) == (0.25, 0.25)  # 0.5 and 0
    assert (half.under, half.under_spread) == (75, 25)
    assert (half.over, half.over_spread) == (12.5, 12.5)  # “b” occurs twice, and one of the alignments links it
    assert "| half | 0.2500 | 0.2500 | 75.00 | 25.00 | 12.50 | 12.50 |" in analysis.markdown
    assert "no link" not in analysis.markdown
    outputs = [replace(output, sources=["a " * MOST_WORDS + output.sources[0]]) for output in outputs]
    long = analyze_coverage(list(texts), outputs, (["train"], ["training"]), runs=1)
    assert "3 pairs have 1,024 words or more on a side: eflomal gives them no link." in long.markdown
