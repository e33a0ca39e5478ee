"""`fairseq-capsule seeds`: one line for each system and measure, the JSON object, and errors."""

import json

import pytest

from fairseq_capsule_lab.cli.arguments import text_files
from tests.cli.scored import REFERENCES, TRANSLATIONS, write

OTHERS = [TRANSLATIONS, REFERENCES[:3] + TRANSLATIONS[3:], [*TRANSLATIONS[:3], "Kinder spielen im Sand."]]


@pytest.fixture
def files(tmp_path):
    outputs = [write(tmp_path / f"out{number}", lines) for number, lines in enumerate(OTHERS)]
    return write(tmp_path / "test.de", REFERENCES), outputs


def test_every_system_is_compared_with_the_baseline(command, files, tmp_path):
    reference, (first, better, worse) = files
    again = write(tmp_path / "out[12]", OTHERS[2])  # a file, not a pattern
    systems = ["--system", f"{better}:{first}", "--system", f"{worse}:{again}"]
    result = command("seeds", reference, "--baseline", f"{first}:{worse}", *systems, "--json")
    assert result.status == 0, result.err
    assert "note: " not in result.err
    lines, printed = result.err.splitlines(), json.loads(result.out)
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


def test_a_repeated_output_of_the_baseline_is_noted(command, files):
    """The tables repeat a given checkpoint for each seed."""
    reference, (first, better, worse) = files
    result = command("seeds", reference, "--baseline", f"{first}:{first}", "--system", f"{better}:{worse}", "--json")
    assert result.status == 0 and json.loads(result.out)["sentences"] == len(REFERENCES)
    assert "note: the baseline has fewer outputs than seeds; the intervals do not cover the variation" in result.err


def test_the_files_of_a_pattern_are_in_the_order_of_seeds(tmp_path):
    """In the order of text, seed 10 would stand before or after seed 1, by the character after the number."""
    for name in ("sys", "run"):
        paths = [tmp_path / f"{name}{seed}{'_' if name == 'run' else '.'}out" for seed in (1, 2, 10)]
        for path in paths:
            path.touch()
        assert text_files(str(tmp_path / f"{name}*out")) == paths


@pytest.mark.parametrize(
    "arguments, problem",
    [
        ("--baseline out0 --system out1", "--baseline: one output"),
        ("--baseline out0:out1 --system out[12]:out0", "3 outputs, but the baseline has 2"),
        ("--baseline out0:out1 --system out1:short", "3 sentences, but"),
        ("--baseline out0:out1 --system out1:out0 --system out2:out2", "out2: an output occurs twice"),
        ("--baseline out0:out1 --system out1:missing*", "missing*"),
    ],
)
def test_wrong_outputs_are_refused(command, files, tmp_path, monkeypatch, arguments, problem):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "short", REFERENCES[:3])
    result = command("seeds", "test.de", *arguments.split())
    assert result.status == 1
    assert problem in result.err
    assert len(result.err.splitlines()) == 1
