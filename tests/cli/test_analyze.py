"""`fairseq-capsule analyze` on outputs of fairseq-generate: tables, pictures, what is refused."""

import csv
import io
import json
import sys

import pytest

from fairseq_capsule_lab.cli import main
from tests.libraries import library

SOURCES = ["a dog runs in the park", "two kids", "a cat", "a man in a red hat looks at the big hou@@ se"]
TARGETS = ["ein hund läuft im park", "zwei kinder", "eine katze", "ein mann mit rotem hut sieht das große haus an"]
FIRST = ["ein hund läuft im", "zwei kinder", "eine katze", "ein mann mit hut sieht das große haus an"]
SECOND = ["ein hund läuft im park", "zwei kinder", "ein tier", "ein mann mit rotem hut sieht das große ha@@ us an"]


def output(path, sentences, sources=SOURCES, targets=TARGETS):
    """Write an output of fairseq-generate, in another order than the text."""
    lines = [
        f"S-{i}\t{sources[i]}\nT-{i}\t{targets[i]}\nH-{i}\t-0.5\t{sentences[i]}\nD-{i}\t-0.5\t{sentences[i]}\n"
        for i in reversed(range(len(sentences)))
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def first(tmp_path):
    return output(tmp_path / "first.out", FIRST)


@pytest.fixture
def second(tmp_path):
    return output(tmp_path / "second.out", SECOND)


@pytest.fixture
def analyze(command, tmp_path):
    """Run the command, check its files, and return the rows that `--json` prints."""

    def run(kind, *arguments):
        out = tmp_path / "out"
        result = command("analyze", kind, *arguments, "--out", out, "--json")
        assert result.status == 0, result.err
        assert sorted(path.name for path in out.iterdir()) == [f"{kind}.{end}" for end in ("csv", "md", "png", "svg")]
        assert (out / f"{kind}.md").read_text(encoding="utf-8") in result.err
        assert (out / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
        printed = json.loads(result.out)
        with open(out / f"{kind}.csv", encoding="utf-8", newline="") as stream:
            table = list(csv.DictReader(stream))
        as_text = [
            {name: "" if value is None else str(value) for name, value in row.items()} for row in printed["rows"]
        ]
        assert printed["kind"] == kind and table == as_text
        return printed["rows"]

    return run


JAPANESE = ["母は台所で夕食を作っている。", "二人の子供が庭で遊んでいる。", "犬。"]
JAPANESE += ["公園で子供がたくさん楽しそうに遊んでいる。"]


def test_lengths_of_a_text_without_spaces_are_characters(analyze, refused, tmp_path):
    """In words all its sentences would have length 1, and BLEU would compare whole sentences."""
    almost = [line[1:] for line in JAPANESE]
    path = output(tmp_path / "ja.out", almost, sources=JAPANESE, targets=JAPANESE)
    message = refused("analyze", "lengths", path, "--out", tmp_path / "none")
    assert message.endswith("not tokenised, and its language is unknown; give --lang")
    options = ("--lang", "ja", "--tokenized", "no", "--bleu-tokenizer", "char")
    rows = analyze("lengths", path, *options)
    assert [row["sentences"] for row in rows] == [1, 2, 1] and [row["words"] for row in rows][0] == "≤ 2"
    assert all(row["bleu"] > 50 for row in rows if row["words"] != "≤ 2")
    assert "Source length: characters of the S- lines" in (tmp_path / "out/lengths.md").read_text(encoding="utf-8")


def test_a_terminal_in_latin_1_shows_other_characters_escaped(first, tmp_path, monkeypatch):
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="latin-1"))
    assert main(["analyze", "lengths", str(first), "--out", str(tmp_path / "out")]) == 0
    sys.stdout.flush()
    assert b"\\u2264 10" in printed.getvalue() and "≤ 10" in (tmp_path / "out/lengths.md").read_text(encoding="utf-8")


def test_lengths_are_grouped_by_intervals(analyze, first, second):
    rows = analyze("lengths", first, second, "--intervals", "2,6")
    assert [(row["system"], row["words"], row["sentences"]) for row in rows] == [
        (name, words, number)
        for name in ("first.out", "second.out")
        for words, number in (("≤ 2", 2), ("3–6", 1), ("> 6", 1))  # the last sentence has 12 words with subwords joined
    ]
    assert [row["bleu"] for row in rows if row["system"] == "second.out"] == pytest.approx([0, 100, 100])
    assert rows[1]["length_ratio"] == pytest.approx(4 / 5)


def test_lengths_are_grouped_by_bounds_or_into_equal_groups(analyze, first, tmp_path):
    rows = analyze("lengths", first, "--longer-than", "0,6", "--names", "GDR")
    assert [(row["system"], row["words"], row["sentences"]) for row in rows] == [("GDR", "> 0", 4), ("GDR", "> 6", 1)]
    rows = analyze("lengths", first, "--groups", 2)
    assert [(row["words"], row["sentences"]) for row in rows] == [("≤ 2", 2), ("> 2", 2)]


def test_coverage_is_computed_with_training_text(analyze, first, second, tmp_path):
    library("eflomal")
    for language, lines in (("en", SOURCES), ("de", TARGETS)):
        text = "\n".join(lines * 50).replace("@@ ", "") + "\n"
        (tmp_path / f"train.{language}").write_text(text, encoding="utf-8")
    training = "--train", tmp_path / "train.en", tmp_path / "train.de"
    rows = analyze("coverage", first, second, *training, "--runs", 2)
    assert [row["system"] for row in rows] == ["first.out", "second.out"]
    assert all(0.5 < row["cdr"] <= 1 for row in rows)
    assert all(0 <= row[kind] <= 100 for row in rows for kind in ("under", "over"))  # eflomal samples without a seed


def test_cases_show_the_largest_differences(analyze, first, second, tmp_path):
    rows = analyze("cases", first, second, "--count", 2)
    assert [row["sentence"] for row in rows] == [0, 1, 2, 3]
    assert rows[0]["difference"] == pytest.approx(100 - rows[0]["first_score"])
    assert rows[3]["second"] == TARGETS[3]  # subwords joined
    markdown = (tmp_path / "out/cases.md").read_text(encoding="utf-8")
    assert "| second.out, 100.0 | ein hund läuft im **park** |" in markdown
    assert "| first.out, 100.0 | **eine katze** |" in markdown


class TestRefusals:
    @pytest.fixture
    def refused(self, refused, tmp_path):
        """That line, after a look that nothing was written."""

        def run(kind, *arguments):
            line = refused("analyze", kind, *arguments, "--out", tmp_path / "out")
            assert not (tmp_path / "out").exists()
            return line

        return run

    def test_outputs_of_different_texts_are_refused(self, refused, first, tmp_path):
        short = output(tmp_path / "short", FIRST[:3])
        assert refused("lengths", first, short).startswith(
            f"{short}: 3 sentences, but {first} has 4; give outputs of the same"
        )
        other = output(tmp_path / "other", FIRST, sources=[*SOURCES[:3], "else"])
        assert refused("lengths", first, other).startswith(f"{other}: sentence 3 (S-, T-) differs from {first}")
        other = output(tmp_path / "other", FIRST, targets=["else", *TARGETS[1:]])
        assert refused("lengths", first, other).startswith(f"{other}: sentence 0 (S-, T-) differs from {first}")

    def test_coverage_of_untokenised_text_is_refused(self, refused, tmp_path):
        path = output(tmp_path / "plain.out", FIRST)
        path.write_text(path.read_text(encoding="utf-8").replace("D-0\t-0.5\tein", "D-0\t-0.5\tEin"), encoding="utf-8")
        assert refused("coverage", path).endswith(
            "words and punctuation are not separated; generate it without --tokenizer"
        )

    def test_untokenised_text_of_an_unknown_language_is_refused(self, refused, command, first, tmp_path):
        line = refused("lengths", first, "--tokenized", "no")
        assert line == f"{first}: not tokenised, and its language is unknown; give --lang"
        result = command("analyze", "lengths", first, "--tokenized", "no", "--lang", "de", "--out", tmp_path / "out")
        assert result.status == 0 and "Moses tokens of de" in result.out

    def test_training_texts_of_different_lengths_are_refused(self, refused, first, second):
        (first.parent / "one").write_text("a\n")
        (first.parent / "two").write_text("a\nb\n")
        line = refused("coverage", first, "--train", first.parent / "one", first.parent / "two")
        assert line == f"--train: {first.parent / 'one'} has 1 lines, but {first.parent / 'two'} has 2"

    def test_wrong_numbers_of_names_are_refused(self, refused, first, second):
        for names in (["one"], ["one", "one"]):
            options = [word for name in names for word in ("--names", name)]
            assert refused("lengths", first, second, *options).startswith("--names: give 2 different names")
        assert refused("lengths", first, first).startswith("--names: give 2 different names")
