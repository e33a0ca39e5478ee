"""`fairseq-capsule score --rouge`: F1 over characters, signatures, the paired bootstrap."""

import json
from importlib.metadata import version

import pytest

from capsule_routing.text.rouge import CharacterRouge

REFERENCES = ["岚泽发布新手机 499元起", "成都地铁3号线开通", "汽油涨5.2%", "厦门将有大风 降温3度"]
HYPOTHESES = ["岚泽发布手机 499元起", "成都地铁5号线开通", "汽油涨5.2%", "厦门大风"]
MEASURES = ["rouge1", "rouge2", "rougeL"]


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def generated_lines(hypotheses):
    for number in (2, 0, 3, 1):
        spelt, target = (" ".join(line[number].replace(" ", "▁")) for line in (hypotheses, REFERENCES))
        yield f"S-{number}\t{target}"
        yield f"T-{number}\t{target}"
        yield f"H-{number}\t-0.3\t{spelt}"
        yield f"D-{number}\t-0.3\t{spelt}"


@pytest.fixture
def reference(tmp_path):
    return write(tmp_path / "reference.summary", REFERENCES)


@pytest.fixture
def score(command):
    def run(*arguments):
        result = command("score", "--rouge", *arguments, "--json")
        assert result.status == 0
        report, printed = result.err.splitlines(), json.loads(result.out)
        assert list(printed["scores"]) == MEASURES
        for found in printed["scores"].values():
            assert f"{found['label']} = {found['score']:.2f}  (characters)" in report
        return printed

    return run


def of(printed, part="score"):
    return {name: found[part] for name, found in printed["scores"].items()}


def test_rouge_is_the_mean_over_sentences(score, reference, tmp_path):
    printed = score(write(tmp_path / "plain", HYPOTHESES), reference)
    each = [CharacterRouge().f1(*pair) for pair in zip(HYPOTHESES, ([line] for line in REFERENCES))]
    assert of(printed) == pytest.approx({name: 25 * sum(f1[name] for f1 in each) for name in MEASURES})
    assert printed["sentences"] == 4
    assert of(printed, "signature")["rouge2"] == (
        f"nrefs:1|type:rouge2|case:mixed|tok:char|version:rouge-score-{version('rouge-score')}"
    )


def test_a_generated_output_is_joined(score, reference, tmp_path):
    plain = score(write(tmp_path / "plain", HYPOTHESES), reference)
    output = write(tmp_path / "generated", generated_lines(HYPOTHESES))
    printed = score(output, reference, "--output", tmp_path / "joined")
    assert of(printed) == of(plain)
    assert (tmp_path / "joined").read_text(encoding="utf-8").splitlines() == HYPOTHESES


def test_an_output_that_fairseq_joined_keeps_its_spaces(score, reference, tmp_path):
    lines = []
    for number, line in enumerate(HYPOTHESES):
        lines += [f"H-{number}\t-0.3\t{line}", f"D-{number}\t-0.3\t{line}"]
    score(write(tmp_path / "generated", lines), reference, "--output", tmp_path / "joined")
    assert (tmp_path / "joined").read_text(encoding="utf-8").splitlines() == HYPOTHESES


def test_case_counts_unless_lowercase_is_given(score, reference, tmp_path):
    upper, lower = write(tmp_path / "upper", ["CEO"] * 4), write(tmp_path / "lower", ["ceo"] * 4)
    assert of(score(upper, lower)) == dict.fromkeys(MEASURES, 0)
    printed = score(upper, lower, "--lowercase")
    assert of(printed) == pytest.approx(dict.fromkeys(MEASURES, 100))
    assert all("case:lc" in signature for signature in of(printed, "signature").values())
