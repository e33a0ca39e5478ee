"""Reading the texts of corpora as they come: plain, gzipped, or the segments of an SGML or XML file."""

import codecs
import gzip
import html
import os
import re
import zlib

from tqdm import tqdm

MARKUP = re.compile(r"<(refset|doc)\b([^>]*)>|<seg\b([^>]*)>(.*?)</seg>", re.DOTALL | re.IGNORECASE)


BROKEN = re.compile("[\0\ufffd]")  # NUL, and what a wrong conversion leaves


def require_unbroken(place, text):
    """Refuse a text of a validation or test set with a broken character; of a training set its pair is dropped.

    Raises:
        ValueError: NUL or U+FFFD.
    """
    found = BROKEN.search(text)
    if found:
        raise ValueError(f"{place}: U+{ord(found[0]):04X} at character {found.start() + 1}: repair the file")


def decoded(path, number, line):
    """A line as text.

    Raises:
        ValueError: not UTF-8.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number}: not UTF-8 at byte {error.start + 1}: convert the file") from None


def read_lines(path):
    """Yields the lines of a text, or the segments of an .sgm or .xml file, as bytes without the line feed; any other
    line end inside of one is a space, and a byte order mark is left out."""
    if path.endswith((".sgm", ".xml")):
        yield from (text.encode() for *_, text in read_segments(path))
        return
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as text:
            for number, line in enumerate(text):
                line = line if number else line.removeprefix(codecs.BOM_UTF8)
                yield line.removesuffix(b"\n").replace(b"\r", b" ")
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ValueError(f"{path}: not a whole gzip archive: fetch it again") from None


def read_segments(path):
    """Yields (translator, document, segment, text) of the format of mteval; the translator is "" in a source file.

    Raises:
        ValueError: not UTF-8, or a segment with a broken character.
    """
    with open(path, "rb") as file:
        content = "".join(decoded(path, number, line) for number, line in enumerate(file, 1))
    translator = document = ""
    for markup, attributes, segment, text in MARKUP.findall(content):
        if markup:
            translator = attribute(attributes, "sysid") or attribute(attributes, "refid") or translator
            document = attribute(attributes, "docid")
        else:
            name = attribute(segment, "id")
            whole = " ".join(html.unescape(text).split())
            require_unbroken(f"{path}, segment {name} of document {document or '?'}", whole)
            yield translator, document, name, whole


def attribute(attributes, name):
    found = re.search(rf"""\b{name}\s*=\s*["']?([^"'\s]*)""", attributes, re.IGNORECASE)
    return found[1] if found else ""


def watched(pairs):
    """The same pairs, with a progress bar where common.sh says that there is a terminal."""
    place = open(os.environ.get("PROGRESS", os.devnull), "w", encoding="utf-8")
    return tqdm(pairs, unit=" pairs", unit_scale=True, delay=2, file=place)
