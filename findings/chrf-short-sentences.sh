#!/usr/bin/env bash
# torchmetrics, nltk and sacrebleu: a perfect translation of one short word has chrF 50 or 100.
#
# Expected: chrF of a sentence against itself is 100 with every library, and equal options give equal figures.
# Seen: "Yes" against "Yes" has 100 in sacrebleu and 50 in torchmetrics and nltk; a two-character Chinese word has 33.
#     Over a file of short and long lines nltk prints another figure again.
# Why: chrF is a mean over n-grams of 1 to 6 characters. A text of three characters has no 4-gram. sacrebleu leaves out the
#     orders that a side does not have; the other two count them as 0. Besides, nltk's corpus_chrf is the mean of the
#     scores of the lines, so that one word weighs as much as fifty; sacrebleu's adds up the n-grams of all lines.
# Consequence: chrF by sentence, which rerankers, minimum Bayes risk decoding and filters use, ranks short lines far too low,
#     most of all in Chinese and Japanese. Figures of different libraries cannot be compared.
# Instead: use sacrebleu for corpora and for sentences.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 torchmetrics==1.9.0 nltk==3.10.4 sacrebleu==2.6.0

"$folder/bin/python" - <<'PYTHON'
import nltk
import sacrebleu
import torchmetrics
from nltk.translate.chrf_score import corpus_chrf
from sacrebleu.metrics import CHRF
from torchmetrics.functional.text import chrf_score


def scores(hypotheses, references):
    """chrF, characters only and beta 2, by sacrebleu, torchmetrics and nltk."""
    return (
        CHRF().corpus_score(hypotheses, [references]).score,
        100 * float(chrf_score(hypotheses, [[text] for text in references], n_word_order=0)),
        100 * corpus_chrf(references, hypotheses, beta=2.0),
    )


print("sacrebleu", sacrebleu.__version__, "torchmetrics", torchmetrics.__version__, "nltk", nltk.__version__)
long = "The big house on the hill has had a red roof for many years."
cases = {
    "one word": (["Yes"], ["Yes"]),
    "one Chinese word": (["是的"], ["是的"]),
    "a long sentence": ([long], [long]),
    "a wrong word and a long sentence": (["Yes.", long], ["No.", long]),
}
found = {}
for name, pair in cases.items():
    found[name] = [round(score, 1) for score in scores(*pair)]
    print(f"{name}: sacrebleu {found[name][0]}, torchmetrics {found[name][1]}, nltk {found[name][2]}")

assert found["one word"] == [100, 50, 50], "changed: chrF of a short word"
assert found["one Chinese word"] == [100, 33.3, 33.3], "changed: chrF of a short Chinese word"
assert found["a long sentence"] == [100, 100, 100]
pooled, _, mean = found["a wrong word and a long sentence"]
assert pooled > 90 and mean < 60, "changed: chrF of a file"
PYTHON
