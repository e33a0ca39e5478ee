#!/usr/bin/env bash
# opusfilter: remove_duplicates with letters_only drops Hindi, Tamil and Thai sentences that say something else.
#
# Expected: duplicates are looked for without punctuation, spaces and digits; words that are spelt otherwise stay different.
# Seen: "this is milk" and "this is a tooth" are the same in Tamil, "I see a tiger" and "I see a shirt" in Thai, "this is the
#     day" and "this is a gift" in Hindi. With letter_words_only, Hindi "I drink water" and "they read books" are the same.
# Why: letters are the characters of Unicode's class of letters. The vowel signs of the scripts of India, Thailand, Laos, Burma
#     and Cambodia, and the tones of Thai, are in the class of marks: they are removed, and with letter_words_only each word
#     that has one.
# Consequence: pairs are lost that are no duplicates, short ones above all, while the same options are right for English.
#     The log has a number of duplicates, which looks like any other.
# Instead: neither option for such a language: remove punctuation and digits by a preprocessor before.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet opusfilter==3.3.1

FOLDER=$folder "$folder/bin/python" - <<'PYTHON'
import json
import os
import subprocess
from importlib.metadata import version
from pathlib import Path

folder = Path(os.environ["FOLDER"])


def kept(sentences, option):
    """The sentences that the command keeps."""
    (folder / "in").write_text("".join(sentence + "\n" for sentence in sentences), encoding="utf-8")
    parameters = {"inputs": ["in"], "outputs": ["out"], **({option: True} if option else {})}
    configuration = {"common": {"output_directory": str(folder)}, "steps": [{"type": "remove_duplicates"}]}
    configuration["steps"][0]["parameters"] = parameters
    (folder / "configuration.yaml").write_text(json.dumps(configuration), encoding="utf-8")
    command = [folder / "bin/opusfilter", "--overwrite", folder / "configuration.yaml"]
    subprocess.run(command, check=True, capture_output=True)
    return (folder / "out").read_text(encoding="utf-8").splitlines()


print("opusfilter", version("opusfilter"))
for language, sentences in {
    "Tamil, milk or tooth": ["இது பால்", "இது பல்"],
    "Thai, tiger or shirt": ["ฉันเห็นเสือ", "ฉันเห็นเสื้อ"],
    "Hindi, day or gift": ["यह दिन है", "यह दान है"],
    "Hindi, water or books": ["मैं पानी पीता हूँ", "वे किताबें पढ़ते हैं"],
    "English": ["It is a bat", "It is a bit"],
}.items():
    counts = {option: len(kept(sentences, option)) for option in ("", "letters_only", "letter_words_only")}
    print(f"{language}: of two sentences are kept {counts['']}, with letters_only {counts['letters_only']},",
          f"with letter_words_only {counts['letter_words_only']}: {' / '.join(sentences)}")
    if language == "English":
        assert set(counts.values()) == {2}, "changed: English"
    else:
        option = "letter_words_only" if "water" in language else "letters_only"
        assert counts[""] == 2 and counts[option] == 1, f"changed: {language}"
PYTHON
