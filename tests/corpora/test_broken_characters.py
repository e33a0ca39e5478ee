"""Broken characters of a corpus: validation and test sets with one are refused, training pairs are dropped."""

from pathlib import Path

import pytest

from capsule_routing.errors import UserError
from fairseq_capsule_lab.corpora.lcsts import write_pairs
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.texts import append_good_pairs, append_training_pairs, copy_similar_pairs

SET = ("set.sgm", "other.sgm")
BROKEN = {"NUL": ("\0", "U+0000"), "U+FFFD": ("\ufffd", "U+FFFD")}
DOCUMENT = (
    "<doc id={}>\n<human_label>5</human_label>\n<summary>\n{}\n</summary>\n<short_text>\n{}\n</short_text>\n</doc>\n"
)


def taken(folder, source="text.en", target="text.de"):
    """Take the pairs of a training text, and return the counts."""
    return append_training_pairs([folder / source, folder / target], [folder / "train.en", folder / "train.de"], 0)[1]


def refused(folder, source="text.en", target="text.de"):
    """Return why the pairs of a validation set are refused, or ""."""
    try:
        append_good_pairs([folder / source, folder / target], [folder / "valid.en", folder / "valid.de"])
    except UserError as error:
        return str(error).removeprefix(f"{folder}/")
    return ""


def summaries(folder, least):
    """Write the pairs of a file of LCSTS, and return their number as text, or why they are refused."""
    try:
        return write_pairs(folder / "part.txt", [folder / "train.text", folder / "train.summary"], least, 0)
    except UserError as error:
        return str(error).removeprefix(f"{folder}/")


@pytest.fixture(params=BROKEN)
def broken(request):
    return BROKEN[request.param]


@pytest.mark.parametrize("side", ["en", "de"])
def test_broken_characters_of_plain_text_are_refused_or_dropped(tmp_path, broken, side):
    character, name = broken
    for language in ("en", "de"):
        lines = ["a b", f"c {character if side == language else ''} d"]
        (tmp_path / f"text.{language}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    assert refused(tmp_path) == f"text.{side}, line 2: {name} at character 3: fix the file"
    counts, warning = taken(tmp_path).split("\t")
    assert counts == f"1 pairs (dropped: 1 broken characters in text.{side})"
    assert warning == f"1 of 2 pairs were left out, 1 of them broken characters in text.{side}: check the text"
    assert (tmp_path / f"train.{side}").read_text() == "a b\n"


def test_training_pairs_without_a_text_on_one_side_are_left_out(tmp_path):
    (tmp_path / "text.en").write_text("a\n \t\nb\n\n", encoding="utf-8")
    (tmp_path / "text.de").write_text("c\nd\n\u3000\n\n", encoding="utf-8")
    assert taken(tmp_path).startswith("1 pairs (dropped: 1 empty in text.de, 2 empty in text.en)\t")
    assert [(tmp_path / f"train.{language}").read_text() for language in ("en", "de")] == ["a\n", "c\n"]


def test_a_limit_counts_the_pairs_of_all_parts(tmp_path):
    for name, lines in (("a", "1\n\n2\n"), ("b", "\n3\n4\n"), ("c", "5\n")):
        (tmp_path / f"{name}.en").write_text(lines)
        (tmp_path / f"{name}.de").write_text(lines.translate(str.maketrans("12345", "abcde")))
    raw = RawTexts(tmp_path / "raw", ("en", "de"), Path, limit=3)
    for name in "abc":
        raw.append(tmp_path / f"{name}.en", tmp_path / f"{name}.de")
    assert [file.read_text() for file in raw.files("train")] == ["1\n2\n3\n", "a\nb\nc\n"] and raw.is_full


@pytest.mark.parametrize("character", ["b", "😀"])
@pytest.mark.parametrize("number", [100_000, 100_001])
def test_a_long_line_is_refused_or_dropped(tmp_path, character, number):
    for language in ("en", "de"):
        lines = ("\ufeffa", character * number if language == "de" else "b", language)
        (tmp_path / f"text.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    counts, reason = taken(tmp_path), refused(tmp_path)
    if number == 100_000:
        assert (counts, reason) == ("3 pairs", "")
        return
    assert counts.startswith("2 pairs (dropped: 1 too long in text.de)\t")
    assert [(tmp_path / f"train.{language}").read_text() for language in ("en", "de")] == ["a\nen\n", "a\nde\n"]
    assert reason == "text.de, line 2: over 100000 characters are no sentence: fix the pair"


@pytest.mark.parametrize("escaped", ["\ufffd", "&#0;", "&#xFFFD;"])
def test_broken_characters_of_sgm_segments_are_refused(tmp_path, escaped):
    document = f'<doc docid="d"><seg id="1">a</seg><seg id="2">b {escaped}</seg></doc>'
    (tmp_path / "set.sgm").write_text(document, encoding="utf-8")
    (tmp_path / "other.sgm").write_text('<doc docid="d"><seg id="1">x</seg><seg id="2">y</seg></doc>')
    assert refused(tmp_path, *SET) == "set.sgm, segment 2 of document d: U+FFFD at character 3: fix the file"


def test_broken_characters_of_summaries_are_refused_or_dropped(tmp_path, broken):
    character, name = broken
    text = DOCUMENT.format(0, "好" + character, "很好") + DOCUMENT.format(1, "好", "很好")
    (tmp_path / "part.txt").write_text(text, encoding="utf-8")
    assert summaries(tmp_path, 3).startswith(f"part.txt, doc 0: {name} at character ")
    assert summaries(tmp_path, 0) == "1 pairs (dropped: 1 broken characters)"
    assert (tmp_path / "train.summary").read_text(encoding="utf-8") == "好\n"


def test_a_segment_without_an_end_is_refused(tmp_path):
    for name in SET:
        (tmp_path / name).write_text('<doc docid="d"><seg id="1">a</seg><seg id="2">b</doc>')
    assert refused(tmp_path, *SET) == "set.sgm, segment 2 of document d: no </seg>: fetch the file again"


def test_markup_inside_a_segment_is_text(tmp_path):
    document = '<REFSET refid="r"><Doc docid="d"><SEG id=1> a <b <seg> <doc> </SEG >c</seg><seg id="2">d</Seg></doc>'
    (tmp_path / "set.sgm").write_text(document)
    (tmp_path / "other.sgm").write_text('<doc docid="d"><seg id="1">x</seg><seg id="2">y</seg></doc>')
    assert not refused(tmp_path, *SET)
    assert (tmp_path / "valid.en").read_text() == "a <b <seg> <doc> </SEG >c\nd\n"


def test_a_field_ends_at_its_own_tag(tmp_path):
    fields = "<summary>a<summary></short_text>b</summary><short_text>c<summary>d</short_text><human_label>"
    (tmp_path / "part.txt").write_text(f"<doc id=0>\n{fields}\n</doc>\n")
    assert summaries(tmp_path, 0) == "1 pairs"
    assert (tmp_path / "train.summary").read_text() == "a<summary></short_text>b\n"
    assert (tmp_path / "train.text").read_text() == "c<summary>d\n"


def test_the_limits_of_similar_pairs_are_inclusive(tmp_path):
    files = [tmp_path / name for name in ("text.en", "text.de", "clean.en", "clean.de")]
    files[0].write_text("a b\na b\n\na b c d\n", encoding="utf-8")
    files[1].write_text("a b c\na b c d\na\na b c\n", encoding="utf-8")
    copy_similar_pairs(files[:2], files[2:], longest=3, ratio=1.5)
    assert [file.read_text(encoding="utf-8") for file in files[2:]] == ["a b\n", "a b c\n"]


@pytest.mark.parametrize("longest", [3, None])
def test_no_similar_pairs_and_texts_of_different_lengths_are_refused(tmp_path, longest):
    files = [tmp_path / name for name in ("text.en", "text.de", "clean.en", "clean.de")]
    files[0].write_text("a\na b c d\n")
    files[1].write_text("\na\n")
    with pytest.raises(UserError, match="no pair is left: all are empty, or too long for --max-length or --ratio"):
        copy_similar_pairs(files[:2], files[2:], longest, ratio=1.5)
    files[1].write_text("a\n")
    with pytest.raises(UserError, match="text.de has fewer lines than the other texts: give parallel texts"):
        copy_similar_pairs(files[:2], files[2:], longest)
