#!/usr/bin/env bash
# torchmetrics: with smooth=True, a sentence without a common 4-gram still has BLEU 0.
#
# Expected: smoothing is there for sentences in which some n-grams have no match: they have a small score, not 0.
# Seen: 0 for every sentence without a 4-gram of the reference, and for a perfect sentence of three words. With the same
#     smoothing, one added to both counts, sacrebleu gives 36, 49 and 100, and nltk 36, 49 and 84. SacreBLEUScore of
#     torchmetrics also gives 0. Where a 4-gram matches, all agree.
# Why: before it smooths, the function looks for a number of matches that is 0, and returns 0 if there is one. Only sentences
#     with matches of all four lengths get as far as the smoothing, those that need it least.
# Consequence: as the score of sentences, such as a reward or a rank among candidates, it is 0 for many of them, and as good
#     as unsmoothed. In the mean of sentence scores, a correct short sentence counts as a total failure.
# Instead: sentence_bleu of sacrebleu with smooth_method="add-k", or chrF.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 numpy torchmetrics==1.9.0 sacrebleu==2.6.0 nltk==3.10.4

"$folder/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import sacrebleu
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from torchmetrics.functional.text import bleu_score, sacre_bleu_score

print(*(f"{package} {version(package)}" for package in ("torchmetrics", "sacrebleu", "nltk")))
for translation, reference, order in (
    ("the cat is lying on the mat", "a cat lies on the mat", 3),
    ("the cat sat on the mat", "the cat lay on the mat", 3),
    ("yes it is", "yes it is", 3),
    ("the cat sat on the mat", "the cat sat on a mat", 4),
):
    plain = float(bleu_score([translation], [[reference]], smooth=True)) * 100
    wrapped = float(sacre_bleu_score([translation], [[reference]], smooth=True)) * 100
    other = sacrebleu.sentence_bleu(translation, [reference], smooth_method="add-k", tokenize="none").score
    third = sentence_bleu([reference.split()], translation.split(), smoothing_function=SmoothingFunction().method2) * 100
    print(f"torchmetrics {plain:.1f}, its SacreBLEUScore {wrapped:.1f}, sacrebleu {other:.1f}, nltk {third:.1f}: {translation}")
    assert other > 30 and third > 30, "changed: sacrebleu or nltk"
    assert (plain == 0) == (wrapped == 0) == (order < 4), f"changed: {translation}"
    if order == 4:
        assert abs(plain - other) < 0.01, "changed: the smoothing itself"
PYTHON
