"""`--external`: scores of another metric enter `score`, `seeds` and `report` with the same tests."""

import json
import re

import numpy as np
import pytest

from fairseq_capsule_lab.evaluation.seeds import effect, jackknife_error
from tests.cli.scored import REFERENCES, TRANSLATIONS, write, write_comet

OTHERS = ["Er geht.", "Die Bahn.", "Ein Hund läuft.", "Zwei Kinder spielen."]


@pytest.fixture
def texts(tmp_path):
    files = {"ref.de": REFERENCES, "ours.de": TRANSLATIONS, "theirs.de": OTHERS}
    return [write(tmp_path / name, lines) for name, lines in files.items()]


def comet(folder, *systems):
    scored = {f"run-{number}/translations.de": system for number, system in enumerate(systems)}
    return write_comet(folder / "comet.json", ["…"] * len(REFERENCES), REFERENCES, scored)


OURS, THEIRS = [0.9, 0.8, 0.95, 0.7], [0.5, 0.81, 0.6, 0.4]


def test_the_score_is_the_mean_and_the_bootstrap_compares_it(command, tmp_path, texts):
    reference, ours, theirs = texts
    file = comet(tmp_path, (TRANSLATIONS, OURS), (OTHERS, THEIRS))
    result = command("score", ours, reference, "--against", theirs, "--external", f"COMET={file}", "--json")
    assert result.status == 0, result.err
    printed = json.loads(result.out)["scores"]
    assert list(printed) == ["tokenised_bleu", "compound_split_bleu", "detokenised_bleu", "chrf", "COMET"]
    found = printed["COMET"]
    assert found["score"] == pytest.approx(np.mean(OURS), abs=1e-6)
    assert found["against"]["difference"] == pytest.approx(np.mean(OURS) - np.mean(THEIRS), abs=1e-6)
    assert 0 < found["against"]["p"] < 0.2
    assert f"COMET = 0.8375  (scores of {file})" in result.err
    assert "COMET|metric:COMET|mean:sentences = 0.8375" in result.err
    assert re.search(r"0\.8375 of ours\.de - 0\.5775 of theirs\.de = \+0\.2600, p (= 0\.\d{4}|≤ 0\.001) ", result.err)


@pytest.mark.parametrize("content", ["[0.9, 0.8, 0.95, 0.7]", "0.9\n0.8\n0.95\n0.7\n", '{"x": [0.9, 0.8, 0.95, 0.7]}'])
def test_json_and_tsv_of_one_output(command, tmp_path, texts, content):
    (tmp_path / "scores").write_text(content)
    result = command("score", texts[1], texts[0], "--external", f"mine={tmp_path / 'scores'}", "--json")
    assert json.loads(result.out)["scores"]["mine"]["score"] == pytest.approx(0.8375, abs=1e-6)


def test_seeds_have_an_interval_over_seeds_and_sentences(command, tmp_path, texts):
    columns = [THEIRS, [score + 0.01 for score in THEIRS], OURS, [0.8, 0.9, 0.9, 0.6]]
    (tmp_path / "scores.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in zip(*columns)))
    outputs = [write(tmp_path / f"{number}.de", [*OTHERS[:3], f"{number}"]) for number in range(4)]
    options = ("--external", f"COMET={tmp_path / 'scores.tsv'}", "--json")
    result = command(
        "seeds",
        texts[0],
        "--baseline",
        f"{outputs[0]}:{outputs[1]}",
        "--system",
        f"{outputs[2]}:{outputs[3]}",
        *options,
    )
    assert result.status == 0, result.err
    _, system = json.loads(result.out)["scores"]["COMET"]
    differences = np.array(columns[2:]) - np.array(columns[:2])
    without_each = (differences.mean(0).sum() - differences.mean(0)) / 3
    expected = effect(differences.mean(1), jackknife_error(without_each))
    assert system["effect"]["difference"] == pytest.approx(expected.difference)
    assert system["effect"]["p"] == pytest.approx(expected.p)
    assert f"{expected.difference:+.4f} ({expected.low:+.4f} to {expected.high:+.4f})" in result.err


@pytest.mark.parametrize(
    "content, message",
    [
        ("[1, 2, 3]", r"3 scores, but .*ours\.de has 4 sentences; score it again"),
        ('{"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]}', "scores of 2 outputs, but there are 1; give those of all, in their"),
        ("[1, 2, null, 4]", "sentence 3 has no score COMET: None; give a number"),
        ("[1, 2, NaN, 4]", "sentence 3 has no score COMET: nan; give a number"),
        ("1\t2\n3\n", "neither JSON with a list for each output nor lines with a column for each output"),
        ('[1, 2, {"BLEURT": 3}, 4]', "sentence 3 has no score COMET: None; give a number"),
    ],
)
def test_a_file_with_other_contents_is_refused(refused, tmp_path, texts, content, message):
    (tmp_path / "scores").write_text(content)
    line = refused("score", texts[1], texts[0], "--external", f"COMET={tmp_path / 'scores'}")
    assert re.fullmatch(rf"{tmp_path / 'scores'}: {message}.*", line)


def test_scores_of_other_translations_are_refused(refused, tmp_path, texts):
    file = comet(tmp_path, (OTHERS, THEIRS), (TRANSLATIONS, OURS))
    line = refused("score", texts[1], texts[0], "--against", texts[2], "--external", f"COMET={file}")
    assert line == (f"{file}: 4 of its translations differ from {texts[1]}; give the scores in the outputs' order")


@pytest.mark.parametrize(
    "values, message",
    [
        (["chrf=FILE"], "--external chrf: another measure has this name; choose another one"),
        (["x=FILE", "x=FILE"], "--external x: another measure has this name; choose another one"),
    ],
)
def test_a_wrong_option_is_refused(refused, tmp_path, texts, values, message):
    (tmp_path / "scores").write_text("[1, 2, 3, 4]")
    options = [word for value in values for word in ("--external", value.replace("FILE", str(tmp_path / "scores")))]
    assert refused("score", texts[1], texts[0], *options).startswith(message)
