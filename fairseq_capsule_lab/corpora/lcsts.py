"""LCSTS (Hu et al. 2015), short Chinese texts and their summaries: scripts/prepare-lcsts.sh."""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from capsule_routing.errors import UserError
from capsule_routing.text.preparation import clean_chinese, compose
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import DICT_FILE, LIMIT, UNKNOWN_UP_TO, Corpus, Option, Options, Recipe
from fairseq_capsule_lab.corpora.segments import BROKEN, require_unbroken
from fairseq_capsule_lab.corpora.texts import counts, decode

PARTS = {"train": "PART_I.txt", "valid": "PART_II.txt", "test": "PART_III.txt"}
FROM = "The folder of PART_I.txt, PART_II.txt and PART_III.txt, which its authors distribute on application."
VOCABULARY = "The largest number of characters in the dictionary; rarer ones become <unk>."
LEAST = 3  # the score of a validation or test pair. PART I has no scores
FIELD = re.compile(r"<(human_label|summary|short_text)>")
OPENED = re.compile(r"\ufeff?\s*<doc id=\"?(\w+)\"?>")


def _corpus(options: Options) -> Corpus:
    vocabulary, dictionary = options["vocabulary"], options["dict"]
    if dictionary:  # fairseq-preprocess takes a dictionary whole
        characters = Path(dictionary).read_bytes().count(b"\n")
        if characters > vocabulary:
            problem = f"{characters} characters, more than --vocabulary {vocabulary}"
            raise UserError(f"--dict {dictionary}: {problem}: give a larger --vocabulary, or another file")
    raw = partial(_raw, folder=Path(options["from"]))
    return Corpus(("text", "summary"), raw, vocabulary=vocabulary)


def _raw(raw: RawTexts, folder: Path) -> None:
    for split, name in PARTS.items():
        least, limit = (0, raw.limit) if split == "train" else (LEAST, 0)
        raw.note_part(name, write_pairs(folder / name, raw.files(split), least, limit))
        raw.note(folder / name)


def write_pairs(path: Path, outputs: Sequence[Path], least: int, limit: int) -> str:
    """Write the cleaned, composed (NFC) pairs of a file of LCSTS, one per line, and return their number as text.

    Args:
        least: the smallest score of a document; 0: all, also those without a score. With one a broken character is an
            error, without one its document is dropped.
        limit: the largest number of pairs; 0: all.
    """
    written = dropped = changed = 0
    with ExitStack() as stack:
        files = [stack.enter_context(open(output, "w", encoding="utf-8", newline="\n")) for output in outputs]
        for name, fields in _documents(path):
            text, summary = (fields.get(field, "") for field in ("short_text", "summary"))
            if least:
                score = clean_chinese(fields.get("human_label", ""))
                if not score.isdecimal():
                    raise UserError(f"{path}, doc {name}: <human_label> is '{score}', not a score: fix it")
                if int(score) < least:
                    continue
                require_unbroken(f"{path}, doc {name}", text + summary)
            elif BROKEN.search(text + summary):
                dropped += 1
                continue
            cleaned = clean_chinese(text), clean_chinese(summary)
            if not all(cleaned):
                raise UserError(f"{path}, doc {name}: no characters in its text or summary: remove the doc")
            pair = tuple(map(compose, cleaned))
            changed += pair != cleaned
            for line, file in zip(pair, files):
                file.write(f"{line}\n")
            written += 1
            if written == limit:
                break
    if not written:
        raise UserError(f"{path}: it has no pairs; give a file of LCSTS")
    return counts(written, f"{dropped} broken characters" if dropped else "", changed)


def _documents(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (id, fields) of each document. The file is a sequence of documents, not one XML document:

    <doc id=0>
        <human_label>5</human_label>      only PART II and III
        <summary>
            …
        </summary>
        <short_text>
            …
        </short_text>
    </doc>
    """
    name: str | None = None
    content: list[str] = []
    with open(path, "rb") as file:
        for number, encoded in enumerate(file, 1):
            line = decode(path, number, encoded)
            opened = OPENED.match(line)
            if opened and name is None:
                name, content = opened[1], []
            elif opened:
                break
            elif name is not None and line.strip() == "</doc>":
                yield name, _fields("".join(content))
                name = None
            else:
                content.append(line)
    if name is not None:
        raise UserError(f"{path}, doc {name}: has no </doc>, so the file may be incomplete; fetch it again")


def _fields(document: str) -> dict[str, str]:
    """Return the text of the fields that have an end, by name. Tags inside a field are text."""
    fields, end = {}, 0
    for tag in FIELD.finditer(document):
        closed = document.find(f"</{tag[1]}>", tag.end())
        if tag.start() >= end and closed >= 0:
            fields[tag[1]], end = document[tag.end() : closed], closed
    return fields


LCSTS = Recipe(
    script="prepare-lcsts.sh",
    title="Prepare LCSTS, short Chinese texts and their summaries, from its own files, and binarise it for fairseq, in "
    "OUT/bin.",
    corpus=_corpus,
    options=[
        Option("from", Path, "DIR", FROM, required=True),
        LIMIT,
        Option("vocabulary", int, "N", VOCABULARY, 3500),
        DICT_FILE,
        UNKNOWN_UP_TO,
    ],
    notes="PART I is the training set. The validation and test sets are the pairs of PART II and PART III that people "
    "gave a score of 3 to 5 (8,685 and 725). Control and format characters are dropped, white space becomes single "
    "spaces. The tokens are characters. Source and target are called `text` and `summary` and share a dictionary.",
    results={
        "OUT/raw": "the cleaned text and references for ROUGE; OUT/characters: its next stage; OUT/dict.txt",
    },
)
