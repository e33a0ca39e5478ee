"""The texts of corpora: plain, gzipped, or the segments of an SGML or XML file. Their pairs and faults."""

import codecs
import gzip
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from itertools import zip_longest
from pathlib import Path

from capsule_routing.errors import UserError
from capsule_routing.text.files import refuse_utf_16
from capsule_routing.text.preparation import compose
from fairseq_capsule_lab.corpora.parallel import progress_bar
from fairseq_capsule_lab.corpora.segments import (
    BROKEN,
    Segments,
    Text,
    is_markup,
    read_segments,
    refuse_unpaired,
    require_unbroken,
)

MOST_LENGTH = 100_000  # characters: a longer line is no sentence, and a tokeniser takes minutes for it
MOST_DROPPED = 0.05  # more is a fault of the text, which the user should know of

LEAST_EQUAL = 3  # lines that are equal on both sides; fewer may be names
PEEKED = 1000  # bytes, to see what a file is
COMPRESSED = {  # the first bytes of a file, and what wrote it
    b"\xfd7zXZ\0": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\3\4": "zip",
    b"7z\xbc\xaf": "7-Zip",
    b"Rar!": "RAR",
    b"\x04\x22\x4d\x18": "lz4",
    b"\x1f\x9d": "compress",
}

Pair = tuple[bytes, bytes]
Paths = Sequence[Path]  # of the source and the target
Languages = Sequence[str]  # of the source and the target


def decode(path: Path, number: int, line: bytes) -> str:
    """Return a line as text; raise a UserError if it is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}, line {number}: not UTF-8 at byte {error.start + 1}: convert the file") from None


def read_text(path: Path) -> Segments | Iterator[bytes]:
    """Return the segments of an SGML or XML file, or yield the lines of a plain text.

    Lines are bytes without the line feed. A carriage return becomes a space. A byte order mark is removed. The content
    decides what a file is, not its name. A UserError names a file that is compressed, but not by gzip, or in UTF-16.
    """
    with open(path, "rb") as file:
        magic = file.read(8)
    for start, program in COMPRESSED.items():
        if magic.startswith(start):
            raise UserError(f"{path}: compressed by {program}: decompress it, or compress it by gzip")
    with _open(path) as text:
        start = text.peek(PEEKED)[:PEEKED]
        refuse_utf_16(path, start)
        if not is_markup(path.name, start.decode("utf-8-sig", "replace")):
            return _lines(path)
        content = "".join(decode(path, number, line) for number, line in enumerate(text, 1))
    return read_segments(path, content)


def _lines(path: Path) -> Iterator[bytes]:
    with _open(path) as text:
        mark = codecs.BOM_UTF8
        for line in text:
            yield line.removeprefix(mark).removesuffix(b"\n").replace(b"\r", b" ")
            mark = b""


@contextmanager
def _open(path: Path) -> Iterator[gzip.GzipFile | BufferedReader]:
    """Open a plain or gzipped text."""
    with open(path, "rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b" or path.name.endswith(".gz")
    try:
        with (gzip.open if is_gzip else open)(path, "rb") as text:
            yield text
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise UserError(f"{path}: not a complete gzip archive: delete it and fetch it again") from None


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


def parallel_lines(paths: Paths, reference: str = "", languages: Languages = ("", "")) -> Iterator[tuple[int, Pair]]:
    """Yield (number, (source, target)).

    Segments of two SGML or XML files belong together by document and number, lines by place.

    Args:
        reference: the name of the reference to take of a file that has several.
        languages: of source and target, so that a file with both is not read in the wrong direction; "": not known.

    Raises:
        UserError: a segment has no partner, there are different numbers of lines, or no lines.
    """
    first = side_of(read_text(paths[0]), True, reference, languages[1])
    second = side_of(read_text(paths[1]), False, reference, languages[0])
    if isinstance(first, dict) and isinstance(second, dict):
        refuse_unpaired(paths, (first, second))
        second = {key: second[key] for key in first}
    sources = targets = 0
    for number, (source_line, target_line) in enumerate(zip_longest(encoded(first), encoded(second)), 1):
        sources += source_line is not None
        targets += target_line is not None
        if source_line is not None and target_line is not None:
            yield number, (source_line, target_line)
    source, target = paths
    if sources != targets:
        raise UserError(f"{source} has {sources} lines, {target} has {targets}: give parallel texts")
    if not sources:
        raise UserError(f"{source}: no lines in it: fetch it again")


def side_of(
    text: Segments | Iterator[bytes], is_source: bool, reference: str = "", other: str = ""
) -> Text | Iterator[bytes]:
    """Return the text for a side of a corpus: `Segments.text`; lines stay."""
    return text.text(is_source, reference, other) if isinstance(text, Segments) else text


def encoded(text: Text | Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a text."""
    return (line.encode() for line in text.values()) if isinstance(text, dict) else text


def refuse_equal_sides(paths: Paths, equal: int, pairs: int) -> None:
    """Refuse two texts that are equal in most pairs: one file for both sides, or one page for two addresses."""
    if equal >= LEAST_EQUAL and 10 * equal > 9 * pairs:  # half is usual where errors are corrected
        problem = f"equal in {equal} of {pairs} lines"
        raise UserError(f"{paths[0]} and {paths[1]} are {problem}: give a text and its translation")


def _good_pairs(paths: Paths, reference: str, languages: Languages) -> Iterator[Pair]:
    """Yield the pairs of a validation or test set; raise a UserError if one is broken, or empty on one side."""
    equal = number = 0
    for number, pair in parallel_lines(paths, reference, languages):
        equal += pair[0] == pair[1]
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
    refuse_equal_sides(paths, equal, number)


def _composed(pair: Pair) -> Pair:
    """Return a pair in Unicode's composed form. Otherwise equal text of two sources would have different bytes."""
    first, second = (line if line.isascii() else compose(line.decode()).encode() for line in pair)
    return first, second


def append_good_pairs(paths: Paths, outputs: Paths, reference: str = "", languages: Languages = ("", "")) -> int:
    """Append the pairs of a validation or test set to two files. A UserError names the place of a broken one.

    `reference` and `languages` are those of `parallel_lines`. Returns the number of pairs whose text was not composed
    (NFC).
    """
    changed = 0
    with open(outputs[0], "ab") as source, open(outputs[1], "ab") as target:
        for pair in progress_bar(_good_pairs(paths, reference, languages), unit=" pairs", unit_scale=True):
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
    equal = 0
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
            equal += pair[0] == pair[1]
            if taken == limit:
                break
    refuse_equal_sides(paths, equal, taken)
    reasons = ", ".join(f"{number} {reason} in {file}" for (reason, file), number in sorted(dropped.items()))
    return taken, "\t".join(filter(None, (counts(taken, reasons, changed), _warning(taken, dropped))))


def counts(taken: int, dropped: str, changed: int) -> str:
    """Return the number of pairs as text, with what was dropped and how many were not composed (NFC), if any."""
    notes = [f"dropped: {dropped}"] if dropped else []
    notes += [f"composed, NFC: {changed}"] if changed else []
    return f"{taken} pairs" + (f" ({'; '.join(notes)})" if notes else "")


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
