"""The complete scripts that prepare the corpora of WMT and NIST, on tiny archives."""

import json
import re

import pytest

from capsule_routing.text.folders import preparations
from fairseq_capsule_lab.cli import main
from tests.integration.archives import make_workplace
from tests.integration.preparing import check_reading, contents, read

# name → languages, options, and the numbers of pairs: raw training set, cleaned training set, other sets
EXPECTED = {
    "wmt14-en-de": (("en", "de"), [], 30, 29, {"valid": 4, "test": 5}),
    "wmt14-en-fr": (("en", "fr"), [], 42, 42, {"valid": 7, "test": 5}),
    "wmt17-zh-en": (("zh", "en"), ["--cwmt", "cwmt"], 70, 69, {"valid": 4, "valid1": 4, "test": 5}),
    "wmt16-en-ro": (("en", "ro"), [], 21, 21, {"valid": 4, "test": 5}),
    "nist-zh-en": (("zh", "en"), [], 24, 24, {"valid": 3, "test": 4, "test1": 5, "test2": 6}),
}
SEPARATE = {"wmt17-zh-en", "nist-zh-en"}


def stages(name):
    of_sides = ["codes.zh", "codes.en", "dict.zh.txt", "dict.en.txt"] if name in SEPARATE else ["codes", "dict.txt"]
    half = len(of_sides) // 2
    return ["raw", "tokenised", "clean", *of_sides[:half], "bpe", "bin", *of_sides[half:], "manifest.json"]


def options(name):
    return ["--from", "archives", *EXPECTED[name][1]]


@pytest.fixture(scope="module", params=EXPECTED)
def prepared(request, tmp_path_factory):
    workplace = make_workplace(request.param, tmp_path_factory.mktemp("prepared"))
    process = workplace.prepared(*options(request.param))
    process.name, process.workplace = request.param, workplace
    return process


def test_every_stage_has_the_expected_pairs(prepared, capsys):
    languages, _, raw, clean, sets = EXPECTED[prepared.name]
    out = prepared.out
    assert [stage for stage in stages(prepared.name) if (out / stage).exists()] == stages(prepared.name)
    for language in languages:
        assert len(read(out / "raw" / f"train.{language}")) == raw
        assert len(read(out / "bpe" / f"train.{language}")) == clean
        for split, size in sets.items():
            raw_text, tokenised, bpe = (
                read(out / stage / f"{split}.{language}") for stage in ("raw", "tokenised", "bpe")
            )
            assert len(raw_text) == size
            assert [line.replace("@@ ", "") for line in bpe] == tokenised
            assert not any("&" in line and "&amp;" in line for line in raw_text)
            assert (out / "bin" / f"{split}.{'-'.join(languages)}.{language}.idx").exists()
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert sum(int(text["taken"].split()[0]) for text in manifest["texts"]) == raw
    assert manifest["files"].keys() >= {stage for stage in stages(prepared.name)[:-1] if (out / stage).is_file()}
    given = {file.name for file in (prepared.workplace.root / "archives").rglob("*") if file.is_file()}
    assert {source["name"] for source in manifest["sources"]} >= given
    assert main(["check-data", str(out), "--most-overlap", "100"]) == 0, capsys.readouterr().out


# lines of the raw training text, and the tokenised lines
TOKENISED = {
    "wmt14-en-de": ("en", "A well-known\ttab\u200b. ", "A well @-@ known tab ."),
    "wmt14-en-fr": (
        "fr",
        "Petits garçons chantent & hommes sautent.",
        "Petits garçons chantent &amp; hommes sautent .",
    ),
    "wmt16-en-ro": ("ro", "zgomotoși băieţi dorm & bărbaţi sar.", "zgomotosi baieti dorm &amp; barbati sar ."),
    "wmt17-zh-en": ("zh", "吵闹的女孩唱歌狗跑步 & 你。", "吵闹 的 女孩 唱歌 狗 跑步 & 你 。"),
    "nist-zh-en": ("en", "Small men run & boys sleep.", "small men run &amp; boys sleep ."),
}


def test_words_are_tokenised_as_expected_and_raw_text_is_read_so(prepared):
    language, line, words = TOKENISED[prepared.name]
    raw, tokenised = (read(prepared.out / stage / f"train.{language}") for stage in ("raw", "tokenised"))
    assert tokenised[raw.index(line)] == words
    texts = preparations(prepared.out, *EXPECTED[prepared.name][0])
    assert [text.words(line) for text in texts if text.language == language] == [words]
    check_reading(prepared.out)


def test_a_second_run_does_nothing(prepared):
    workplace, out = prepared.workplace, prepared.out
    times = {file: file.stat().st_mtime_ns for file in [out, *out.rglob("*")]}
    workplace.stub("fairseq-preprocess", "exit 1")
    workplace.stub_library("sacremoses", "raise ImportError")
    process = workplace.prepare(*options(prepared.name), "out")
    workplace.unstub()
    assert process.returncode == 0, process.errors
    done = [f"{stage}: done before" for stage in stages(prepared.name)]
    assert process.output.splitlines() == [*done, f"ready: {out}/bin"]
    assert {file: file.stat().st_mtime_ns for file in [out, *out.rglob("*")]} == times


def test_a_held_out_sentence_above_the_positions_of_most_models_is_named(prepared):
    workplace, last = prepared.workplace, prepared.out / "bpe"
    before = {name: (last / name).read_text() for name in (f"{split}.en" for split in ("train", "valid", "test"))}
    try:
        for (name, text), length in zip(before.items(), (2000, 1024, 1025)):
            (last / name).write_text(f"{text}{'a ' * length}\n")
        process = workplace.prepare(*options(prepared.name), "out")
    finally:
        for name, text in before.items():
            (last / name).write_text(text)
    assert process.returncode == 0, process.errors
    (warning,) = (line for line in process.errors.splitlines() if "1,024" in line)
    place = f"bpe/test.en, line {before['test.en'].count(chr(10)) + 1}"
    assert f"{place}: over 1,024 tokens, more than most models have positions: leave it out, or give the" in warning


def test_unknown_text_is_refused_or_accepted(prepared):
    workplace, languages = prepared.workplace, EXPECTED[prepared.name][0]
    again = workplace.root / "again"
    again.mkdir()
    kept = [name for name in stages(prepared.name) if not name.startswith(("bin", "dict", "manifest"))]
    for stage in ("settings.json", *kept):
        (again / stage).symlink_to(prepared.out / stage)
    log = (prepared.out / "bin/preprocess.log").read_text()
    (workplace.root / "log").write_text(re.sub(r"tokens, [0-9.e-]+% replaced", "tokens, 5.01% replaced", log))
    copied = [f"cp {prepared.out}/bin/dict.{language}.txt $folder" for language in languages]
    copied = "; ".join(["folder=${@: -1}", "mkdir $folder", f"cp {workplace.root}/log $folder/preprocess.log", *copied])
    workplace.stub("fairseq-preprocess", copied)
    try:
        process = workplace.prepare(*options(prepared.name), "again")
        workplace.refused(process, "5.01% of ", "unknown to the dictionary", "--unknown-up-to 6")
        process = workplace.prepare(*options(prepared.name), "--unknown-up-to", 6, "again")
        assert process.returncode == 0, process.errors
    finally:
        workplace.unstub()


@pytest.mark.slow
def test_pieces_are_learnt_and_counted_for_each_language(tmp_path):
    workplace = make_workplace("wmt14-en-de", tmp_path)
    pieces = ["--bpe", "sentencepiece-bpe", "--merges", "50", "--share", "separate", "--max-length", "40"]
    out = workplace.prepared("--from", "archives", *pieces).out
    assert not list(out.glob("codes*")) and all((out / f"sentencepiece.{side}.model").exists() for side in ("en", "de"))
    for language in ("en", "de"):
        words, cut = (read(out / stage / f"test.{language}") for stage in ("tokenised", "bpe"))
        assert [line.replace(" ", "").replace("▁", " ").strip() for line in cut] == words
    lengths = [len(line.split()) for line in read(out / "bpe/train.en")]
    assert 0 < len(read(out / "clean/train.en")) < len(lengths) and max(lengths) > 40


@pytest.mark.slow
@pytest.mark.parametrize("prepared", ["wmt17-zh-en"], indirect=True)  # one script in bash; Multi30k is one in Python
def test_a_run_that_is_interrupted_at_any_stage_is_resumed(prepared):
    workplace = prepared.workplace
    out = workplace.root / "interrupted"
    for done, stage in enumerate(stages(prepared.name)):
        workplace.kill_at(stage)
        assert workplace.prepare(*options(prepared.name), "interrupted").returncode == -9, stage
        assert [name for name in stages(prepared.name) if (out / name).exists()] == stages(prepared.name)[:done]
        workplace.unstub()
    process = workplace.prepare(*options(prepared.name), "interrupted")
    assert process.returncode == 0, process.errors
    whole, now = contents(prepared.out), contents(out)
    del whole["manifest.json"], now["manifest.json"]  # it contains the command
    assert now == whole
