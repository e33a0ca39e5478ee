#!/usr/bin/env bash
# nltk: LEPOR rewards a wrong length: the reference twice in a row has a better score than the reference.
#
# Expected: nothing is better than the reference itself, which has 1; missing and repeated words cost.
# Seen: a sentence without one of its words has up to 1.02, a sentence twice in a row 1.7, and one word six times is
#     better than two wrong words. The reference itself has less than 1, 0.67 here, where words occur several times.
# Why: the length penalty is e to the power of 1 - shorter / longer, where the paper has 1 - longer / shorter, so it is at
#     least 1. A word of the reference matches any number of words, so recall can be 2. And of the places of a repeated word
#     the aligner takes the farthest, where the paper takes the nearest.
# Consequence: a system that omits words, or repeats them, looks better than one that translates all of them.
# Instead: use chrF or BLEU of sacrebleu for the words, and RIBES of nltk for their order.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet nltk==3.10.4

"$folder/bin/python" - <<'PYTHON'
from math import exp

import nltk
from nltk.translate.lepor import length_penalty, sentence_lepor

print("nltk", nltk.__version__)


def lepor(reference, translation):
    score = sentence_lepor([reference], translation, tokenizer=str.split)[0]
    print(f"{score:.3f}  {translation}")
    return score


print("reference: the cat sat on a mat")
reference = "the cat sat on a mat"
scores = {
    "the cat sat on a mat": 1.0,
    "the cat lay on the mat": None,
    "cat cat cat cat cat cat": None,
    "the cat sat on a mat the cat sat on a mat": None,
}
for translation in scores:
    scores[translation] = lepor(reference, translation)
itself, good, loop, twice = scores.values()
assert abs(itself - 1) < 1e-9 and good < loop < itself < 1.5 < twice, "changed: repeated words"

for length in 5, 12:
    penalty = length_penalty(["a"] * 6, ["a"] * length)
    print(f"the length penalty of {length} words for 6 is {penalty:.3f}")
    assert penalty == exp(1 - min(length, 6) / max(length, 6)) > 1, f"changed: the penalty of {length} words"

for reference, missing in {
    "He said that he would come if he could .": "would ",
    "The cat and the dog saw the man and the boy .": "the ",
    "It is not the first time , and it is not the last time .": "not ",
    "of the people , by the people , for the people": "by ",
}.items():
    print("reference:", reference)
    assert lepor(reference, reference) < lepor(reference, reference.replace(missing, "", 1)), f"changed: {reference}"
PYTHON
