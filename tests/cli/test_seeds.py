"""`fairseq-capsule seeds`: one line for each system and measure, the JSON object, and errors."""

import json

import pytest

from tests.cli.scored import REFERENCES, TRANSLATIONS, write

OTHERS = [TRANSLATIONS, REFERENCES[:3] + TRANSLATIONS[3:], [*TRANSLATIONS[:3], "Kinder spielen im Sand."]]


@pytest.fixture
def files(tmp_path):
    outputs = [write(tmp_path / f"out{number}", lines) for number, lines in enumerate(OTHERS)]
    return write(tmp_path / "test.de", REFERENCES), outputs


def test_every_system_is_compared_with_the_baseline(command, files, tmp_path):
    reference, (first, better, worse) = files
    again = write(tmp_path / "again", OTHERS[2])
    systems = ["--system", better, first, "--system", worse, again]
    result = command("seeds", reference, "--baseline", first, worse, *systems, "--json")
    assert result.status == 0, result.err
    assert "note: " not in result.err
    *lines, last = result.out.splitlines()
    printed = json.loads(last)
    assert printed["sentences"] == len(REFERENCES)
    for measured in printed["scores"].values():
        baseline, gain, loss = measured
        assert baseline["effect"] is None
        assert gain["effect"]["difference"] > 0 > loss["effect"]["difference"]
        assert [len(each["scores"]) for each in measured] == [2, 2, 2]
        for system in (gain, loss):
            effect = system["effect"]
            interval = f"{effect['difference']:+.2f} ({effect['low']:+.2f} to {effect['high']:+.2f})"
            assert any(interval in line and line.endswith(system["outputs"][0]) for line in lines)


def test_summaries_are_compared_by_rouge(command, files):
    reference, (first, better, worse) = files
    result = command("seeds", reference, "--rouge", "--baseline", first, worse, "--system", better, first, "--json")
    assert list(json.loads(result.out.splitlines()[-1])["scores"]) == ["rouge1", "rouge2", "rougeL"]


def test_text_is_read_as_the_options_say(command, tmp_path):
    """The text of `prepare.sh --tokenise characters` in a language without spaces."""
    reference = write(tmp_path / "ref.zh", ["我用Python写字。", "他走了。"])
    found = []
    for spelled, *options in ((True, "--tokenized", "no", "--remove-bpe", "sentencepiece"), (False,)):
        outputs = []
        for number, lines in enumerate((["我用Python写字。", "他走。"], ["我用Python。", "他走了。"])):
            generated = [f"H-{i}\t-0.1\t{' '.join(line)}" for i, line in enumerate(lines)]
            outputs.append(write(tmp_path / f"{spelled}{number}", generated if spelled else lines))
        result = command("seeds", reference, "--baseline", *outputs, "--system", *reversed(outputs), *options, "--json")
        scores = json.loads(result.out.splitlines()[-1])["scores"]
        found.append({measure: [each["scores"] for each in systems] for measure, systems in scores.items()})
    assert found[0]["detokenised_bleu"] == found[1]["detokenised_bleu"] != [[0.0, 0.0]] * 2


def test_another_reference_is_refused_unless_the_user_wants_it(command, refused, tmp_path):
    """The T- lines of the outputs are those of another text."""
    lines = [
        f"{kind}-{i}\t{line}"
        for i, line in enumerate(TRANSLATIONS)
        for kind, line in (("T", "x y"), ("H", f"0\t{line}"))
    ]
    outputs = [write(tmp_path / f"out{number}", lines) for number in range(2)]
    words = ["seeds", write(tmp_path / "test.de", REFERENCES), "--baseline", *outputs, "--system", *outputs]
    assert "--other-reference" in refused(*words)
    assert command(*words, "--other-reference").status == 0


def test_a_repeated_output_of_the_baseline_is_noted(command, files):
    """The tables repeat a given checkpoint for each seed."""
    reference, (first, better, worse) = files
    result = command("seeds", reference, "--baseline", first, first, "--system", better, worse, "--json")
    assert result.status == 0 and json.loads(result.out.splitlines()[-1])["sentences"] == len(REFERENCES)
    assert "note: the baseline has fewer outputs than seeds; the intervals do not cover the variation" in result.err


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (["--baseline", 0, "--system", 1], "--baseline: one output"),
        (["--baseline", 0, 1, "--system", 1, 2, 0], "3 outputs, but the baseline has 2"),
        (["--baseline", 0, 1, "--system", 1, 3], "3 sentences, but"),
        (["--baseline", 0, 1, "--system", 1, 0, "--system", 2, 2], "out2: an output occurs twice"),
    ],
)
def test_wrong_outputs_are_refused(command, files, tmp_path, arguments, problem):
    reference, outputs = files
    outputs = [*outputs, write(tmp_path / "short", REFERENCES[:3])]
    result = command("seeds", reference, *(outputs[part] if isinstance(part, int) else part for part in arguments))
    assert result.status == 1
    assert problem in result.err
    assert len(result.err.splitlines()) == 1
