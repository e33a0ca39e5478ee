"""Copy the pairs of two parallel texts that are not empty, not too long and of similar length."""

import argparse
from contextlib import ExitStack

from texts import watched


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inputs", nargs=2, metavar="TEXT")
    parser.add_argument("outputs", nargs=2, metavar="OUTPUT")
    parser.add_argument("--longest", type=int, required=True, help="largest number of words in a sentence")
    parser.add_argument("--ratio", type=float, default=0, help="largest ratio of the numbers of words; 0: any")
    parser.add_argument(
        "--instead", nargs=2, metavar="FILE", help="copy the lines of these files, parallel to the texts"
    )
    args = parser.parse_args()
    with ExitStack() as stack:
        source, target = (stack.enter_context(open(path, "w", encoding="utf-8", newline="\n")) for path in args.outputs)
        texts = [stack.enter_context(open(path, encoding="utf-8", newline="\n")) for path in args.inputs]
        copied = [stack.enter_context(open(path, encoding="utf-8", newline="\n")) for path in args.instead or []]
        for first, second, *copies in watched(zip(*texts, *copied)):
            shorter, longer = sorted((len(first.split()), len(second.split())))
            if shorter > 0 and longer <= args.longest and (not args.ratio or longer <= args.ratio * shorter):
                source.write(copies[0] if copies else first)
                target.write(copies[1] if copies else second)


if __name__ == "__main__":
    main()
