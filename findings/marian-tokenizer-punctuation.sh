#!/usr/bin/env bash
# transformers: MarianTokenizer asks for sacremoses, loads its punctuation normaliser, and never applies it.
#
# Expected: with sacremoses installed, as its warning recommends, “yes” is normalised to "yes" before the subwords, as the
#     preprocessing of OPUS-MT's training data did.
# Seen: the subwords are those of the raw text; here the quotes are unknown. What normalize() returns is right.
# Why: nothing in the tokeniser calls its method normalize(); only the constructor and the warning know of sacremoses.
# Consequence: typographic quotes, apostrophes and no-break spaces reach the model as signs that it hardly saw, or as <unk>.
#     Translations and scores of the same model differ between Transformers and Marian with its own preprocessing.
# Instead: tokenizer(tokenizer.normalize(text)), for each source text.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet transformers==5.24.0 sentencepiece==0.2.3 sacremoses==0.2.0

FOLDER=$folder HF_HUB_OFFLINE=1 "$folder/bin/python" - <<'PYTHON'
import json
import os
from importlib.metadata import version
from pathlib import Path

import sentencepiece
from transformers import MarianTokenizer

folder = Path(os.environ["FOLDER"])
corpus = ["he said \"yes\" and \"no\" , it's fine", "don't say \"it's 5% of it\""] * 50
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(corpus), model_prefix=str(folder / "spm"), vocab_size=60, hard_vocab_limit=False, minloglevel=2
)
spm = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))
pieces = [spm.id_to_piece(i) for i in range(len(spm))]
(folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate([*pieces, "<pad>"])}))
model, vocabulary = str(folder / "spm.model"), str(folder / "vocab.json")
tokenizer = MarianTokenizer(source_spm=model, target_spm=model, vocab=vocabulary, source_lang="en", target_lang="de")


def read(text):
    """The subwords that the model gets, and how many of them are unknown."""
    ids = tokenizer(text).input_ids
    return " ".join(tokenizer.convert_ids_to_tokens(ids)), ids.count(tokenizer.unk_token_id)


print(*(f"{name} {version(name)}" for name in ("transformers", "sentencepiece", "sacremoses")), sep=", ")
for typographic, plain in ("he said “yes”", 'he said "yes"'), ("it’s fine", "it's fine"):
    found, normalised = read(typographic), read(tokenizer.normalize(typographic))
    print(f"{typographic}: {found[0]}, {found[1]} unknown; after normalize(): {normalised[0]}, {normalised[1]} unknown")
    assert tokenizer.normalize(typographic) == plain, "changed: normalize"
    assert normalised == read(plain) and normalised[1] == 0
    assert found != normalised and found[1] > 0, "changed: the call normalises"
PYTHON
