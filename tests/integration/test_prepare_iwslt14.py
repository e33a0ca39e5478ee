"""scripts/prepare-iwslt14-de-en.sh on a tiny archive: fairseq's own recipe."""

import pytest

from fairseq_capsule_lab.cli import main
from tests.integration.archives import pack, sentences, sgm
from tests.integration.preparing import Workplace, check_reading, contents, read

LANGUAGES = ("de", "en")
METADATA = ["<url>http://talks/1</url>", "<keywords>talks</keywords>", "<talkid>1</talkid>"]
TITLES = (["Das „Haus“ – heute", "Er sagt’s: F&E"], ["The “house” – today", "He says it’s R&D"])
DROPPED = (["", "so " * 176, "Eins zwei drei vier"], ["", "so " * 176, "One two"])  # four words and two
SETS = {"TED.dev2010": 2, "TEDX.dev2012": 3, "TED.tst2010": 4, "TED.tst2011": 5, "TED.tst2012": 6}
LAST = "It’s 5 o'clock &amp; late."  # of the test set


@pytest.fixture(scope="module")
def training():
    """The sentences that are kept, by language, in their order."""
    return {
        language: [*titles, *sentences(language, 48, 1), "So " * 175] for language, titles in zip(LANGUAGES, TITLES)
    }


@pytest.fixture(scope="module")
def prepared(training, tmp_path_factory):
    place = Workplace(tmp_path_factory.mktemp("iwslt14"), "prepare-iwslt14-de-en.sh")
    members = {}
    for language, kind, dropped in zip(LANGUAGES, ("src", "ref"), DROPPED):
        title, description, *rest = training[language]
        tagged = [f"<title>{title}</title>", f"<description>{description}</description>"]
        lines = [*METADATA, *tagged, *rest[:10], *dropped, *METADATA, *rest[10:]]
        members[f"de-en/train.tags.de-en.{language}"] = "".join(f"{line}\n" for line in lines).encode()
        for seed, (name, count) in enumerate(SETS.items()):
            content = sgm(kind, language, count, seed).replace(b"<p>", b"<url>http://talks/2</url>\n<title>T</title>")
            if name == "TED.tst2012":
                content = content.replace(b"</p>", f'<seg id="7"> {LAST} </seg>\n</p>'.encode())
            members[f"de-en/IWSLT14.{name}.de-en.{language}.xml"] = content
    pack(place.root, "de-en.tgz", members)
    process = place.prepared("--from", ".")
    process.place = place
    return process


def test_every_stage_is_that_of_the_recipe(prepared, training, capsys):
    out = prepared.out
    for language, texts in training.items():
        kept = [line.rstrip() for line in texts]
        raw = {split: [line.rstrip() for line in read(out / f"raw/{split}.{language}")] for split in ("train", "valid")}
        assert raw == {"valid": [kept[22], kept[45]], "train": [*kept[:22], *kept[23:45], *kept[46:]]}
        tests = [line for seed, count in enumerate(SETS.values()) for line in sentences(language, count, seed)]
        assert read(out / f"raw/test.{language}") == [*tests, "It's 5 o'clock & late."]
        for split in ("train", "valid", "test"):
            tokenised, bpe = (read(out / stage / f"{split}.{language}") for stage in ("tokenised", "bpe"))
            assert [line.replace("@@ ", "") for line in bpe] == tokenised
            assert (out / f"bin/{split}.de-en.{language}.idx").exists()
        words = {word.split()[0] for word in read(out / f"dict.{language}.txt") if "madeup" not in word}
        assert words == {word for line in read(out / f"bpe/train.{language}") for word in line.split()}  # its own
    assert read(out / "tokenised/train.de")[:2] == ["das „ haus “ – heute", "er sagt ’ s : f &amp; e"]
    assert read(out / "tokenised/train.en")[:2] == ["the “ house ” – today", "he says it ’ s r &amp; d"]
    assert read(out / "tokenised/test.en")[-1] == "it &apos;s 5 o &apos;clock &amp; late ."
    check_reading(out)
    assert main(["check-data", str(out), "--most-overlap", "100"]) == 0, capsys.readouterr().out


def test_files_of_an_earlier_run_are_taken(prepared):
    place, before = prepared.place, contents(prepared.out)
    given = place.prepare("--from", ".", "--codes", "out/codes", "--dict", "out/dict.txt", "given")
    assert given.returncode == 0, given.errors
    after = contents(place.root / "given")
    assert {name for name in before if before[name] != after[name]} == {"settings.json", "manifest.json"}
    words = ["--from", ".", "--codes", "out/codes", "--dict", "out/dict.txt", "out"]
    place.refused(place.prepare(*words), "was prepared with codes learnt,dict learnt learnt")
