"""Read the texts of corpora: plain, gzipped, or the segments of an SGML or XML file."""

import codecs
import gzip
import html
import os
import re
import zlib

from tqdm import tqdm

MOST_LENGTH = 100_000  # characters: a longer line is no sentence, and a tokeniser takes minutes for it
MOST_BYTES = 4 * MOST_LENGTH  # in UTF-8
BLOCK = 1 << 20

TAG = re.compile(r"<(refset|doc|seg)\b([^<>]*)>", re.IGNORECASE)
END = re.compile("</seg>", re.IGNORECASE)
BROKEN = re.compile("[\0\ufffd]")  # NUL, and the replacement character of a wrong conversion


def require_unbroken(place, text):
    """Refuse a text of a validation or test set with a broken character. Training pairs with one are dropped instead.

    Raises:
        ValueError: the text contains NUL or U+FFFD.
    """
    found = BROKEN.search(text)
    if found:
        raise ValueError(f"{place}: U+{ord(found[0]):04X} at character {found.start() + 1}: fix the file")


def decoded(path, number, line):
    """Return a line as text.

    Raises:
        ValueError: the line is not UTF-8.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number}: not UTF-8 at byte {error.start + 1}: convert the file") from None


def read_lines(path):
    """Yield the lines of a text, or the segments of an .sgm or .xml file, as bytes without the line feed.

    A carriage return becomes a space. A byte order mark is removed. Of a line of more than MOST_BYTES, only a beginning
    is yielded that is also longer.
    """
    if path.endswith((".sgm", ".xml")):
        yield from (text.encode() for *_, text in read_segments(path))
        return
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as text:
            for number, line in enumerate(_beginnings(text)):
                line = line if number else line.removeprefix(codecs.BOM_UTF8)
                yield line.removesuffix(b"\n").replace(b"\r", b" ")
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ValueError(f"{path}: not a complete gzip archive: fetch it again") from None


def _beginnings(file):
    """Yield the lines of a file. The rest of a long line is skipped, so that it does not have to fit into memory."""
    while line := file.readline(MOST_BYTES + 10):  # with a byte order mark and the line feed
        yield line
        while not line.endswith(b"\n") and (line := file.readline(BLOCK)):
            pass


def is_long(line):
    """Whether a line, as bytes, has more than MOST_LENGTH characters."""
    return len(line) > MOST_LENGTH and len(line.decode("utf-8", "replace")) > MOST_LENGTH


def read_segments(path):
    """Yield (translator, document, segment, text) of a file in mteval's format. In a source file the translator is "".

    Raises:
        ValueError: the file is not UTF-8, or a segment has a broken character or no end.
    """
    with open(path, "rb") as file:
        content = "".join(decoded(path, number, line) for number, line in enumerate(file, 1))
    translator = document = ""
    end = 0
    for tag in TAG.finditer(content):
        if tag.start() < end:
            continue  # in the text of a segment
        attributes = tag[2]
        if tag[1].lower() != "seg":
            translator = attribute(attributes, "sysid") or attribute(attributes, "refid") or translator
            document = attribute(attributes, "docid")
            continue
        name = attribute(attributes, "id")
        place = f"{path}, segment {name} of document {document or '?'}"
        closed = END.search(content, tag.end())
        if not closed:
            raise ValueError(f"{place}: no </seg>: fetch the file again")
        end = closed.end()
        whole = " ".join(html.unescape(content[tag.end() : closed.start()]).split())
        require_unbroken(place, whole)
        yield translator, document, name, whole


def attribute(attributes, name):
    found = re.search(rf"""\b{name}\s*=\s*["']?([^"'\s]*)""", attributes, re.IGNORECASE)
    return found[1] if found else ""


def watched(pairs):
    """Yield the pairs, with a progress bar in the file PROGRESS, which common.sh sets to the terminal or /dev/null."""
    place = open(os.environ.get("PROGRESS", os.devnull), "w", encoding="utf-8")
    return tqdm(pairs, unit=" pairs", unit_scale=True, delay=2, file=place)
