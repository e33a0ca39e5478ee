"""The shell functions that the stages use."""

import random

import pytest

from tests.integration.preparing import Workplace


@pytest.fixture
def workplace(tmp_path):
    return Workplace(tmp_path, "prepare-multi30k.sh")


def test_pieces_keep_their_order(workplace):
    lines = [f"line {number}" for number in range(12_000)] + ["", "", "last"]
    (workplace.root / "from").mkdir()
    for lang in ("en", "de"):
        (workplace.root / "from" / f"train.{lang}").write_text("".join(f"{line}\n" for line in lines))
    process = workplace.common('mark() { sed "s/^/$1 /"; }; mkdir to; in_pieces from mark to')
    assert process.returncode == 0, process.errors
    for lang in ("en", "de"):
        assert (workplace.root / "to" / f"train.{lang}").read_text() == "".join(f"{lang} {line}\n" for line in lines)
    assert sorted(file.name for file in (workplace.root / "to").iterdir()) == ["train.de", "train.en"]


@pytest.mark.parametrize("body", ["false | cat", "head -c 9 && false", "sed 1d"])
def test_a_filter_that_fails_or_loses_lines_is_noticed(workplace, body):
    (workplace.root / "from").mkdir()
    (workplace.root / "from/train.en").write_text("one\ntwo\n")
    process = workplace.common(f"broken() {{ {body}; }}; mkdir to; in_pieces from broken to; echo passed")
    assert process.returncode != 0
    assert "passed" not in process.output


def test_a_stage_stops_at_its_first_failure(workplace):
    process = workplace.common(
        'make() { mkdir "$1"; false; echo whole >"$1/file"; }; enter out; stage folder make; echo passed'
    )
    assert process.returncode == 1
    assert "passed" not in process.output
    assert "stage 'folder' failed: no reason given" in process.errors
    assert sorted(file.name for file in (workplace.root / "out").iterdir()) == ["folder.log", "settings.part"]


def test_the_number_of_processes_is_that_of_cores(workplace):
    workplace.stub("nproc", 'echo "${OMP_NUM_THREADS:-3}"')
    process = workplace.run("bash", "-c", "source scripts/common.sh; echo $cores", OMP_NUM_THREADS="1")
    assert process.output == "3\n"


def test_codes_learnt_in_pieces_equal_those_of_the_whole_text(workplace):
    """Words are counted in pieces of the text, which must not change the codes."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdeé&;", k=rng.randint(1, 6))) for _ in range(300)]
    lines = [" ".join(rng.choices(words, k=rng.randint(0, 9))) for _ in range(11_000)]
    (workplace.root / "tokenised").mkdir()
    for lang in ("en", "de"):
        (workplace.root / "tokenised" / f"train.{lang}").write_text("".join(f"{line}\n" for line in lines))
    process = workplace.run(
        "bash",
        "-c",
        "source scripts/corpus.sh; languages=(en de) merges=200 text=tokenised; learn_codes both learnt; "
        "cat tokenised/train.* | subword-nmt learn-bpe --symbols 200 >expected; cmp learnt expected && ls",
    )
    assert process.returncode == 0, process.errors
    assert process.output.split() == ["expected", "learnt", "scripts", "stubs", "tokenised"]
