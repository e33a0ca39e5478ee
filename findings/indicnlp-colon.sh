#!/usr/bin/env bash
# indic-nlp-library: the normaliser makes a letter of every colon that follows an Indic letter or digit.
#
# Expected: normalisation unifies code points of one letter; a colon, a vertical bar and an address stay.
# Seen: the colon of "समय: 10" and of the ratio "१:२" becomes the letter visarga, and "|", also in an address, a full stop.
# Why: some old texts write visarga as a colon, and danda, the full stop, as a vertical bar. The rules for that ask only
#     whether the sign before a colon is in the block of the script, and for the bar they ask nothing.
# Consequence: labels, speakers in subtitles, times and ratios change, in all scripts of the library. Targets that were
#     normalised teach a model words that end in visarga; a reference that was not normalised never matches them.
# Instead: normalise only text without these signs, or put colons and bars back where the input had them.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet indic-nlp-library==0.92

"$folder/bin/python" - <<'PYTHON'
from importlib.metadata import version

from indicnlp.normalize.indic_normalize import IndicNormalizerFactory

cases = [
    ("hi", "समय: 10", "समय\N{DEVANAGARI SIGN VISARGA} 10"),
    ("hi", "१:२", "१\N{DEVANAGARI SIGN VISARGA}२"),
    ("bn", "সময়: ১০", "সময়\N{BENGALI SIGN VISARGA} ১০"),
    ("kn", "ಸಮಯ: 10", "ಸಮಯ\N{KANNADA SIGN VISARGA} 10"),
    ("ta", "நேரம்: 10", "நேரம்\N{TAMIL SIGN VISARGA} 10"),
    ("hi", "https://example.org/a|b", "https://example.org/a\N{DEVANAGARI DANDA}b"),
]

print("indic-nlp-library", version("indic-nlp-library"))
for language, text, expected in cases:
    found = IndicNormalizerFactory().get_normalizer(language).normalize(text)
    print(f"{language}: {text} → {found}")
    assert found == expected, f"changed: {text}"
PYTHON
