"""Replace the targets of a training set by a teacher's translations, the outputs of fairseq-generate.

    collect_hypotheses.py DATA SOURCE-TARGET LONGEST SHARDS OUT

A sentence keeps its own target if its translation is empty, reaches the maximum length (twice the source plus 10, or
the LONGEST that the teacher supports), or is missing because the teacher skips its source. Prints how many do.
"""

import re
import sys
from pathlib import Path

from fairseq.data import data_utils, indexed_dataset

from fairseq_capsule.data.dictionaries import read_dictionary
from fairseq_capsule.errors import UserError

HYPOTHESIS = re.compile(r"H-(\d+)\t[^\t]*\t(.*)")


def hypotheses(folder):
    """Return the best translation of each sentence number, from all shards."""
    found = {}
    for file in sorted(Path(folder).glob("*.out")):
        with open(file, encoding="utf-8") as lines:
            for match in filter(None, map(HYPOTHESIS.match, lines)):
                found.setdefault(int(match[1]), match[2])
    return found


def announced(folder):
    """Return how many sentences fairseq announced to skip."""
    skipped = re.compile(r"([\d,]+) samples have invalid sizes and will be skipped")
    texts = (file.read_text(encoding="utf-8") for file in Path(folder).glob("*.log"))
    return max((int(found.replace(",", "")) for text in texts for found in skipped.findall(text)), default=0)


def main(data, pair, longest, shards, out):
    source, target = pair.split("-")
    dictionary = read_dictionary(f"{data}/dict.{target}.txt")
    sources, targets = (
        data_utils.load_indexed_dataset(f"{data}/train.{pair}.{language}", dictionary) for language in (source, target)
    )
    found = hypotheses(shards)
    prefix = f"{out}/train.{pair}.{target}"
    builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", len(dictionary))
    kept = {"empty": 0, "over-long": 0, "skipped": 0}
    for number, (words, own) in enumerate(zip(sources, targets)):
        text = found.get(number)
        tokens = dictionary.encode_line(text or "", add_if_not_exist=False).long()
        if text is None:
            reason = "skipped"
        elif len(tokens) <= 1:
            reason = "empty"
        elif len(tokens) - 1 >= min(2 * len(words) + 10, int(longest) - 1):
            reason = "over-long"
        else:
            builder.add_item(tokens)
            continue
        kept[reason] += 1
        builder.add_item(own)
    builder.finalize(f"{prefix}.idx")
    if kept["skipped"] > announced(shards):
        sys.exit(
            f"{kept['skipped']} translations are missing in {shards}: delete that folder and run the command again"
        )
    print(f"{len(targets)} training sentences, {len(targets) - sum(kept.values())} of them the teacher's; the others:")
    print(", ".join(f"{number} {reason}" for reason, number in kept.items()))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except UserError as error:
        sys.exit(f"distill.sh: {error}")
