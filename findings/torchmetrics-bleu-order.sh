#!/usr/bin/env bash
# torchmetrics: BLEU with several references depends on the order of the references.
#
# Expected: references are a set; their order does not matter, as in sacrebleu.
# Seen: BLEU is 1.0 with the shorter reference first, and 0.72 with the longer one first.
# Why: the brevity penalty takes the reference whose length is closest to that of the hypothesis. Where two are equally
#     close, one below and one above, torchmetrics takes the first in the list, sacrebleu the shorter one.
# Consequence: the same test set gives another score when its reference files are named in another order.
# Instead: score several references with sacrebleu, or sort each sentence's references by length first.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 torchmetrics==1.9.0 sacrebleu==2.6.0

"$folder/bin/python" - <<'PYTHON'
import sacrebleu
import torchmetrics
from sacrebleu.metrics import BLEU
from torchmetrics.functional.text import bleu_score, sacre_bleu_score

hypothesis = "we meet in the old town"  # 6 words
shorter = "we meet in the"  # 4 words
longer = "we meet in the old town at noon"  # 8 words

print("torchmetrics", torchmetrics.__version__, "sacrebleu", sacrebleu.__version__)
scores = {}
for name, references in {"shorter first": [shorter, longer], "longer first": [longer, shorter]}.items():
    scores[name] = [
        float(bleu_score([hypothesis], [references])),
        float(sacre_bleu_score([hypothesis], [references])),
        BLEU().corpus_score([hypothesis], [[text] for text in references]).score / 100,
    ]
    print("{}: bleu_score {:.4f}, sacre_bleu_score {:.4f}, sacrebleu {:.4f}".format(name, *scores[name]))

first, second = scores.values()
assert first[0] > 0.99 and second[0] < 0.72, "changed: bleu_score of torchmetrics"
assert first[1] > 0.99 and second[1] < 0.72, "changed: sacre_bleu_score of torchmetrics"
assert abs(first[2] - second[2]) < 1e-9, "changed: sacrebleu"
PYTHON
