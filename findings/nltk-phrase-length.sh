#!/usr/bin/env bash
# nltk: a limit of the phrase length makes phrase_extraction cut phrase pairs instead of leaving them out.
#
# Expected: max_phrase_length=2 keeps those pairs of the unlimited extraction that have at most 2 words on each side.
# Seen: "wetterbericht", aligned with all of "the weather report", is extracted as "the weather". Longer pairs remain, too.
# Why: the limit is applied to the start of the target phrase: its end is moved to the limit, and unaligned words are added
#     behind it. Whether the pair is consistent with the alignment was checked before, with the whole target phrase.
# Consequence: the phrase table has wrong translations that no alignment supports, and which ones depends on the direction:
#     the source side is limited correctly.
# Instead: extract without a limit, and drop the long pairs afterwards.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet nltk==3.10.4

"$folder/bin/python" - <<'PYTHON'
import nltk
from nltk.translate.phrase_based import phrase_extraction

limit = 2
german = "wetterbericht heute"
english = "the weather report today"
alignment = [(0, 0), (0, 1), (0, 2), (1, 3)]


def pairs(source, target, links, **options):
    return {phrase_pair[2:] for phrase_pair in phrase_extraction(source, target, links, **options)}


def compare(source, target, links):
    limited = pairs(source, target, links, max_phrase_length=limit)
    short = {pair for pair in pairs(source, target, links) if all(len(side.split()) <= limit for side in pair)}
    print(f"{source} -> {target}: expected {sorted(short)}, extracted {sorted(limited)}")
    return short, limited


print("nltk", nltk.__version__)
short, limited = compare(german, english, alignment)
assert short == {("heute", "today")}
added = {("wetterbericht", "the weather"), ("wetterbericht heute", "the weather")}
assert limited - short == added, "changed: phrases above the limit are no longer cut"

short, limited = compare(english, german, [(target, source) for source, target in alignment])
assert short == limited == {("today", "heute")}, "changed: the limit of the source side"

short, limited = compare("danke", "thank you so much", [(0, 0), (0, 1)])
assert short == {("danke", "thank you")}
assert limited - short == {("danke", "thank you so"), ("danke", "thank you so much")}, "changed: unaligned words"
PYTHON
