#!/usr/bin/env bash
# Translation on the embedded corpus: data, training, averaging, translation, scores, a picture of the attention.
#
#     demo.sh [--train N] [--test N] [--updates N] [--at-least BLEU] OUT
#
#   --train N         training pairs of the corpus (30,000)
#   --test N          unseen test pairs (500)
#   --updates N       updates of the training (2,000)
#   --at-least BLEU   fail below this detokenised BLEU on the unseen test sentences (80)
#   OUT               the folder for the data, the run, the translations and the picture
#
# The same command resumes an interrupted run.

source "$(dirname "$0")/common.sh"
source "$scripts/demo_common.sh"

train=30000 test=500 updates=2000 at_least=80
take_options "train test updates at-least" "$@"
take_folder
need_positive --train "$train" 10000000
need_positive --test "$test" 10000000
need_positive --updates "$updates"
[[ $at_least =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "--at-least must be a number, not '$at_least'"
[ "$updates" -ge 60 ] || die "--updates $updates: give at least 60, so that there are three checkpoints to average"
need_tools fairseq-capsule fairseq-generate fairseq-train

step "1 of 6: preparing the corpus"
"$scripts/prepare-toy.sh" --train "$train" --test "$test" "$out/data"

step "2 of 6: training a capsule-Transformer of 2+2 layers for $updates updates"
train "$updates" "$out/train.log" "$out/data/bin" --arch capsule_transformer_tiny --warmup-updates 400 --max-tokens 1024 \
    --save-dir "$out/run"

step "3 of 6: averaging the last checkpoints"
fairseq-capsule average "$out/run" --updates --last 3 --output "$out/average.pt"

step "4 of 6: translating the test sentences"
generate "$out/generate.out" "$out/data/bin" "$out/average.pt"

step "5 of 6: scores, and some translations with their references"
fairseq-capsule score "$out/generate.out" "$out/data/raw/test.de" --output "$out/translations.de" --json | tee "$out/scores" |
    grep -v '^{'
show source "$out/data/raw/test.en" reference "$out/data/raw/test.de" translation "$out/translations.de"

step "6 of 6: attention before and after routing"
fairseq-capsule picture "$out/average.pt" "$out/data/bin" --codes "$out/data/codes" --tokenizer moses \
    --text "$(head -n 1 "$out/data/raw/test.en")" --out "$out/attention.png"

verdict detokenised_bleu BLEU "$at_least" "$out/scores"
echo "The picture: $out/attention.png"
