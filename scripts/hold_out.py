"""Take validation and test pairs out of a training text.

The source sentences with the smallest hashes are held out. This choice depends on the seed and on the text, not on its
order. All pairs of such a sentence leave the training text, even if they differ in translation, case or spaces. The
first pair of each sentence is written to the held-out set.
"""

import argparse
import os
import sys
from contextlib import ExitStack
from hashlib import blake2b
from heapq import heappush, heapreplace

from texts import watched

MOST_LENGTH = 500  # characters of a held-out sentence, so that its subwords fit a model
SPLITS = ("valid", "test")


def number_of(sentence, seed):
    """Return a 64-bit hash of a source sentence that ignores case and spaces."""
    key = f"{seed} {' '.join(sentence.lower().split())}".encode()
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big")


def is_short(pair):
    return max(len(line.rstrip("\n")) for line in pair) <= MOST_LENGTH


def smallest(pairs, count, seed):
    """Return the `count` smallest distinct hashes of the short source sentences, in ascending order."""
    if not count:
        return []
    largest, there = [], set()  # a heap of negative hashes, and the hashes in it
    for pair in pairs:
        if not is_short(pair):
            continue
        number = number_of(pair[0], seed)
        if number in there or (len(largest) == count and number > -largest[0]):
            continue
        there.add(number)
        if len(largest) < count:
            heappush(largest, -number)
        else:
            there.remove(-heapreplace(largest, -number))
    return sorted(there)


def pairs_of(paths):
    with ExitStack() as stack:
        texts = (stack.enter_context(open(path, encoding="utf-8", newline="\n")) for path in paths)
        yield from watched(zip(*texts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="folder of train.SOURCE and train.TARGET")
    parser.add_argument("languages", nargs=2, metavar="LANG")
    for split in SPLITS:
        parser.add_argument(f"--{split}", type=int, default=0, metavar="N", help="number of pairs (default: none)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    def files(name):
        return [os.path.join(args.folder, f"{name}.{language}") for language in args.languages]

    wanted = {split: getattr(args, split) for split in SPLITS}
    numbers = smallest(pairs_of(files("train")), sum(wanted.values()), args.seed)
    if len(numbers) < sum(wanted.values()):
        raise ValueError(
            f"{len(numbers)} different source sentences of at most {MOST_LENGTH} characters in the training text: "
            f"{sum(wanted.values())} cannot be held out; ask for fewer"
        )
    place = dict(zip(numbers, (split for split, count in wanted.items() for _ in range(count))))
    written = set()
    with ExitStack() as stack:
        outputs = {
            name: [stack.enter_context(open(path, "w", encoding="utf-8", newline="\n")) for path in files(name)]
            for name in ("rest", *(split for split, count in wanted.items() if count))
        }
        for pair in pairs_of(files("train")):
            number = number_of(pair[0], args.seed)
            name = place.get(number, "rest")
            if name != "rest" and (number in written or not is_short(pair)):
                continue
            if name != "rest":
                written.add(number)
            for output, line in zip(outputs[name], pair):
                output.write(line)
    if not os.path.getsize(files("rest")[0]):
        raise ValueError("all training pairs would be held out: ask for fewer")
    for rest, train in zip(files("rest"), files("train")):
        os.replace(rest, train)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(str(error))
