#!/usr/bin/env bash
# sacrebleu: a system that is compared with itself is significantly different, p = 0.001.
#
# Expected: two files with the same translations have p = 1 in a paired test.
# Seen: both tests of sacrebleu, bootstrap and approximate randomisation, give 1 / (samples + 1), their smallest p-value.
#     Randomisation also gives it to two systems that differ in one sentence of a hundred.
# Why: the p-value counts the samples whose difference is greater than the real one. Between equal systems every difference
#     is 0, and none is greater. With one changed sentence every shuffle gives the real difference or its negative.
#     A permutation test counts "greater or equal".
# Consequence: a table marks ties as significant: two checkpoints that translate alike, a rule that changed one line.
# Instead: print no p-value where the scores are equal, and count the sentences that differ before you trust a small one.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet sacrebleu==2.6.0

"$folder/bin/python" - <<'PYTHON'
import random

import sacrebleu
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

SAMPLES = 1000
random.seed(1)
words = "the a cat dog sat lay on under mat house red big went to from".split()
reference = [" ".join(random.choices(words, k=10)) for _ in range(100)]
baseline = [" ".join(w if random.random() < 0.7 else random.choice(words) for w in line.split()) for line in reference]
one_word_more = [baseline[0] + " cat", *baseline[1:]]


def p_value(system, test):
    systems = [("baseline", baseline), ("system", system)]
    paired = PairedTest(systems, {"BLEU": BLEU(references=[reference])}, None, test_type=test, n_samples=SAMPLES)
    result = paired()[1]["BLEU"]
    return result[1].score - result[0].score, result[1].p_value


print("sacrebleu", sacrebleu.__version__)
found = {}
for name, system in ("the same translations", list(baseline)), ("one word more in one line", one_word_more):
    for test in "bs", "ar":
        difference, found[name, test] = p_value(system, test)
        print(f"{name}, {test}: difference {difference:+.3f} BLEU, p = {found[name, test]:.4f}")

smallest = 1 / (SAMPLES + 1)
assert found["the same translations", "bs"] == smallest, "changed: the bootstrap of equal systems"
assert found["the same translations", "ar"] == smallest, "changed: the randomisation test of equal systems"
assert found["one word more in one line", "ar"] == smallest, "changed: the randomisation test of one changed line"
assert found["one word more in one line", "bs"] > 0.05, "changed: the bootstrap of one changed line"
PYTHON
