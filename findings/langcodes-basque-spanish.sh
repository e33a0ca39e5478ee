#!/usr/bin/env bash
# langcodes: the closest language is the one that the speakers also read, not a related one: Spanish for Basque.
#
# Expected: closest_match finds a language that is close as a language: Belarusian for Ukrainian, Scottish Gaelic for Irish.
#     For Basque, which has no relatives, it finds none.
# Seen: Basque gives Spanish, Breton French, Welsh and Irish English, Guarani Spanish, Belarusian and Ukrainian Russian.
#     Ukrainian with Belarusian alone, or Irish with Gaelic alone, gives "und", no match. Spanish does not give Basque.
# Why: the distances are Unicode CLDR's for the language of a user interface: what its readers probably understand. That of
#     Basque to Spanish is 20, below the limit of 25; that of Ukrainian to Belarusian is 84.
# Consequence: who chooses the model, tokeniser or parent language of a language pair with it sends Basque text to a Spanish
#     model, silently, and misses the languages from which transfer helps.
# Instead: closest_match(max_distance=9) finds none of these; it keeps variants such as pt-BR for pt-PT, and German for
#     Luxembourgish. Take related languages from Glottolog or lang2vec.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet langcodes==3.5.1

"$folder/bin/python" - <<'PYTHON'
from importlib.metadata import version

from langcodes import closest_match, tag_distance

supported = {  # the language: a related one or, for want of it, any other; the one that is found
    "eu": ("ka", "es"),
    "br": ("cy", "fr"),
    "cy": ("br", "en"),
    "ga": ("gd", "en"),
    "gn": ("tr", "es"),
    "uk": ("be", "ru"),
    "be": ("uk", "ru"),
}

print("langcodes", version("langcodes"))
for language, (other, read) in supported.items():
    found, distance = closest_match(language, [other, read])
    alone = closest_match(language, [other])[0]
    print(f"{language}: of {other} and {read} {found}, distance {distance}; of {other} alone {alone}")
    assert found == read and distance <= 25, f"changed: {language}"
    assert alone == "und", f"changed: {language} and {other}"
    assert closest_match(read, [language])[0] == "und", f"changed: {read} for {language}"
    assert closest_match(language, [other, read], max_distance=9)[0] == "und"

assert tag_distance("uk", "be") == 84, "changed: Ukrainian and Belarusian"
assert closest_match("pt-PT", ["es", "pt-BR"], max_distance=9)[0] == "pt-BR"
assert closest_match("lb", ["nl", "de"], max_distance=9)[0] == "de"
PYTHON
