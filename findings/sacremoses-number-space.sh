#!/usr/bin/env bash
# sacremoses: the punctuation normaliser turns the thousands of a number into decimals.
#
# Expected: "5 000" with a no-break space keeps it, or gets the separator of thousands: 5,000 in English, 5.000 in German.
# Seen: the reverse. English has 5.000, which means five; German, French, Spanish and Czech have 5,000, which is five there.
# Why: Moses' script puts the decimal sign of the language in place of a no-break space between two digits, and sacremoses
#     is its port. "1 234 567" has two of them and becomes 1.234.567 in English.
# Consequence: French and Czech write thousands with this space, so that 5000 becomes 5 in the training data. A pair whose
#     other side has 5,000 or 5000 then teaches wrong numbers, or a filter of numbers drops it.
# Instead: MosesPunctNormalizer(norm_numbers=False), or replace a no-break space between digits first.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet sacremoses==0.2.0

"$folder/bin/python" - <<'PYTHON'
from importlib.metadata import version

from sacremoses import MosesPunctNormalizer

SPACE = "\N{NO-BREAK SPACE}"
decimal_sign = {"en": ".", "de": ",", "fr": ",", "es": ",", "cs": ","}

print("sacremoses", version("sacremoses"))
for language, sign in decimal_sign.items():
    normalised = MosesPunctNormalizer(language).normalize(f"5{SPACE}000")
    kept = MosesPunctNormalizer(language, norm_numbers=False).normalize(f"5{SPACE}000")
    print(f"{language}: 5 000 becomes {normalised}, with norm_numbers=False {kept}")
    assert normalised == f"5{sign}000", f"changed: thousands in {language}"
    assert kept == f"5{SPACE}000", f"changed: norm_numbers=False in {language}"

million = MosesPunctNormalizer("en").normalize(f"1{SPACE}234{SPACE}567")
print("en: 1 234 567 becomes", million)
assert million == "1.234.567", "changed: two separators of thousands"
PYTHON
