"""Commands that read a split of the binarised data: splits without sentences, and with very long ones."""

import json
import shutil

import pytest
from fairseq import options
from fairseq_cli import preprocess

COMMANDS = {
    "nll": "nll {model} --data {data} --split test",
    "probe": "probe {model} --data {data}",
    "inspect": "inspect {model} {data} --ids 0 --out {out}",
}


@pytest.fixture
def without_sentences(world, tmp_path):
    """Make data with an empty test set, in a format of fairseq-preprocess."""

    def make(form):
        data = tmp_path / "bin"
        shutil.copytree(world / "data/bin", data, ignore=shutil.ignore_patterns("test.*"))
        for language in ("en", "de"):
            (tmp_path / f"test.{language}").touch()
        words = ["-s", "en", "-t", "de", "--testpref", tmp_path / "test", "--destdir", tmp_path / "test-bin"]
        words += ["--srcdict", data / "dict.en.txt", "--tgtdict", data / "dict.de.txt", "--dataset-impl", form]
        preprocess.main(options.get_preprocessing_parser().parse_args([str(word) for word in words]))
        for path in (tmp_path / "test-bin").glob("test.*"):
            shutil.copy(path, data)
        return data

    return make


@pytest.mark.parametrize("program, form", [("nll", "cached"), *((program, "mmap") for program in COMMANDS)])
def test_a_split_without_sentences_is_refused(command, world, without_sentences, tmp_path, program, form):
    places = {"model": world / "model.pt", "data": without_sentences(form), "out": tmp_path / "out"}
    result = command(*COMMANDS[program].format(**places).split())
    assert result.status == 1
    assert "--split test: no sentences; name another split" in result.err.splitlines()[-1]


def test_check_data_finds_a_split_without_sentences(command, without_sentences):
    result = command("check-data", without_sentences("mmap"))
    assert result.status == 1 and "test.en-de.de.idx: 0 sentences, and " in result.out


def test_a_sentence_may_have_more_tokens_than_a_batch(command, world, monkeypatch):
    arguments = ("nll", world / "model.pt", "--data", world / "data/bin", "--split", "test", "--json")
    whole = json.loads(command(*arguments).out)["rows"][0]
    monkeypatch.setattr("fairseq_capsule_lab.analysis.batches.TOKENS", 4)
    found = json.loads(command(*arguments).out)["rows"][0]
    assert found["tokens"] == whole["tokens"]
    assert found["nll"] == pytest.approx(whole["nll"])
