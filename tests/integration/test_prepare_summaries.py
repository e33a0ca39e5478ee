"""The complete `scripts/prepare-headlines.sh` and `scripts/prepare-lcsts.sh`.

The tests of the other scripts cover what they share.
"""

import json

import pytest

from capsule_routing.text.folders import settings_of
from fairseq_capsule_lab.corpora.embedded import draw_splits
from tests.integration.preparing import Workplace, check_reading, read

STAGES = ["raw", "characters", "bin", "dict.txt", "manifest.json"]
SIZES = {"train": 60, "valid": 6, "test": 7}
LANGUAGES = ("text", "summary")


def loaded(out, split, language):
    """Return the binarised lines as text."""
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(out / "bin" / f"dict.{language}.txt"))
    data = data_utils.load_indexed_dataset(str(out / "bin" / f"{split}.text-summary.{language}"), dictionary)
    return [dictionary.string(line) for line in data]


# --- the embedded corpus ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def headlines(tmp_path_factory):
    options = [word for split, size in SIZES.items() for word in (f"--{split}", size)]
    return Workplace(tmp_path_factory.mktemp("headlines"), "prepare-headlines.sh").prepared(*options)


def test_every_stage_has_the_expected_headlines(headlines):
    for split, pairs in draw_splits("headlines", SIZES).items():
        for language, lines in zip(LANGUAGES, zip(*pairs)):
            assert read(headlines.out / "raw" / f"{split}.{language}") == list(lines)
            characters = read(headlines.out / "characters" / f"{split}.{language}")
            assert characters == [" ".join(line.replace(" ", "▁")) for line in lines]
    assert read(headlines.out / "bin" / "dict.summary.txt") == read(headlines.out / "dict.txt")
    check_reading(headlines.out)


# --- LCSTS ------------------------------------------------------------------------------------------------------------

# score, text, summary
PART_I = [(None, f"记者今天从第{n}中学了解到,学校将于{n}月开学。", f"第{n}中学{n}月开学") for n in range(1, 13)]
PART_I[0] = (None, "苹果公司\u200b发布了  新款\tApple \u200b Watch。\n价格未定。", "苹果发布 Apple Watch")
PART_II = [(score, f"第{score}号台风今天登陆。", f"台风{score}号登陆") for score in (1, 2, 3, 4, 5)]
PART_II[0] = (1, "", "")  # not needed, so its errors do not matter
PART_III = [(score, f"地铁{score}号线今天开通。", f"地铁{score}号线开通") for score in (5, 2, 3)]


def document(number, score, text, summary):
    label = "" if score is None else f"    <human_label>{score}</human_label>\n"
    return (
        f"<doc id={number}>\n{label}    <summary>\n        {summary}\n    </summary>\n"
        f"    <short_text>\n        {text}\n    </short_text>\n</doc>\n"
    )


def write_part(folder, name, documents):
    text = "".join(document(number, *fields) for number, fields in enumerate(documents))
    (folder / f"PART_{name}.txt").write_text(text, encoding="utf-8")


@pytest.fixture
def archive(tmp_path):
    folder = tmp_path / "LCSTS"
    folder.mkdir()
    for name, documents in (("I", PART_I), ("II", PART_II), ("III", PART_III)):
        write_part(folder, name, documents)
    return folder


@pytest.fixture
def workplace(tmp_path):
    return Workplace(tmp_path, "prepare-lcsts.sh")


def test_every_stage_has_the_expected_text_of_lcsts(workplace, archive):
    out = workplace.prepared("--from", archive).out
    assert [stage for stage in STAGES if (out / stage).exists()] == STAGES
    assert read(out / "raw" / "train.text")[:2] == ["苹果公司发布了 新款 Apple Watch。 价格未定。", PART_I[1][1]]
    assert read(out / "raw" / "train.summary") == [summary for _, _, summary in PART_I]
    assert read(out / "raw" / "valid.summary") == ["台风3号登陆", "台风4号登陆", "台风5号登陆"]
    assert read(out / "raw" / "test.text") == ["地铁5号线今天开通。", "地铁3号线今天开通。"]
    characters = read(out / "characters" / "train.summary")
    assert characters[0] == "苹 果 发 布 ▁ A p p l e ▁ W a t c h"
    assert loaded(out, "train", "summary") == characters
    assert settings_of(out)["vocabulary"] == "3500"
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert [source["name"] for source in manifest["sources"]] == ["PART_I.txt", "PART_II.txt", "PART_III.txt"]


def test_a_smaller_vocabulary_a_limit_and_an_earlier_dictionary_are_used(workplace, archive, tmp_path):
    out = workplace.prepared("--from", archive, "--vocabulary", 9).out
    counts = [int(line.split()[-1]) for line in read(out / "dict.txt")]
    assert len(counts) == 9 and counts == sorted(counts, reverse=True) and min(counts) > 10
    assert "<unk>" in loaded(out, "train", "text")[0]
    process = workplace.prepare("--from", archive, "--vocabulary", 2, "--dict", out / "dict.txt", "again")
    workplace.refused(process, "more than --vocabulary 2: give a larger --vocabulary, or another file")
    process = workplace.prepare("--from", archive, "--limit", 5, "--dict", out / "dict.txt", "again")
    workplace.refused(process, "is unknown to the dictionary; most frequent characters in it: ")
    assert len(read(tmp_path / "again/raw/train.text")) == 5
    assert len(read(tmp_path / "again/raw/valid.text")) == 3


@pytest.mark.parametrize(
    "part, change, wanted",
    [
        ("I", lambda _: document(1, None, "\u200b \t", "好").encode(), "doc 1: no characters in its text or summary"),
        ("III", lambda _: document(0, "good", "好。", "好").encode(), "doc 0: <human_label> is 'good', not a score"),
        ("III", lambda _: document(0, 1, "好。", "好").encode(), "it has no pairs; give a file of LCSTS"),
        ("I", lambda content: content.replace(b"</doc>\n", b"", 1), "doc 0: has no </doc>, so"),
        ("I", lambda content: content.decode().encode("gb18030"), "line 3: not UTF-8 at byte "),
    ],
)
def test_bad_files_are_named(refuses, archive, tmp_path, part, change, wanted):
    file = archive / f"PART_{part}.txt"
    file.write_bytes(change(file.read_bytes()))
    line = refuses("lcsts", "--from", archive, tmp_path / "out")
    assert f"PART_{part}.txt" in line and wanted in line
