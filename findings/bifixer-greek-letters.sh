#!/usr/bin/env bash
# bifixer: ΔT becomes AT, 5 μm becomes 5 um, γ-rays become Y-rays, and a Russian name in a German line "HoBaя raзeTa".
#
# Expected: "characters from wrong alphabets" are look-alikes inside words of the right one, as a Cyrillic а in "pаper".
# Seen: in each line that is not Greek, 34 of the Greek letters become Latin ones, also where they stand alone: Δ is A, Σ is
#     E, Λ is A, γ is Y, η is n. π, λ, Ω and θ stay. In German, β is ß. Cyrillic words are turned letter by letter, as far
#     as a letter has a look-alike.
# Why: one table per language is applied to every character, without a look at the word. And it asks a list which languages
#     are written in Cyrillic: Yakut, Udmurt, Mari or Tuvan are not in it, so their whole text is mixed.
# Consequence: scientific and medical text loses its symbols on both sides, so the pair still looks perfect and later filters
#     keep it. A system then translates ΔT by AT. A corpus of Yakut is no Yakut any more.
# Instead: --ignore_characters, and ftfy for broken encodings. Replace look-alikes only in words that mix two scripts.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet bifixer==0.8.12 ftfy==6.3.1

FOLDER=$folder "$folder/bin/python" - <<'PYTHON'
import os
import subprocess
from importlib.metadata import version
from pathlib import Path

folder = Path(os.environ["FOLDER"])


def fixed(language, text, *options):
    (folder / "in.tsv").write_text(f"This is a line.\t{text}\n", encoding="utf-8")
    command = [folder / "bin/bifixer", "-q", "--scol", "1", "--tcol", "2", "--ignore_segmentation", "--ignore_duplicates"]
    command += [*options, folder / "in.tsv", folder / "out.tsv", "en", language]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    return (folder / "out.tsv").read_text(encoding="utf-8").rstrip("\n").split("\t")[1]


print("bifixer", version("bifixer"))
for language, text, expected in [
    ("fr", "ΔT vaut 3 K à 5 μm.", "AT vaut 3 K à 5 um."),
    ("fr", "le signe Σ et le rayon γ", "le signe E et le rayon Y"),
    ("fr", "λ, π et Ω restent", "λ, π et Ω restent"),
    ("de", "die β-Blocker", "die ß-Blocker"),
    ("de", "Die Zeitung heißt Новая газета.", "Die Zeitung heißt HoBaя raзeTa."),
    ("ru", "Газета", "Газета"),
    ("sah", "Саха сирэ", "Caxa cиpэ"),
]:
    found = fixed(language, text)
    print(f"{language}: {text} -> {found}")
    assert found == expected, f"changed: {text}"
    assert fixed(language, text, "--ignore_characters") == text, f"changed: {text}, characters ignored"

greek = "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρσςτυφχψω"
latin = [letter for letter, other in zip(greek, fixed("fr", greek), strict=True) if letter != other]
print(len(latin), "of", len(greek), "Greek letters become Latin:", "".join(latin))
assert len(latin) == 34, "changed: number of letters"
PYTHON
