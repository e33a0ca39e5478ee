"""Scores, groups and sentences, compared with sacrebleu."""

import os
import random

import pytest
from sacrebleu.metrics import BLEU, CHRF

from fairseq_capsule_lab.analysis.lengths import GROUPS
from fairseq_capsule_lab.pages.report import comparison
from fairseq_capsule_lab.pages.report.systems import read_systems
from tests.pages.report.runs import make_data, make_run, write

NAMES = ["first", "second", "third"]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    references = make_data(folder / "data", 120)
    runs = [
        make_run(folder / name, folder / "data", references, error, seed=number)
        for number, (name, error) in enumerate(zip(NAMES, (0.3, 0.1, 0.3)))
    ]
    return read_systems(runs, NAMES, folder / "data")


def test_scores_are_those_of_sacrebleu(compared):
    test_set, systems = compared
    bleu, _, detokenised, chrf = comparison.scores(test_set, systems, 100, 5)
    assert [result.measure.name for result in (bleu, chrf)] == ["tokenised_bleu", "chrf"]
    for system, estimate in zip(systems, detokenised.estimates):
        lines = [line.replace(" .", ".") for line in system.translations.sentences]
        assert estimate.score == pytest.approx(BLEU().corpus_score(lines, test_set.references).score)
    first, second, third = bleu.estimates
    assert first.p is None and second.p == pytest.approx(1 / 101) and third.p > 0.05
    assert 0 < second.interval < 5


def test_intervals_and_p_are_those_of_sacrebleu(compared, monkeypatch):
    from sacrebleu.significance import PairedTest

    test_set, systems = compared
    monkeypatch.setenv("SACREBLEU_SEED", "9")
    *_, chrf = comparison.scores(test_set, systems, 50, 9)
    named = list(zip(NAMES, chrf.measure.systems))
    _, columns = PairedTest(named, {"chrf": CHRF()}, test_set.references, test_type="bs", n_samples=50)()
    (results,) = (column for name, column in columns.items() if name != "System")
    assert [estimate.interval for estimate in chrf.estimates] == [result.ci for result in results]
    assert [estimate.p for estimate in chrf.estimates] == [result.p_value for result in results]
    assert os.environ["SACREBLEU_SEED"] == "9"


def test_groups_contain_every_sentence_once(compared):
    test_set, systems = compared
    (measure, *_) = (result.measure for result in comparison.scores(test_set, systems, 10, 1))
    groups, unit = comparison.by_length(systems, measure, 10, 1, (5, 20))
    assert [group.words for group in groups] == ["≤ 5", "6–20", "> 20"] and unit == "words"
    assert sorted(i for group in groups for i in group.sentences) == list(range(120))
    for group in groups:
        lengths = [len(systems[0].translations.sources[i].split()) for i in group.sentences]
        low, high = {"≤ 5": (0, 5), "6–20": (6, 20), "> 20": (21, 99)}[group.words]
        assert low <= min(lengths) and max(lengths) <= high
        part = [[system.translations.sentences[i] for i in group.sentences] for system in systems]
        assert group.comparison.measure.systems == part


def test_the_same_system_twice_has_no_p(compared):
    test_set, systems = compared
    twice = [systems[0], systems[0]]
    assert all(result.estimates[1].p is None for result in comparison.scores(test_set, twice, 10, 1))


def test_summaries_are_scored_by_rouge_and_grouped_by_characters(tmp_path):
    lines = ["".join(random.Random(i).choices("天地玄黄宇宙洪荒", k=4 + i % 9)) for i in range(30)]
    (tmp_path / "data/raw").mkdir(parents=True)
    write(tmp_path / "data/raw/test.summary", lines)
    runs = []
    for name, cut in (("first", 3), ("second", 1)):
        run = make_run(
            tmp_path / name,
            tmp_path / "data",
            lines,
            0,
            scores={"references": ["test.summary"], "scores": {"rouge1": {"signature": "case:mixed"}}},
        )
        apart = [" ".join(line) for line in lines]
        output = [f"{kind}-{i}\t{line}" for i, line in enumerate(apart) for kind in "ST"]
        output += [f"{kind}-{i}\t-0.1\t{line[: -2 * cut]}" for i, line in enumerate(apart) for kind in "HD"]
        write(run / "evaluation/test/generate.out", output)
        runs.append(run)
    test_set, systems = read_systems(runs, ["first", "second"], tmp_path / "data")
    assert test_set.summaries and systems[0].translations.sentences == [line[:-3] for line in lines]
    rouge1, _, rouge_l = comparison.scores(test_set, systems, 20, 1)
    assert rouge1.measure.name == "rouge1"
    expected = [100 * 2 * (len(line) - 1) / (2 * len(line) - 1) for line in lines]
    assert rouge_l.estimates[1].score == pytest.approx(sum(expected) / 30)
    sentences = comparison.by_sentence(test_set, systems)
    assert sentences.label == "ROUGE-L" and sentences.scores[1] == pytest.approx(expected)
    groups, unit = comparison.by_length(systems, rouge1.measure, 10, 1, ())
    assert 2 <= len(groups) <= GROUPS and unit == "characters"
    assert sorted(i for group in groups for i in group.sentences) == list(range(30))


def test_sentences_of_summaries_are_scored_without_case_if_the_table_is(tmp_path):
    (tmp_path / "data/raw").mkdir(parents=True)
    write(tmp_path / "data/raw/test.summary", ["GPU天地"])
    scores = {"references": ["test.summary"], "scores": {"rouge1": {"signature": "case:lc"}}}
    run = make_run(tmp_path / "run", tmp_path / "data", ["GPU天地"], 0, scores=scores)
    output = [f"{kind}-0\tG P U 天 地" for kind in "ST"] + [f"{kind}-0\t-0.1\tg p u 天 地" for kind in "HD"]
    write(run / "evaluation/test/generate.out", output)
    test_set, systems = read_systems([run], ["run"], tmp_path / "data")
    assert test_set.lowercase and comparison.by_sentence(test_set, systems).scores == [[pytest.approx(100)]]


def test_texts_are_read_as_the_run_was_scored(tmp_path):
    """evaluate.sh scores the text of `prepare.sh --tokenise none` with `--tokenized no`."""
    lines = make_data(tmp_path / "data", 10)
    for tokenized, expected in (("auto", True), ("no", False)):
        run = make_run(tmp_path / tokenized, tmp_path / "data", lines, 0, scores={"tokenized": tokenized})
        _, (system,) = read_systems([run], [tokenized], tmp_path / "data")
        assert system.translations.tokenised == expected


def test_sentence_scores_are_those_of_sacrebleu(compared):
    test_set, systems = compared
    sentences = comparison.by_sentence(test_set, systems)
    assert sentences.label == "chrF"
    for texts, scores in zip(sentences.texts, sentences.scores):
        expected = [CHRF().sentence_score(text, [line]).score for text, line in zip(texts, test_set.references[0])]
        assert scores == pytest.approx(expected)
