"""The steps that scripts/prepare-wmt*.sh share with the preparations in Python."""

import io
import json
import tarfile

import pytest

from capsule_routing.text.languages import WITHOUT_SPACES
from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.manifests import fingerprint

ADDRESS = "https://example.org/news.tar"
PIECES = [f"{ADDRESS}.0", f"{ADDRESS}.1"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIRROR", raising=False)
    return tmp_path


@pytest.fixture
def step(capsys):
    """Run a step; return its exit status and what it printed."""

    def run(*words):
        status = main(["filter", *map(str, words)])
        said = capsys.readouterr()
        return status, said.out.splitlines() or said.err.splitlines()

    return run


def test_settings_are_options_and_fingerprints_of_files(place, step):
    (place / "codes.zh").write_text("#version: 0.2\n")
    for name in ("codes.en", "dict.zh.txt", "dict.en.txt"):
        (place / name).write_bytes((place / "codes.zh").read_bytes())
    digest = fingerprint(b"#version: 0.2\n")
    given = ["script=mine.sh", "from=", "limit=", "bpe=subword-nmt", "ratio=1.50", "share=separate", "unknown-up-to=5"]
    common = {"script": "mine.sh", "from": "the addresses in this script", "limit": "none"}
    common |= {"ratio": "1.50", "share": "separate"}
    for codes, files in (("codes", "dict.txt"), f"{digest} {digest}"), (("", ""), "learnt learnt"):
        words = [*given, f"codes={codes[0]}", f"dict={codes[1]}"]
        status, printed = step("settings", "zh", "en", *words)
        assert (status, json.loads("".join(printed))) == (0, {**common, "codes": files, "dict": files})


@pytest.mark.parametrize(
    ("content", "dictionary", "reason"),
    [
        ("#version: 0.2\n", "", "--codes and --dict belong together"),
        ("#version: 0.2\n", "missing.txt", "missing.txt: No such file"),
        ("a b\n", "dict.txt", "--codes codes: not codes of subword-nmt"),
        ("#version: 0.2\n", "dict.txt", "--dict dict.txt: #fairseq:overwrite: remove the symbol"),
    ],
)
def test_files_of_an_earlier_run_that_are_none_are_refused(place, step, content, dictionary, reason):
    (place / "codes").write_text(content)
    (place / "dict.txt").write_text("<s> 1 #fairseq:overwrite\n")
    status, (line,) = step("settings", "en", "de", "share=joint", "codes=codes", f"dict={dictionary}")
    assert status == 1 and reason in line


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_pairs_are_taken_from_the_pieces_of_an_archive_up_to_the_limit(place, step, mode):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as archive:
        for name, lines in (("a/news.en", b"one\ntwo\n\nfour\n"), ("a/news.de", b"eins\nzwei\ndrei\nvier\n")):
            entry = tarfile.TarInfo(name)
            entry.size = len(lines)
            archive.addfile(entry, io.BytesIO(lines))
    packed = content.getvalue()
    for name, piece in (("news.tar.0", packed[:99]), ("news.tar.1", packed[99:])):
        (place / name).write_bytes(piece)
    words = ["--from", place, "raw", "en", "de", "news.en", "news.de", *PIECES]
    assert step("training-pairs", *words) == (0, ["news.en\t3 pairs (dropped: 1 empty in news.en)"])
    assert step("training-pairs", "--limit", 4, *words) == (0, ["news.en\t1 pairs"])
    assert step("training-pairs", "--limit", 4, *words) == (0, [])
    assert (place / "raw/train.de").read_text() == "eins\nzwei\nvier\neins\n"
    sums = [
        f"{fingerprint(piece)}  {name}" for name, piece in (("news.tar.0", packed[:99]), ("news.tar.1", packed[99:]))
    ]
    noted = (place / "raw/SHA256SUMS").read_text().splitlines()
    assert [f"{line[:12]}{line[64:]}" for line in noted] == sums
    (place / "news.tar.1").write_bytes(packed[99 : 1540 if mode == "w" else -9])
    status, (line,) = step("held-out-pairs", "valid", *words)
    assert status == 1 and "news.tar.1: " in line


def test_warnings_name_long_sentences_and_parts_of_which_much_is_missing(place, step):
    for name, content in (
        ("raw/PARTS", "a\t9 pairs\nb\t1 pairs\t8 of 9 pairs were left out\n"),
        ("bpe/valid.en", f"short\n{'long ' * 1025}\n{'long ' * 1025}\n"),
        ("bpe/train.en", "long " * 1025),
    ):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(content)
    status, (first, second) = step("warnings", ".", "bpe")
    assert status == 0 and first.endswith("warning: 8 of 9 pairs were left out")
    assert f"warning: {place}/bpe/valid.en, line 2: over 1,024 tokens" in second


@pytest.mark.parametrize("script", [script for script, languages in WITHOUT_SPACES.items() if languages])
def test_generate_sh_has_a_tokeniser_of_bleu_only_where_moses_finds_words(step, script):
    code = WITHOUT_SPACES[script].split()[0]
    for language in (code, f"en_{script}"):
        status, (line,) = step("bleu-tokenizer", language)
        assert status == 1 and line.endswith("so Moses makes no words of it; take scripts/evaluate.sh")
    assert step("bleu-tokenizer", f"{code}_Latn") == (0, ["13a"])
