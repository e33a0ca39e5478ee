#!/usr/bin/env bash
# hazm: its Normalizer cuts Persian numbers, 12.5 becomes the three words "۱۲ ٫ ۵".
#
# Expected: normalisation gives one form of a number, Persian digits with the Persian decimal sign: "۱۲٫۵". One word stays one.
# Seen: a number with a decimal sign or with the Persian sign for thousands becomes three words, of ASCII or Persian digits. Of
#     a version number and of a fraction the same. The word tokenizer alone keeps "12.5" whole.
# Why: one step writes the decimal point in the Persian way. The step for spaces then cuts the line into words by the word
#     tokenizer, for which this sign is punctuation, and joins the words by spaces. Spaces before "." and "،" are removed
#     again at the end, before this sign not.
# Consequence: training text that was normalised has cut numbers, references that were not have whole ones. A model learns to
#     write "۱۲ ٫ ۵", and no detokeniser joins it.
# Instead: Normalizer(correct_spacing=False), or persian_style=False where the text has no Persian signs in its numbers.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet hazm==0.10.0

"$folder/bin/python" - <<'PYTHON'
from importlib.metadata import version

from hazm import Normalizer, word_tokenize

cases = {"12.5": "۱۲ ٫ ۵", "۱۲٫۵": "۱۲ ٫ ۵", "۱٬۲۳۴": "۱ ٬ ۲۳۴", "v2.0": "v ۲ ٫ ۰", "1/2": "۱ / ۲", "12:30": "۱۲:۳۰"}

print("hazm", version("hazm"))
for text, expected in cases.items():
    found = Normalizer().normalize(text)
    print(f"{text} → {found}; without correct_spacing: {Normalizer(correct_spacing=False).normalize(text)}")
    assert found == expected, "changed"
assert word_tokenize("12.5") == ["12.5"], "changed"
assert Normalizer(correct_spacing=False).normalize("12.5") == "۱۲٫۵", "changed"
PYTHON
