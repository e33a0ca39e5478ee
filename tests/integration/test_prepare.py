"""`scripts/prepare.sh` on typical texts of users. The tests of the other scripts cover what they share."""

import gzip
import json
import os
import random
import signal

import pytest

from capsule_routing.text.folders import settings_of
from capsule_routing.text.languages import is_chinese, rules_of
from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.corpora.held_out import hold_out
from fairseq_capsule_lab.corpora.raw import RawTexts
from tests.integration.commands import PATH, wait_for
from tests.integration.preparing import Workplace, check_reading, contents, read

CHINESE = ["我", "爱", "北京", "天安门", "他", "说", "今天", "天气", "很", "好", "，"]
ENGLISH = "I love the capital don't he says today weather is very good , man".split()
UKRAINIAN = "пам'ять комп'ютер об'єм зв'язок слово книга дім читає".split()
ARABIC = "كتاب قلم بيت ولد بنت كبير صغير يقرأ ، ؟".split()
LINES = 150
HELD_OUT = ["--valid-lines", 6, "--test-lines", 5]
# Numbers of unusable lines in the training text.
EMPTY_SOURCE, EMPTY_TARGET, LONG = 3, 7, 11


def sentences(words, between, seed):
    rng = random.Random(seed)
    # Each sentence contains its number, so that all differ and a test can see which translation is beside it.
    return [between.join([*rng.choices(words, k=rng.randint(4, 12)), str(1000 + n)]) for n in range(LINES)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Chinese in a gzipped file, English with a byte order mark and Windows line ends, and Arabic."""
    folder = tmp_path_factory.mktemp("texts")
    chinese, english, arabic = (
        sentences(words, between, seed)
        for seed, (words, between) in enumerate([(CHINESE, ""), (ENGLISH, " "), (ARABIC, " ")])
    )
    chinese[EMPTY_SOURCE] = arabic[EMPTY_SOURCE] = ""
    english[EMPTY_TARGET] = "  \t"
    english[LONG] = " ".join(["word"] * 10_000)
    (folder / "my.zh.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in chinese).encode()))
    (folder / "my.en").write_bytes(b"\xef\xbb\xbf" + "".join(f"{line}\r\n" for line in english).encode())
    (folder / "my.ar").write_text("".join(f"{line}\n" for line in arabic), encoding="utf-8")
    (folder / "short.en").write_text("one\n")
    (folder / "broken.en").write_bytes(b"one\xff\n")
    (folder / "broken.ar").write_text("one\n")
    (folder / "codes").write_text("#version: 0.2\na b\n")
    (folder / "twice.txt").write_text("<s> 1 #fairseq:overwrite\n")
    (folder / "symbol.ar").write_text("".join(f"</s> </s> {word}\n" for word in "abc"))  # so often that it is merged
    (folder / "symbol.en").write_text("a\nb\nc\n")
    (folder / "wide.ar").write_text("".join(f"{line}\n" for line in arabic), encoding="utf-16")
    return folder


@pytest.fixture(scope="module")
def pieces(texts, tmp_path_factory):
    """Chinese and English, cut into words and then into pieces of SentencePiece."""
    place = Workplace(tmp_path_factory.mktemp("pieces"), "prepare.sh")
    options = [
        "--source",
        "zh",
        "--target",
        "en",
        "--train",
        texts / "my.zh.gz",
        texts / "my.en",
        *HELD_OUT,
        "--merges",
        120,
    ]
    return place.prepared(*options, "--bpe", "sentencepiece", "--tokenise", "jieba")


@pytest.fixture
def workplace(tmp_path):
    return Workplace(tmp_path, "prepare.sh")


def numbers(lines):
    return [line.strip()[-4:] for line in lines]


def test_pairs_stay_parallel_and_none_is_lost(pieces):
    everything = []
    for split in ("train", "valid", "test"):
        source, target = (read(pieces.out / "raw" / f"{split}.{language}") for language in ("zh", "en"))
        pairs = [(a, b) for a, b in zip(numbers(source), numbers(target)) if b != "word"]
        assert all(a == b for a, b in pairs)
        everything += numbers(source)
    assert [len(read(pieces.out / "raw" / f"{split}.en")) for split in ("valid", "test")] == [6, 5]
    assert sorted(everything) == [str(1000 + n) for n in range(LINES) if n not in (EMPTY_SOURCE, EMPTY_TARGET)]
    assert "my.zh.gz\t148 pairs (dropped: 1 empty in my.en, 1 empty in my.zh.gz)" in read(pieces.out / "raw" / "PARTS")


def test_every_stage_has_the_expected_text(pieces, capsys):
    """Marks and line ends are removed, long lines left out, pieces join to the text."""
    from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE, SentencepieceConfig

    for stage in ("raw", "tokenised", "bpe", "clean"):
        for file in (pieces.out / stage).glob("*.??"):
            assert "\ufeff" not in file.read_text() and "\r" not in file.read_text()
    clean = [line.replace(" ", "") for line in read(pieces.out / "clean/train.en")]
    assert 100 < len(clean) < 148 and not any("word" * 9 in line for line in clean)
    assert any("天气" in line.split() for line in read(pieces.out / "tokenised/train.zh"))
    bpe = SentencepieceBPE(SentencepieceConfig(sentencepiece_model=str(pieces.out / "sentencepiece.model")))
    for language in ("zh", "en"):
        words, cut = (read(pieces.out / stage / f"valid.{language}") for stage in ("tokenised", "bpe"))
        assert [bpe.encode(line) for line in words] == cut
        assert [bpe.decode(line) for line in cut] == words
    assert len(read(pieces.out / "dict.txt")) <= 120 + 6
    # check-data knows which text is binarised, and compares both. A tiny text has unknown pieces.
    assert main(["check-data", str(pieces.out), "--most-unknown", "100"]) == 0, capsys.readouterr().out
    check_reading(pieces.out)


def test_any_file_name_separate_merges_and_an_earlier_run_are_accepted(texts, workplace):
    files = ["--source", "ar", "--target", "en_GB", "--train", texts / "my.ar", texts / "my.en"]
    options = [*files, *HELD_OUT, "--merges", 40, "--share", "separate", "--lower", "--tokenise", "moses"]
    first = workplace.prepared(*options)
    assert {file.name for file in (first.out / "bin").glob("dict.*")} == {"dict.ar.txt", "dict.en_GB.txt"}
    assert (first.out / "bin/train.ar-en_GB.ar.bin").exists()
    assert not any(line != line.lower() for line in read(first.out / "tokenised/train.en_GB"))
    assert any("don &apos;t" in line for line in read(first.out / "tokenised/train.en_GB"))
    assert len(read(first.out / "clean/train.ar")) == len(read(first.out / "raw/train.ar")) - 1
    earlier = ["--codes", first.out / "codes", "--dict", first.out / "dict.txt", "--seed", 2]
    workplace.stub("fairseq-preprocess", "exit 1")
    second = workplace.prepare(*options, *earlier, "second")
    workplace.refused(second, "stage 'bin' failed")
    for language in ("ar", "en_GB"):
        codes = f"codes.{language}"
        assert (workplace.root / "second" / codes).read_bytes() == (first.out / codes).read_bytes()
        valid = [
            set(numbers(read(place / f"raw/valid.{language}"))) for place in (first.out, workplace.root / "second")
        ]
        assert valid[0] != valid[1]


def test_protected_words_belong_to_the_first_preparation(tmp_path, workplace, refuses):
    lines = {"en": "<BT> a cat no. {}", "de": "eine Katze Nr. {}"}
    for language, line in lines.items():
        (tmp_path / f"my.{language}").write_text("".join(line.format(n) + "\n" for n in range(60)))
    files = ["--source", "en", "--target", "de", "--train", tmp_path / "my.en", tmp_path / "my.de", *HELD_OUT]
    out = workplace.prepared(*files, "--merges", 20, "--protect", "<BT>").out
    assert any(line.startswith("<BT> ") for line in read(out / "dict.txt"))
    assert all(line.startswith("<BT> ") for line in read(out / "bpe/train.en"))
    check_reading(out)
    earlier = ["--codes", out / "codes", "--dict", out / "dict.txt"]
    assert "run of --dict protects <BT>: give --protect for each" in refuses("own", *files, *earlier, tmp_path / "a")
    more = ["--protect", "<BT>", "--protect", "<2de>"]
    wanted = "--protect <2de>: not in dict.txt: a word can be protected only from the first preparation on"
    assert wanted in refuses("own", *files, *earlier, *more, tmp_path / "a")
    missing = workplace.prepare(*files, "--merges", 20, *more, "b")
    workplace.refused(missing, wanted.replace("dict", "dict.de"))
    assert "--protect takes a word such as <BT>, " in refuses("own", *files, "--protect", "<s>", tmp_path / "a")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ("{pair} --train {my} {held} --valid {my}", "--valid and --valid-lines: give one of the two"),
        ("{pair} --train {texts}/my {held}", "my: no such file; give the file of the source language, then"),
        ("{pair} --train {texts}/my.en {texts}/my.ar {held}", "my.en: the text of en; give that of ar first"),
        ("{pair} --train http://a/x http://b/x {held}", "http://a/x has the same file name; download one of the two"),
        ("{pair} --train {texts}/my.ar {texts}/short.en {held}", "my.ar has 150 lines, "),
        ("{pair} --train {texts}/broken.ar {texts}/broken.en {held}", "no pair of the training text can be used"),
        ("{pair} --train {my} --valid-lines 90 --test-lines 70", "160 cannot be held out"),
        ("{pair} --train {my} --valid {my} --test-lines 7", "my.ar, line 4: empty, but not"),
        ("{pair} --train {texts}/wide.ar {texts}/my.en {held}", "wide.ar: UTF-16, not UTF-8; convert"),
        ("{pair} --train {my} {held} --codes {texts}/my.en", "--codes and --dict belong together"),
        ("{pair} --train {my} {held} --codes {texts}/my.en --dict {texts}/my.en", "my.en: not codes of subword-"),
        (
            "{pair} --train {my} {held} --codes {texts}/codes --dict {texts}/twice.txt",
            "remove the symbol that is there",
        ),
    ],
)
def test_wrong_input_is_named(texts, tmp_path, refuses, arguments, wanted):
    held, my = " ".join(map(str, HELD_OUT)), f"{texts}/my.ar {texts}/my.en"
    given = arguments.format(pair="--source ar --target en", held=held, texts=texts, my=my)
    assert wanted in refuses("own", *given.split(), tmp_path / "out")
    assert not (tmp_path / "out/raw").exists()


def test_control_symbols_of_fairseq_are_no_tokens(texts, workplace):
    options = ["--source", "ar", "--target", "en", "--train", texts / "symbol.ar", texts / "symbol.en"]
    options += ["--tokenise", "none", "--merges", 9, "--valid-lines", 1, "--test-lines", 1]
    workplace.refused(workplace.prepare(*options, "out"), "</s> is a control symbol of fairseq: replace it in the text")


def test_a_text_of_another_encoding_is_a_warning_of_prepare_and_check_data(workplace, capsys):
    for language, word, other in (("en", "summer", "a"), ("fr", "été", "un")):
        lines = "".join(f"{word if n % 3 else other} {1000 + n}\n" for n in range(60))
        (workplace.root / f"my.{language}").write_bytes(lines.encode("latin-1"))
    options = [
        "--source",
        "en",
        "--target",
        "fr",
        "--train",
        "my.en",
        "my.fr",
        *HELD_OUT,
        "--tokenise",
        "none",
        "--merges",
        20,
    ]
    process = workplace.prepared(*options, "--max-length", "none")
    assert len(read(process.out / "bpe/train.en")) == len(read(process.out / "raw/train.en"))
    assert not (process.out / "clean").exists()
    counts = "20 pairs (dropped: 40 not UTF-8 in my.fr)"
    assert f"\n  my.en: {counts}\n" in process.output
    warning = "40 of 60 pairs were left out, 40 of them not UTF-8 in my.fr: convert it, iconv -f LATIN1 -t UTF-8 my.fr"
    assert process.errors == f"prepare.sh: warning: {warning}\n"
    manifest = json.loads((process.out / "manifest.json").read_text(encoding="utf-8"))
    assert {"name": "my.en", "taken": counts, "warning": warning} in manifest["texts"]
    main(["check-data", str(process.out), "--most-unknown", "100"])
    assert f"note: {warning}\n" in capsys.readouterr().out


def test_sentencepiece_is_the_default_where_moses_damages_a_language(texts, workplace):
    lines = "".join(f"{line}\n" for line in sentences(UKRAINIAN, " ", 3))
    (workplace.root / "my.uk").write_text(lines, encoding="utf-8")
    files = ["--source", "uk", "--target", "en", "--train", "my.uk", texts / "my.en"]
    options = [*files, *HELD_OUT, "--merges", 120]
    first = workplace.prepared(*options)
    assert "Moses damages uk (" in first.output and "so SentencePiece is used for both languages" in first.output
    settings = settings_of(first.out)
    assert (settings["bpe"], settings["tokenise"]) == ("sentencepiece", "none")
    before = contents(first.out)
    again = workplace.prepared(*options)
    assert "Moses" not in again.output and contents(first.out) == before
    kept = workplace.prepare(*options, "--tokenise", "moses", "out")
    workplace.refused(kept, "out was prepared with bpe sentencepiece,tokenise none, not tokenise moses")
    workplace.fail("tokenised")
    forced = workplace.prepare(*options, "--tokenise", "moses", "forced")
    assert forced.errors.startswith("prepare.sh: warning: Moses damages uk (")
    assert settings_of(workplace.root / "forced")["tokenise"] == "moses"


def test_an_interruption_says_that_the_same_command_resumes(texts, workplace):
    workplace.path = f"{workplace.stubs}:{PATH}"  # the command handles the signal itself
    workplace.stub_library("sacremoses", "import pathlib, time; pathlib.Path('begun').touch(); time.sleep(60)")
    options = ["--source", "ar", "--target", "en", "--train", texts / "my.ar", texts / "my.en", *HELD_OUT]
    process = workplace.start("scripts/prepare.sh", *options, "out")
    wait_for(workplace.root / "begun", process)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and errors == "prepare.sh: interrupted; the same command resumes\n"


def test_texts_at_addresses_are_downloaded_or_taken_from_a_folder(texts, tmp_path, refuses):
    options = ["own", "--source", "zh", "--target", "en", *HELD_OUT, "--tokenise", "moses", "--train"]
    addresses = [(texts / name).as_uri() for name in ("my.zh.gz", "my.en")]
    assert "stage 'tokenised' failed" in refuses(*options, *addresses, tmp_path / "out")
    assert (tmp_path / "out/download/my.en").read_bytes() == (texts / "my.en").read_bytes()
    addresses = [f"https://127.0.0.1:9/{name}" for name in ("my.zh.gz", "my.en")]
    assert "out was prepared with other train text: delete it" in refuses(*options, *addresses, tmp_path / "out")
    assert "stage 'tokenised' failed" in refuses(*options, *addresses, "--from", texts, tmp_path / "second")
    for name in ("raw/train.zh", "raw/test.en", "raw/PARTS"):
        assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_the_hash_of_each_download_is_noted_once(tmp_path):
    """One name is the beginning of another."""
    raw = RawTexts(tmp_path / "raw", ("en", "de"), find=None, limit=0)
    for name in ("a.en.gz", "a.en", "a.en"):
        (tmp_path / name).write_text(name)
        raw.note(tmp_path / name)
    assert [line[66:] for line in read(tmp_path / "raw/SHA256SUMS")] == ["a.en.gz", "a.en"]


@pytest.mark.parametrize("language", ["zh", "cmn", "ZH", "zh_Hans", "Cmn_CN", "ja", "chin", "en"])
def test_the_languages_that_are_cut_as_chinese_are_scored_as_chinese(language):
    assert is_chinese(language) == (rules_of(language) == "zh")


def held_out(folder, pairs, seed=1, **sizes):
    folder.mkdir(exist_ok=True)
    for language, lines in zip(("a", "b"), zip(*pairs)):
        (folder / f"train.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    hold_out(folder, ("a", "b"), sizes, seed)
    return {
        split: list(zip(read(folder / f"{split}.a"), read(folder / f"{split}.b")))
        for split in ("train", "valid", "test")
        if (folder / f"{split}.a").exists()
    }


def test_sentences_of_at_most_500_characters_are_held_out(tmp_path):
    pairs = [("a" * 500, "b" * 500), ("c" * 501, "d"), ("e", "f" * 501)]
    assert held_out(tmp_path / "texts", pairs, valid=1) == {"train": pairs[1:], "valid": pairs[:1]}


def test_no_source_sentence_is_on_both_sides_whatever_the_order(tmp_path):
    rng = random.Random(1)
    pairs = [(rng.choice(["A  dog", "a dog", "cat", "Cat "]) + f" {rng.randint(0, 40)}", str(n)) for n in range(300)]
    pairs += [("long " * 200, "x"), ("short", "y " * 400)]
    first = held_out(tmp_path / "first", pairs, valid=9, test=7)
    key = {split: {" ".join(source.lower().split()) for source, _ in first[split]} for split in first}
    assert (len(key["valid"]), len(key["test"])) == (9, 7) == (len(first["valid"]), len(first["test"]))
    assert not key["valid"] & key["test"] and not key["train"] & (key["valid"] | key["test"])
    assert first["train"] == [pair for pair in pairs if " ".join(pair[0].lower().split()) in key["train"]]
    rng.shuffle(pairs)
    second = held_out(tmp_path / "second", pairs, valid=9, test=7)
    assert {" ".join(source.lower().split()) for source, _ in second["valid"]} == key["valid"]
    third = held_out(tmp_path / "third", pairs, valid=9, test=7, seed=2)
    assert {" ".join(source.lower().split()) for source, _ in third["valid"]} != key["valid"]
