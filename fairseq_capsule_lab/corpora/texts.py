"""The texts of corpora: plain, gzipped, or the segments of an SGML or XML file. Their pairs and faults."""

import codecs
import gzip
import html
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path

from capsule_routing.errors import UserError
from capsule_routing.text.files import refuse_utf_16
from capsule_routing.text.preparation import compose
from fairseq_capsule_lab.corpora.parallel import progress_bar

MOST_LENGTH = 100_000  # characters: a longer line is no sentence, and a tokeniser takes minutes for it
MOST_DROPPED = 0.05  # more is a fault of the text, which the user should know of

TAG = re.compile(r"<(refset|doc|seg)\b([^<>]*)>", re.IGNORECASE)
END = re.compile("</seg>", re.IGNORECASE)
BROKEN = re.compile("[\0\ufffd]")  # NUL, and the replacement character of a wrong conversion

Pair = tuple[bytes, bytes]
Paths = Sequence[Path]  # of the source and the target


def require_unbroken(place: str, text: str) -> None:
    """Refuse a text of a validation or test set with NUL or U+FFFD. Training pairs with one are dropped instead."""
    broken = BROKEN.search(text)
    if broken:
        raise UserError(f"{place}: U+{ord(broken[0]):04X} at character {broken.start() + 1}: fix the file")


def decode(path: Path, number: int, line: bytes) -> str:
    """Return a line as text; raise a UserError if it is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}, line {number}: not UTF-8 at byte {error.start + 1}: convert the file") from None


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a text, or the segments of an .sgm or .xml file, as bytes without the line feed.

    A carriage return becomes a space. A byte order mark is removed.
    """
    if path.name.endswith((".sgm", ".xml")):
        yield from (text.encode() for *_, text in read_segments(path))
        return
    try:
        with (gzip.open if path.name.endswith(".gz") or _is_gzip(path) else open)(path, "rb") as text:
            refuse_utf_16(path, text.peek(100))
            mark = codecs.BOM_UTF8
            for line in text:
                yield line.removeprefix(mark).removesuffix(b"\n").replace(b"\r", b" ")
                mark = b""
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise UserError(f"{path}: not a complete gzip archive: delete it and fetch it again") from None


def _is_gzip(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def read_segments(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield (translator, document, segment, text) of a file in mteval's format; the source's translator is ""."""
    with open(path, "rb") as file:
        content = "".join(decode(path, number, line) for number, line in enumerate(file, 1))
    translator = document = ""
    end = 0
    for tag in TAG.finditer(content):
        if tag.start() < end:
            continue  # in the text of a segment
        attributes = tag[2]
        if tag[1].lower() != "seg":
            translator = _attribute(attributes, "sysid") or _attribute(attributes, "refid") or translator
            document = _attribute(attributes, "docid")
            continue
        name = _attribute(attributes, "id")
        place = f"{path}, segment {name} of document {document or '?'}"
        closed = END.search(content, tag.end())
        if not closed:
            raise UserError(f"{place}: no </seg>: fetch the file again")
        end = closed.end()
        whole = " ".join(html.unescape(content[tag.end() : closed.start()]).split())
        require_unbroken(place, whole)
        yield translator, document, name, whole


def _attribute(attributes: str, name: str) -> str:
    value = re.search(rf"""\b{name}\s*=\s*["']?([^"'\s]*)""", attributes, re.IGNORECASE)
    return value[1] if value else ""


def _is_long(line: bytes) -> bool:
    return len(line) > MOST_LENGTH and len(line.decode("utf-8", "replace")) > MOST_LENGTH


def fault(line: bytes) -> str:
    """Return what is wrong with a training sentence, or ""."""
    if _is_long(line):
        return "too long"
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return "not UTF-8"
    if BROKEN.search(text):
        return "broken characters"
    return "" if text.strip() else "empty"


def parallel_lines(paths: Paths) -> Iterator[tuple[int, Pair]]:
    """Yield (number, (source, target)); raise a UserError if there are different numbers of lines, or no lines."""
    sources = targets = 0
    for number, (first, second) in enumerate(zip_longest(*map(read_lines, paths)), 1):
        sources += first is not None
        targets += second is not None
        if first is not None and second is not None:
            yield number, (first, second)
    source, target = paths
    if sources != targets:
        raise UserError(f"{source} has {sources} lines, {target} has {targets}: give parallel texts")
    if not sources:
        raise UserError(f"{source}: no lines in it: fetch it again")


def _good_pairs(paths: Paths) -> Iterator[Pair]:
    """Yield the pairs of a validation or test set; raise a UserError if one is broken, or empty on one side."""
    for number, pair in parallel_lines(paths):
        for path, line in zip(paths, pair):
            if _is_long(line):
                raise UserError(f"{path}, line {number}: over {MOST_LENGTH} characters are no sentence: fix the pair")
        source, target = (decode(path, number, line) for path, line in zip(paths, pair))
        for path, text in zip(paths, (source, target)):
            require_unbroken(f"{path}, line {number}", text)
        if bool(source.strip()) != bool(target.strip()):
            empty, other = paths if target.strip() else reversed(paths)
            raise UserError(f"{empty}, line {number}: empty, but not in {other}: fix the pair")
        yield pair


def _composed(pair: Pair) -> Pair:
    """Return a pair in Unicode's composed form. Otherwise equal text of two sources would have different bytes."""
    first, second = (line if line.isascii() else compose(line.decode()).encode() for line in pair)
    return first, second


def append_good_pairs(paths: Paths, outputs: Paths) -> int:
    """Append the pairs of a validation or test set to two files. A UserError names the place of a broken one.

    Returns the number of pairs whose text was not composed (NFC).
    """
    changed = 0
    with open(outputs[0], "ab") as source, open(outputs[1], "ab") as target:
        for pair in progress_bar(_good_pairs(paths), unit=" pairs", unit_scale=True):
            first, second = _composed(pair)
            changed += (first, second) != pair
            source.write(first + b"\n")
            target.write(second + b"\n")
    return changed


def append_training_pairs(paths: Paths, outputs: Paths, limit: int) -> tuple[int, str]:
    """Append training pairs to two files. Pairs that are broken, or empty on one side, are left out.

    Args:
        limit: the largest number of pairs; 0: all.

    Returns:
        The number of pairs; and the counts as text, after a tab with a warning if many pairs were left out.
    """
    taken, changed, dropped, names = 0, 0, Counter[tuple[str, str]](), [path.name for path in paths]
    with open(outputs[0], "ab") as source, open(outputs[1], "ab") as target:
        for _, pair in progress_bar(parallel_lines(paths), unit=" pairs", unit_scale=True):
            faults = [(fault(line), name) for name, line in zip(names, pair) if fault(line)]
            if faults:
                dropped[faults[0]] += 1
                continue
            first, second = _composed(pair)
            changed += (first, second) != pair
            source.write(first + b"\n")
            target.write(second + b"\n")
            taken += 1
            if taken == limit:
                break
    reasons = ", ".join(f"{number} {reason} in {file}" for (reason, file), number in sorted(dropped.items()))
    notes = [f"dropped: {reasons}"] if reasons else []
    notes += [f"composed, NFC: {changed}"] if changed else []
    counts = f"{taken} pairs" + (f" ({'; '.join(notes)})" if notes else "")
    return taken, "\t".join(filter(None, (counts, _warning(taken, dropped))))


def _warning(taken: int, dropped: Counter[tuple[str, str]]) -> str:
    """Return a warning that names the most frequent fault and its file, or "" if few pairs were dropped."""
    lost = sum(dropped.values())
    if lost <= MOST_DROPPED * (taken + lost):
        return ""
    ((reason, file), number), *_ = dropped.most_common(1)
    remedy = f"convert it, iconv -f LATIN1 -t UTF-8 {file}" if reason == "not UTF-8" else "check the text"
    return f"{lost} of {taken + lost} pairs were left out, {number} of them {reason} in {file}: {remedy}"


def copy_similar_pairs(
    inputs: Paths, outputs: Paths, longest: int | None, ratio: float = 0, instead: Paths = ()
) -> None:
    """Copy the pairs of two parallel texts that are not empty, not too long and of similar length.

    Args:
        longest: the largest number of words in a sentence; None: any.
        ratio: the largest ratio of the numbers of words; 0: any.
        instead: copy the lines of these files, parallel to the inputs.

    Raises:
        UserError: there is no such pair, or the texts have different numbers of lines.
    """
    paths = [*inputs, *(instead or inputs)]
    with ExitStack() as stack:
        texts = [stack.enter_context(open(path, "rb")) for path in paths]
        source, target = (stack.enter_context(open(path, "wb")) for path in outputs)
        for lines in progress_bar(zip_longest(*texts), unit=" pairs", unit_scale=True):
            if None in lines:
                shortest = paths[lines.index(None)]
                raise UserError(f"{shortest} has fewer lines than the other texts: give parallel texts")
            shorter, longer = sorted(len(line.decode().split()) for line in lines[:2])
            is_short = longest is None or longer <= longest
            if shorter > 0 and is_short and (not ratio or longer <= ratio * shorter):
                source.write(lines[2])
                target.write(lines[3])
    if not outputs[0].stat().st_size:
        raise UserError("no pair is left: all are empty, or too long for --max-length or --ratio: give larger ones")
