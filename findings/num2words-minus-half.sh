#!/usr/bin/env bash
# num2words: -0.5 is "zero point five" in English and most other languages; in some 1.05 is read as 1.5.
#
# Expected: words that name the number, in all of its languages, also for numbers between -1 and 0.
# Seen: -0.5 and 0.5 have the same words in most languages that it knows, as a float, a Decimal or a string. -1.5 is right.
#     1.05 and 1.5 have the same words in Bengali and Persian. 0.05 is "zero point five" in Turkish and Vietnamese, where
#     0.5 is "zero point fifty". The 80th is the 70th in Belarusian.
# Why: the sign comes from the integer part, and that of -0.5 is 0. Bengali, Turkish and Vietnamese read the decimals as an
#     integer, which has no leading zeros; Persian calls every 5 behind the point a half.
# Consequence: text normalisation for speech translation, and synthetic pairs of digits and words, hold wrong numbers:
#     temperatures and changes in percent around zero, prices, rates. The sentences look well formed.
# Instead: write the sign yourself and convert the absolute value. Convert back what you generate, or check that different
#     numbers have different words, for each language that you use.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet --no-deps num2words==0.5.14 # its one requirement serves the command line

"$folder/bin/python" - <<'PYTHON'
from decimal import Decimal
from importlib.metadata import version

from num2words import CONVERTER_CLASSES, num2words

print("num2words", version("num2words"))
for number in -1.5, -0.5, Decimal("-0.5"), "-0.5", 0.5:
    print("en", repr(number), num2words(number))
assert num2words(-1.5) == "minus one point five"
assert {num2words(number) for number in (-0.5, Decimal("-0.5"), "-0.5")} == {num2words(0.5)}, "changed: -0.5"

lost, kept = [], []
for language in sorted(CONVERTER_CLASSES):
    try:
        plus, minus = num2words(0.5, lang=language), num2words(-0.5, lang=language)
    except (NotImplementedError, TypeError, ValueError, AttributeError, KeyError):
        continue
    (lost if plus == minus else kept).append(language)
print(f"-0.5 has the words of 0.5 in {len(lost)} languages: {' '.join(lost)}")
print(f"-0.5 has words of its own in {len(kept)}: {' '.join(kept)}")
assert {"de", "en", "es", "fr", "ja", "ko", "pt", "ru", "tr", "uk", "vi"} <= set(lost), "changed: the sign"

for language in "bn", "fa", "tr", "vi", "en":
    print(language, *(f"{number}: {num2words(number, lang=language)}" for number in (0.05, 0.5, 1.05, 1.5)), sep="  ")
for language in "bn", "fa":
    assert num2words(1.05, lang=language) == num2words(1.5, lang=language), f"changed: 1.05 in {language}"
assert num2words(0.05, lang="vi").split()[-1] == num2words(5, lang="vi"), "changed: Vietnamese"
assert num2words(0.05, lang="tr").endswith("virgül" + num2words(5, lang="tr")), "changed: Turkish"
assert num2words(80, lang="be", to="ordinal") == num2words(70, lang="be", to="ordinal"), "changed: Belarusian"
PYTHON
