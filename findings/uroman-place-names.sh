#!/usr/bin/env bash
# uroman: Chinese and Japanese names become numbers, 四川 is "4chuan" and 千葉 "1000ye".
#
# Expected: a romanisation spells sounds: "sichuan", "qianye". Numbers that are written in Chinese are read or become digits.
# Seen: characters that can be a number become digits, also in names and common words: "9zhou" for 九州, "5yue" for May.
#     Only a few are spared: 万里 is "wanli". The language code "zho" or "jpn" does not change it.
# Why: uroman knows the value of each numeral and combines neighbours by it; it has no words, so a name is a number too.
# Consequence: a system that copies, aligns or scores by romanised text (names in low-resource translation, character metrics
#     across scripts, speech models with romanised text) never matches "Sichuan" with 四川, but "4" with it.
# Instead: romanise Chinese and Japanese with a dictionary (pypinyin, cutlet), and check names with 一 to 九, 十, 百, 千.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet uroman==1.3.1.1

"$folder/bin/python" - <<'PYTHON'
from importlib.metadata import version

import uroman

romaniser = uroman.Uroman()
expected = {
    "北京": "beijing",
    "四川": "4chuan",
    "九州": "9zhou",
    "千葉県": "1000yexian",
    "三星": "3xing",
    "五月": "5yue",
    "一起": "1qi",
    "二十五": "25",
    "万里": "wanli",
}

print("uroman", version("uroman"))
for text, result in expected.items():
    found = {code: romaniser.romanize_string(text, lcode=code) for code in (None, "zho", "jpn")}
    print(text, found[None])
    assert found == dict.fromkeys(found, result), f"changed: {text}, {found}"
PYTHON
