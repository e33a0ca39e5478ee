#!/usr/bin/env bash
# pysbd: Chinese sentences are cut before the closing quote, and the next sentence begins with it.
#
# Expected: a full stop inside quotes ends the sentence after the closing quote, as in English, or does not end one.
# Seen: 他说：“好。”然后走了。 becomes 他说：“好。 and ”然后走了。 The same with （…）. Corner brackets 「…」 are kept whole, and so are
#     the quotes of English.
# Why: the rules of Chinese protect what stands between 《》 and 「」 alone. Curly quotes, the usual ones of mainland China, and
#     full-width parentheses are not among them, though they are among the rules of other languages.
# Consequence: sentences that are aligned, filtered by punctuation, back-translated or scored by lines have an open quote in one
#     line and a stray closing one in the next; in dialogue that is every second line, and the other side has them whole.
# Instead: join a line that begins with a closing sign to the one before it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet pysbd==0.3.4

"$folder/bin/python" - <<'PYTHON'
from importlib.metadata import version

import pysbd

cases = [
    ("zh", "他说：“好。”然后走了。", ["他说：“好。", "”然后走了。"]),
    ("zh", "（他走了。）我也走了。", ["（他走了。", "）我也走了。"]),
    ("zh", "她说：「好。」然後走了。", ["她说：「好。」然後走了。"]),
    ("en", "He said: “Good.” Then he left.", ["He said: “Good.” ", "Then he left."]),
]

print("pysbd", version("pysbd"))
for language, text, expected in cases:
    found = pysbd.Segmenter(language=language, clean=False).segment(text)
    print(language, found)
    assert found == expected, f"changed: {text}"
PYTHON
