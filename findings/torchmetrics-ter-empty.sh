#!/usr/bin/env bash
# torchmetrics: TER turns the reference into the translation, so an empty translation has a perfect TER.
#
# Expected: an empty line needs all words of its reference inserted, TER 1.0; torchmetrics takes its TER from sacrebleu.
# Seen: TER is 0.0. A file of which every second line is empty and the others are right also has 0.0, in sacrebleu 50.
#     Long sentences with moved words differ as well, 50 and 40.
# Why: torchmetrics hands the reference over as what is edited, and the translation as the goal; where the goal is empty, it
#     counts no edit. Single edits cost the same in both directions, but the search for shifts starts from the other side.
# Consequence: TER improves when a model emits the end of sentence at once. Choosing a checkpoint or a length penalty by it
#     prefers a broken system, and its figures are not those of papers.
# Instead: compute TER with sacrebleu.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 torchmetrics==1.9.0 sacrebleu==2.6.0

"$folder/bin/python" - <<'PYTHON'
import sacrebleu
import torchmetrics
from sacrebleu.metrics import TER
from torchmetrics.text import TranslationEditRate

references = ["the train leaves at noon", "it stops in every village"]
systems = {
    "all right": references,
    "the second line empty": [references[0], ""],
    "all lines empty": ["", ""],
}

print("torchmetrics", torchmetrics.__version__, "sacrebleu", sacrebleu.__version__)
found = {}
for name, hypotheses in systems.items():
    ours = 100 * float(TranslationEditRate()(hypotheses, [[text] for text in references]))
    found[name] = ours, TER().corpus_score(hypotheses, [references]).score
    print(f"{name}: torchmetrics {found[name][0]:.1f}, sacrebleu {found[name][1]:.1f}")

assert found["all right"] == (0, 0)
assert found["the second line empty"] == (0, 50), "changed: TER of a file with an empty line"
assert found["all lines empty"] == (0, 100), "changed: TER of empty lines"

hypothesis = "house cat dog on . mat house mat dog on house"
reference = "mat house . mat house on on house cat dog"
ours = 100 * float(TranslationEditRate()([hypothesis], [[reference]]))
theirs = TER().corpus_score([hypothesis], [[reference]]).score
print(f"moved words: torchmetrics {ours:.1f}, sacrebleu {theirs:.1f}")
assert abs(ours - 50) < 1e-4 and abs(theirs - 40) < 1e-4, "changed: the search for shifts"
PYTHON
