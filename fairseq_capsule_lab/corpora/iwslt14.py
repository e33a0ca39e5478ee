"""IWSLT14 German-English, as fairseq's own recipe makes it: scripts/prepare-iwslt14-de-en.sh."""

import shutil
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from capsule_routing.text.preparation import split_into_words
from fairseq_capsule_lab.corpora.archives import unpack
from fairseq_capsule_lab.corpora.parallel import filter_folder
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import LIMIT, UNKNOWN_UP_TO, Corpus, Option, Options, Recipe
from fairseq_capsule_lab.corpora.texts import copy_similar_pairs, parallel_lines
from fairseq_capsule_lab.manifests import count_lines

SCRIPT = "prepare-iwslt14-de-en.sh"
ARCHIVE = "https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz"
LANGUAGES = ("de", "en")
TESTS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
METADATA = (b"<url>", b"<talkid>", b"<keywords>")  # lines of the training text that are no sentences
TAGS = (b"<title>", b"</title>", b"<description>", b"</description>")  # around sentences
LONGEST, RATIO = 175, 1.5
EVERY = 23  # one of so many training pairs is for validation
FROM = "The folder of de-en.tgz; without it the archive is downloaded (MIRROR=URL: from there)."
CODES = "OUT/codes of an earlier run, needed with its --dict to start from a checkpoint of that run."
DICT = "OUT/dict.txt of an earlier run; its files are dict.de.txt and dict.en.txt."


def _corpus(options: Options) -> Corpus:
    return Corpus(LANGUAGES, _raw, joined_dictionary=False)


def _raw(raw: RawTexts) -> None:
    members, words = raw.folder / "members", raw.folder / "words"
    tests = [[f"IWSLT14.{name}.de-en.{language}.xml" for language in LANGUAGES] for name in TESTS]
    tagged = [f"train.tags.de-en.{language}" for language in LANGUAGES]
    unpack([raw.archive(ARCHIVE)], [*tagged, *(name for names in tests for name in names)], members)
    words.mkdir()
    _append_training(raw, [members / name for name in tagged], words)
    _keep_similar(raw, words)
    for names in tests:
        raw.append_held_out("test", [members / name for name in names])
    for file in raw.files("test"):
        text = file.read_text(encoding="utf-8").replace("’", "'")
        file.write_text(text, encoding="utf-8", newline="\n")
    shutil.rmtree(members)
    shutil.rmtree(words)


def _append_training(raw: RawTexts, tagged: list[Path], folder: Path) -> None:
    """Append the training text without metadata and tags, by way of files in a folder."""
    texts = [folder / file.name for file in tagged]
    with ExitStack() as stack:
        outputs = [stack.enter_context(open(text, "wb")) for text in texts]
        for _, pair in parallel_lines(tagged):
            if any(tag in line for tag in METADATA for line in pair):
                continue
            for line, output in zip(pair, outputs):
                for tag in TAGS:
                    line = line.replace(tag, b"")
                output.write(line + b"\n")
    raw.append(*texts)


def _keep_similar(raw: RawTexts, words: Path) -> None:
    """Keep the training pairs that are not too long and of similar length in words; every 23rd is for validation."""
    with open(words / "log", "wb") as log:
        filter_folder(partial(split_into_words, settings={"script": SCRIPT}), raw.folder, words, log)
    tokenised, kept = ([words / f"{name}.{language}" for language in LANGUAGES] for name in ("train", "kept"))
    copy_similar_pairs(tokenised, kept, LONGEST, RATIO, instead=raw.files("train"))
    raw.note_part("train and valid", f"{count_lines(kept[0])} pairs of 1 to {LONGEST} words, ratio {RATIO}")
    for source, train, valid in zip(kept, raw.files("train"), raw.files("valid")):
        with open(source, "rb") as lines, open(train, "wb") as rest, open(valid, "wb") as held_out:
            for number, line in enumerate(lines, 1):
                (rest if number % EVERY else held_out).write(line)


DE_EN = Recipe(
    script=SCRIPT,
    title="Prepare IWSLT14 German-English, 0.16M pairs, as fairseq's own recipe makes it, and binarise it for fairseq, "
    "in OUT/bin.",
    corpus=_corpus,
    options=[
        Option("from", Path, "DIR", FROM),
        LIMIT,
        Option("merges", int, "N", "Merges of subword-nmt.", 10_000),
        Option("codes", str, "FILE", CODES),
        Option("dict", str, "FILE", DICT),
        UNKNOWN_UP_TO,
    ],
    notes="Words are tokenised (XML escapes kept) and lower-cased; punctuation is not normalised. Training pairs have "
    "1 to 175 words and ratio 1.5, every 23rd of them is for validation. The merges are learnt from both languages "
    "together; each language has its own dictionary. In the test set ' replaces ’.",
    results={
        "OUT/raw": "the original text and references for sacreBLEU; OUT/tokenised and OUT/bpe: its later stages",
        "OUT/codes, OUT/dict.de.txt, OUT/dict.en.txt": "the merges and the dictionaries",
    },
    sets="train, valid, test (dev2010, TEDX dev2012, tst2010, tst2011 and tst2012)",
)
