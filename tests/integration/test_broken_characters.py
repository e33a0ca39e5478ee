"""Broken characters of a corpus: validation and test sets with one are refused, training pairs are dropped."""

import subprocess
import sys

import pytest

from tests.integration.commands import REPOSITORY

BROKEN = {"NUL": ("\0", "U+0000"), "U+FFFD": ("\ufffd", "U+FFFD")}
DOCUMENT = (
    "<doc id={}>\n<human_label>5</human_label>\n<summary>\n{}\n</summary>\n<short_text>\n{}\n</short_text>\n</doc>\n"
)


def run(script, *arguments, cwd):
    command = [sys.executable, REPOSITORY / "scripts" / script, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


@pytest.fixture(params=BROKEN)
def broken(request):
    return BROKEN[request.param]


@pytest.mark.parametrize("side", ["en", "de"])
def test_broken_characters_of_plain_text_are_refused_or_dropped(tmp_path, broken, side):
    character, name = broken
    for language in ("en", "de"):
        lines = ["a b", f"c {character if side == language else ''} d"]
        (tmp_path / f"text.{language}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    refused = run("take_pairs.py", "text.en", "text.de", "valid.en", "valid.de", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr == f"text.{side}, line 2: {name} at character 3: fix the file\n"
    taken = run("take_pairs.py", "--drop", "text.en", "text.de", "train.en", "train.de", cwd=tmp_path)
    counts, warning = taken.stdout.split("\t")
    assert counts == f"1 pairs (dropped: 1 broken characters in text.{side})"
    assert warning == f"1 of 2 pairs were left out, 1 of them broken characters in text.{side}: check the text\n"
    assert (tmp_path / f"train.{side}").read_text() == "a b\n"


def test_an_empty_sentence_is_refused_or_dropped(tmp_path):
    for language in ("en", "de"):
        (tmp_path / f"text.{language}").write_text("a\n" + "b" * 100_001 + "\n")
    refused = run("take_pairs.py", "text.en", "text.de", "valid.en", "valid.de", cwd=tmp_path)
    assert refused.stderr == "text.en, line 2: 100001 characters are no sentence: fix the pair\n"


@pytest.mark.parametrize("escaped", ["\ufffd", "&#0;", "&#xFFFD;"])
def test_broken_characters_of_sgm_segments_are_refused(tmp_path, escaped):
    document = f'<doc docid="d"><seg id="1">a</seg><seg id="2">b {escaped}</seg></doc>'
    (tmp_path / "set.sgm").write_text(document, encoding="utf-8")
    refused = run("take_pairs.py", "set.sgm", "set.sgm", "test.en", "test.de", cwd=tmp_path)
    assert refused.stderr == "set.sgm, segment 2 of document d: U+FFFD at character 3: fix the file\n"


def test_broken_characters_of_summaries_are_refused_or_dropped(tmp_path, broken):
    character, name = broken
    text = DOCUMENT.format(0, "好" + character, "很好") + DOCUMENT.format(1, "好", "很好")
    (tmp_path / "part.txt").write_text(text, encoding="utf-8")
    refused = run("read_lcsts.py", "part.txt", "valid", "--score", 3, cwd=tmp_path)
    assert refused.returncode == 1 and refused.stderr.startswith(f"part.txt, doc 0: {name} at character ")
    taken = run("read_lcsts.py", "part.txt", "train", cwd=tmp_path)
    assert taken.stdout == "1 pairs (dropped: 1 broken characters)\n"
    assert (tmp_path / "train.summary").read_text(encoding="utf-8") == "好\n"
