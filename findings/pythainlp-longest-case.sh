#!/usr/bin/env bash
# PyThaiNLP: the tokenizer engine "longest" writes Latin words in lower case; the other engines keep them.
#
# Expected: word_tokenize cuts a text. Without spaces between them, the words of every engine are the text again.
# Seen: "newmm" and "mm" give back the text. "longest" gives "facebook" for Facebook and "nasa" for NASA.
# Why: where no Thai letter follows it takes the next run of other characters, and lower-cases it before it is a word.
# Consequence: names and acronyms of Thai text lose their case before training, without a warning; a translation into English
#     cannot copy them, and a case-sensitive BLEU of Thai output counts each as an error.
# Instead: "newmm", and compare the words joined with the text before you prepare a corpus.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet pythainlp==5.4.0

"$folder/bin/python" - <<'PYTHON'
from importlib.metadata import version

from pythainlp.tokenize import word_tokenize

text = "ผมใช้ Facebook ที่ NASA"
expected = {"newmm": text, "mm": text, "longest": text.lower()}

print("pythainlp", version("pythainlp"))
for engine, joined in expected.items():
    words = word_tokenize(text, engine=engine)
    print(engine, words)
    assert "".join(words) == joined, "changed"
PYTHON
