"""Append the lines of two parallel texts (plain, gzipped or SGML) to two files, and print the number of pairs.

With --drop, a tab and a warning follow if many pairs were left out. Refuses texts that do not match, with one line that
names the file, the line and the fix.
"""

import argparse
import sys
from collections import Counter
from itertools import zip_longest
from pathlib import Path

from texts import BROKEN, MOST_LENGTH, decoded, is_long, read_lines, require_unbroken, watched

MOST_DROPPED = 0.05  # more is a fault of the text, which the user should know of


def fault(line):
    """Return what is wrong with a training sentence, or None."""
    if is_long(line):
        return "too long"
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return "not UTF-8"
    if BROKEN.search(text):
        return "broken characters"
    return None if text.strip() else "empty"


def first_fault(names, pair):
    """Return what is wrong with a training pair, and the name of the file; or None."""
    return next(((reason, name) for name, line in zip(names, pair) if (reason := fault(line))), None)


def parallel(paths):
    """Yield (number, (source, target)) with lines as bytes.

    Raises:
        ValueError: the files have different numbers of lines, or no lines.
    """
    counts = [0, 0]
    for number, pair in enumerate(zip_longest(*map(read_lines, paths)), 1):
        counts = [count + (line is not None) for count, line in zip(counts, pair)]
        if None not in pair:
            yield number, pair
    (source, target), (sources, targets) = paths, counts
    if sources != targets:
        raise ValueError(f"{source} has {sources} lines, {target} has {targets}: give parallel texts")
    if not sources:
        raise ValueError(f"{source}: no lines in it: fetch it again")


def good_pairs(paths):
    """Yield the pairs of a validation or test set.

    Raises:
        ValueError: a pair is broken, or empty on one side.
    """
    for number, pair in parallel(paths):
        for path, line in zip(paths, pair):
            if is_long(line):
                raise ValueError(f"{path}, line {number}: over {MOST_LENGTH} characters are no sentence: fix the pair")
        source, target = (decoded(path, number, line) for path, line in zip(paths, pair))
        for path, text in zip(paths, (source, target)):
            require_unbroken(f"{path}, line {number}", text)
        if bool(source.strip()) != bool(target.strip()):
            empty, other = paths if target.strip() else reversed(paths)
            raise ValueError(f"{empty}, line {number}: empty, but not in {other}: fix the pair")
        yield pair


def warning(taken, dropped):
    """Return a warning that names the most frequent fault and its file, or "" if few pairs were dropped."""
    lost = sum(dropped.values())
    if lost <= MOST_DROPPED * (taken + lost):
        return ""
    ((reason, file), number), *_ = dropped.most_common(1)
    remedy = f"convert it, iconv -f LATIN1 -t UTF-8 {file}" if reason == "not UTF-8" else "check the text"
    return f"{lost} of {taken + lost} pairs were left out, {number} of them {reason} in {file}: {remedy}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs=2, metavar="TEXT")
    parser.add_argument("outputs", nargs=2, metavar="OUTPUT")
    parser.add_argument("--drop", action="store_true", help="leave out pairs that are broken, or empty on one side")
    parser.add_argument("--limit", type=int, default=0, help="largest number of pairs; 0: all")
    args = parser.parse_args()
    taken, dropped, names = 0, Counter(), [Path(path).name for path in args.paths]
    pairs = (pair for _, pair in parallel(args.paths)) if args.drop else good_pairs(args.paths)
    with open(args.outputs[0], "ab") as source, open(args.outputs[1], "ab") as target:
        for pair in watched(pairs):
            found = args.drop and first_fault(names, pair)
            if found:
                dropped[found] += 1
                continue
            source.write(pair[0] + b"\n")
            target.write(pair[1] + b"\n")
            taken += 1
            if taken == args.limit:
                break
    reasons = ", ".join(f"{number} {reason} in {file}" for (reason, file), number in sorted(dropped.items()))
    counts = f"{taken} pairs" + (f" (dropped: {reasons})" if reasons else "")
    print(*filter(None, (counts, warning(taken, dropped))), sep="\t")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(str(error))
