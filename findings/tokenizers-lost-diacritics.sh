#!/usr/bin/env bash
# tokenizers and sentencepiece: the converted tokeniser drops diacritics which sentencepiece keeps.
#
# Expected: a SentencePiece model that is converted for "tokenizers" normalises as sentencepiece does, with the same table.
# Seen: in decomposed text sentencepiece reads "tiếng" as "tiếng", tokenizers as "tiêng": the tone is gone, in silence.
#     Of "Việt" it makes "Viẹt", and half-width "ｶﾞ" stays in two code points where sentencepiece makes one "ガ" of it.
# Why: sentencepiece replaces the longest match of its table from each position on. tokenizers takes a whole grapheme of less
#     than 6 bytes, finds the shortest match at its start, and throws the rest of the grapheme away. Longer graphemes it
#     replaces code point by code point, so that no pair matches.
# Consequence: Vietnamese, Yoruba and polytonic Greek from macOS or PDF files, which are decomposed, lose letters' marks in
#     Transformers' fast tokenisers (T5, XLM-R, mBART-50, NLLB), although the model was trained with the original.
# Instead: compose the text to NFC before the tokeniser, in training and in translation.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet sentencepiece==0.2.3 tokenizers==0.23.3 protobuf==7.36.2

FOLDER=$folder "$folder/bin/python" - <<'PYTHON'
import os
import sys
import unicodedata
from importlib.metadata import version
from pathlib import Path

import sentencepiece
from tokenizers import SentencePieceUnigramTokenizer

words = "tiếng Việt là ngôn ngữ của người Việt và tiếng nói tieng Viet tiêng Viẹt ガギ カキ".split()
corpus = [" ".join(words[i:] + words[:i]) for i in range(len(words))] * 20
model = Path(os.environ["FOLDER"], "model")
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(corpus), model_prefix=str(model), vocab_size=100, hard_vocab_limit=False, minloglevel=2
)
original = sentencepiece.SentencePieceProcessor(model_file=f"{model}.model")
sys.path.insert(0, str(Path(sentencepiece.__file__).parent))  # where from_spm finds sentencepiece_model_pb2
converted = SentencePieceUnigramTokenizer.from_spm(f"{model}.model")


def read(text):
    """What each tokeniser makes of a text, from its subwords."""
    sides = original.encode(text, out_type=str), converted.encode(text).tokens
    return ["".join(side).replace("▁", " ").strip() for side in sides]


print("sentencepiece", version("sentencepiece"), "tokenizers", version("tokenizers"))
for composed, expected in {"tiếng Việt": "tiêng Viẹt", "ガギ": "カ\u3099キ\u3099"}.items():
    decomposed = "ｶﾞｷﾞ" if composed == "ガギ" else unicodedata.normalize("NFD", composed)
    first, second = read(decomposed)
    print(f"{composed}, decomposed: sentencepiece {first}, tokenizers {second} ({len(second)} code points)")
    assert first == composed, "changed: sentencepiece"
    assert second == expected != composed, "changed: tokenizers"
    assert read(unicodedata.normalize("NFC", composed)) == [composed, composed], "changed: composed text"
PYTHON
