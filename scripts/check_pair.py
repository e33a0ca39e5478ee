"""Refuses two parallel texts, plain or gzipped, that do not fit: one line names the file, the line and the mend."""

import gzip
import sys
import zlib
from itertools import zip_longest


def read(path):
    """The lines of a text, each as its words."""
    number = 0
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as text:
            for line in text:
                number += 1
                yield line.decode("utf-8").split()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number}: not UTF-8 at byte {error.start + 1}: convert the file") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ValueError(f"{path}: not a whole gzip archive: fetch it again") from None


def check(source, target):
    """Raises `ValueError` unless both have the same number of lines, at least one, and are empty in the same lines."""
    lines = {source: 0, target: 0}
    for number, (left, right) in enumerate(zip_longest(read(source), read(target)), 1):
        lines[source] += left is not None
        lines[target] += right is not None
        if None not in (left, right) and bool(left) != bool(right):
            empty, full = (target, source) if left else (source, target)
            raise ValueError(f"{empty}, line {number}: empty, but not so in {full}: mend it, or drop it from both")
    if lines[source] != lines[target]:
        raise ValueError(f"{source} has {lines[source]} lines, {target} has {lines[target]}: they must be parallel")
    if not lines[source]:
        raise ValueError(f"{source}: no lines in it: fetch it again")


if __name__ == "__main__":
    try:
        check(*sys.argv[1:])
    except (OSError, ValueError) as error:
        sys.exit(str(error))
