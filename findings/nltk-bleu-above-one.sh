#!/usr/bin/env bash
# nltk: with two of its smoothing methods BLEU is above 1, and a wrong translation has more than a right one.
#
# Expected: smoothing fills orders without a match. A perfect translation of five words has BLEU 1.0 by every method.
# Seen: methods 5 and 7 give 1.12. A translation of 40 words with two errors has 1.02, a perfect one of four words 1.01.
# Why: the method averages the counts of the orders n-1, n and n+1; order 0 has the count of order 1, plus one. nltk puts
#     precisions into the formula, so that order 0 has a precision of 2. Order 5 counts too; a sentence of four words has 0.
# Consequence: the mean over sentences, and a reward made of it, favours long sentences over right ones. 100 * BLEU in a
#     table may be above 100.
# Instead: take method 2 or 3 for single sentences, or sacrebleu's sentence_bleu.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet nltk==3.10.4 sacrebleu==2.6.0

"$folder/bin/python" - <<'PYTHON'
import nltk
import sacrebleu
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

five = "the train leaves at noon"
four = "it stops in Graz"
long = " ".join(f"word{position}" for position in range(40))
long_with_errors = long.replace("word1 ", "wrong ").replace("word38", "wrong")

print("nltk", nltk.__version__, "sacrebleu", sacrebleu.__version__)
found = {}
for number in range(1, 8):
    smoothing = getattr(SmoothingFunction(), f"method{number}")
    cases = {"perfect": (five, five), "perfect, 4 words": (four, four), "2 errors in 40": (long, long_with_errors)}
    found[number] = {
        name: sentence_bleu([reference.split()], hypothesis.split(), smoothing_function=smoothing)
        for name, (reference, hypothesis) in cases.items()
    }
    print(f"method {number}:", ", ".join(f"{name} {score:.4f}" for name, score in found[number].items()))

for number, scores in found.items():
    if number in (5, 7):
        assert 1.11 < scores["perfect"] < 1.12, f"changed: method {number} of a perfect sentence"
        assert scores["2 errors in 40"] > scores["perfect, 4 words"], f"changed: order of sentences in method {number}"
    else:
        assert abs(scores["perfect"] - 1) < 1e-9, f"changed: method {number} of a perfect sentence"
        assert scores["2 errors in 40"] < scores["perfect, 4 words"], f"changed: order of sentences in method {number}"
assert abs(sacrebleu.sentence_bleu(five, [five]).score - 100) < 1e-9
PYTHON
