#!/usr/bin/env bash
# opustrainer: its Prefix modifier leaves the word alignment as it was, and Tags then teaches wrong terms.
#
# Expected: a modifier that puts words before the source moves the source positions of the alignment column, as Merge and
#     Typos do with theirs.
# Seen: after Prefix, link 0-0 belongs to "__start__" and no longer to the first word. Tags, next in the list, marks
#     "__start__" as the term for "the", "the" as that for "red", and so on.
# Why: Prefix puts its text before the whole line, and copies the third column.
# Consequence: of the lines with a prefix every terminology annotation is wrong, and so is what guided alignment learns from
#     them. Both orders in the configuration run, and training shows no sign of it.
# Instead: put Prefix after Tags, which consumes the alignment, and leave it out where alignments are kept for the trainer.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet opustrainer==0.5

"$folder/bin/python" - <<'PYTHON'
import random
from importlib.metadata import version

from opustrainer.modifiers.merge import MergeModifier
from opustrainer.modifiers.placeholders import PlaceholderTagModifier
from opustrainer.modifiers.prefix import PrefixModifier

line = "das rote Haus steht hier\tthe red house stands here\t0-0 1-1 2-2 3-3 4-4"


def links(text):
    source, target, alignment = (column.split() for column in text.split("\t"))
    return [(source[int(i)], target[int(j)]) for i, j in (link.split("-") for link in alignment)]


print("opustrainer", version("opustrainer"))
random.seed(0)
(prefixed,) = PrefixModifier(1.0, min_words=2, max_words=2)([line])
(merged,) = MergeModifier(1.0, min_lines=2, max_lines=2)([line, line])
(tagged,) = PlaceholderTagModifier(1.0, augment=0, replace=0)([prefixed])
print("links before      ", links(line))
print("links after Merge ", links(merged))
print("links after Prefix", links(prefixed))
print("then Tags         ", tagged.split("\t")[0])

assert links(merged) == links(line) * 2, "changed: Merge"
assert prefixed.startswith("__start__ ") and links(prefixed)[0] == ("__start__", "the"), "changed: Prefix"
assert not set(links(prefixed)) & set(links(line)), "changed: Prefix"
assert "__source__ __start__ __target__ the" in tagged, "changed: Tags after Prefix"
PYTHON
