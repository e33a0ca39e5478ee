#!/usr/bin/env bash
# ctranslate2: the score of a translation with a target prefix is divided by a length that includes the prefix.
#
# Expected: the score is the mean log probability of all tokens, prefix included, or that of the tokens which were searched.
# Seen: the sum counts only the searched tokens, the length counts the prefix as well. With 6 forced words and 4 found ones
#     the score is less than half of the mean of the latter. transformers 5.24 divides by the searched tokens.
# Why: the scores of forced steps are not added up, but the steps count for the length penalty.
# Consequence: the longer the forced part, the better the score, whatever the translation: interactive translation, forced
#     terms, language tokens of NLLB or M2M-100, and teacher-forced sampling. A threshold on scores, or a choice between
#     hypotheses with and without prefix, is wrong.
# Instead: length_penalty=0 gives the sum; divide it yourself, or score the result with score_batch.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --quiet ctranslate2==4.8.5 numpy==2.4.6

FOLDER=$folder "$folder/bin/python" - <<'PYTHON'
import os
from pathlib import Path

import ctranslate2
import numpy
from ctranslate2.specs import TransformerSpec

WIDTH, WORDS = 8, ["<unk>", "<s>", "</s>", *(f"w{i}" for i in range(17))]
random = numpy.random.default_rng(9)


def small_model():
    """A Transformer of one layer a side, with random weights and a leaning to end."""
    model = TransformerSpec.from_config((1, 1), 2)
    across = model.decoder.layer[0].attention
    norms, linears = [across.layer_norm], [(model.decoder.projection, len(WORDS), WIDTH)]
    linears += zip(across.linear, (WIDTH, 2 * WIDTH, WIDTH), [WIDTH] * 3, strict=True)
    for side in model.encoder, model.decoder:
        own, inner = side.layer[0].self_attention, side.layer[0].ffn
        norms += [side.layer_norm, own.layer_norm, inner.layer_norm]
        linears += [(own.linear[0], 3 * WIDTH, WIDTH), (own.linear[1], WIDTH, WIDTH)]
        linears += [(inner.linear_0, 16, WIDTH), (inner.linear_1, WIDTH, 16)]
    for norm in norms:
        norm.gamma, norm.beta = numpy.ones(WIDTH, "float32"), numpy.zeros(WIDTH, "float32")
    for layer, rows, columns in linears:
        layer.weight = random.normal(0, 0.7, (rows, columns)).astype("float32")
        layer.bias = numpy.zeros(rows, "float32")
    for embeddings in model.encoder.embeddings[0], model.decoder.embeddings:
        embeddings.weight = random.normal(size=(len(WORDS), WIDTH)).astype("float32")
    model.decoder.projection.bias[WORDS.index("</s>")] = 5
    model.register_source_vocabulary(WORDS)
    model.register_target_vocabulary(WORDS)
    model.validate()
    return model


folder = Path(os.environ["FOLDER"], "model")
folder.mkdir()
small_model().save(str(folder))
translator = ctranslate2.Translator(str(folder))
source, prefix = ["w4", "w9", "w2", "</s>"], [f"w{i}" for i in (5, 3, 8, 1, 7, 2)]

print("ctranslate2", ctranslate2.__version__)
result = translator.translate_batch([source], target_prefix=[prefix], beam_size=2, return_scores=True)[0]
translation, score = result.hypotheses[0], result.scores[0]
log_probs = translator.score_batch([source], [translation])[0].log_probs  # of the words and the end
searched = sum(log_probs[len(prefix) :])
print(" ".join(translation), f"(prefix of {len(prefix)}), score {score:.4f}")
print(f"mean over all tokens {sum(log_probs) / len(log_probs):.4f}")
print(f"mean over the searched tokens {searched / (len(log_probs) - len(prefix)):.4f}")
print(f"sum over the searched tokens by the number of all {searched / len(log_probs):.4f}")
assert len(translation) > len(prefix)
assert abs(score - searched / len(log_probs)) < 1e-4, "changed: the score with a prefix"

plain = translator.translate_batch([source], beam_size=2, return_scores=True, min_decoding_length=0)[0]
log_probs = translator.score_batch([source], plain.hypotheses)[0].log_probs
assert abs(plain.scores[0] - sum(log_probs) / len(log_probs)) < 1e-4, "changed: the score without a prefix"
PYTHON
