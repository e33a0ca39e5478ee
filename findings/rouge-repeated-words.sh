#!/usr/bin/env bash
# rouge and rouge-score: a summary that repeats itself is perfect in the first and bad in the second.
#
# Expected: both count an n-gram of the summary at most as often as the reference has it, as ROUGE does.
# Seen: "rouge" gives the reference, written three times, F1 1.0 for ROUGE-1 and ROUGE-L; "rouge-score" gives 0.5.
# Why: "rouge" compares the sets of the n-grams, and for ROUGE-L the set of the words of the common subsequence, so that a
#     repeated word costs nothing. That is its default; its option exclusive=False counts.
# Consequence: loops, the typical error of an undertrained decoder, do not lower the score, and a repetition penalty seems
#     useless. Papers that used "rouge" cannot be compared with others.
# Instead: compute ROUGE with rouge-score, or with Rouge(exclusive=False).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet rouge==1.0.1 rouge-score==0.1.2

"$folder/bin/python" - <<'PYTHON'
from importlib.metadata import version

from rouge import Rouge
from rouge_score.rouge_scorer import RougeScorer

reference = "storm closes the northern harbour"
loop = " ".join([reference] * 3)
names = {"rouge-1": "rouge1", "rouge-l": "rougeL"}

print("rouge", version("rouge"), "rouge-score", version("rouge-score"))
official = RougeScorer(list(names.values())).score(reference, loop)
sets = Rouge().get_scores(loop, reference)[0]
counts = Rouge(exclusive=False).get_scores(loop, reference)[0]
for theirs, ours in names.items():
    print(
        f"{theirs}: rouge {sets[theirs]['f']:.3f}, with exclusive=False {counts[theirs]['f']:.3f}, "
        f"rouge-score {official[ours].fmeasure:.3f}"
    )

for theirs, ours in names.items():
    assert sets[theirs]["f"] > 0.99, f"changed: {theirs} of rouge"
    assert official[ours].fmeasure == 0.5, f"changed: {ours} of rouge-score"
    assert counts[theirs]["f"] < 0.51, f"changed: {theirs} with exclusive=False"
PYTHON
