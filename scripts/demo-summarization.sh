#!/usr/bin/env bash
# Summarisation on the embedded corpus of Chinese headlines: data, training of GRET, averaging, headlines, ROUGE.
#
#     demo-summarization.sh [--train N] [--test N] [--updates N] [--at-least ROUGE] OUT
#
#   --train N         training pairs of the corpus (30,000)
#   --test N          unseen test pairs (500)
#   --updates N       updates of the training (600)
#   --at-least ROUGE  fail below this ROUGE-L F1 on the unseen test texts (80)
#   OUT               the folder for the data, the run and the headlines
#
# The same command resumes an interrupted run.

source "$(dirname "$0")/common.sh"
source "$scripts/demo_common.sh"

train=30000 test=500 updates=600 at_least=80
take_options "train test updates at-least" "$@"
take_folder
need_positive --train "$train" 10000000
need_positive --test "$test" 10000000
need_positive --updates "$updates"
[[ $at_least =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "--at-least must be a number, not '$at_least'"
[ "$updates" -ge 60 ] || die "--updates $updates: give at least 60, so that there are three checkpoints to average"
need_tools fairseq-capsule fairseq-generate fairseq-train

step "1 of 5: preparing the corpus"
"$scripts/prepare-headlines.sh" --train "$train" --test "$test" "$out/data"

step "2 of 5: training GRET of 2+2 layers for $updates updates"
train "$updates" "$out/train.log" "$out/data/bin" --arch gret_transformer_tiny --task capsule_summarization \
    --warmup-updates 300 --max-tokens 4096 --save-dir "$out/run"

step "3 of 5: averaging the last checkpoints"
fairseq-capsule average "$out/run" --updates --last 3 --output "$out/average.pt"

step "4 of 5: writing headlines of the test texts"
generate "$out/generate.out" "$out/data/bin" "$out/average.pt" --task capsule_summarization

step "5 of 5: ROUGE, and some headlines with their references"
fairseq-capsule score --rouge "$out/generate.out" "$out/data/raw/test.summary" --output "$out/headlines" --json |
    tee "$out/scores" | grep -v '^{'
show text "$out/data/raw/test.text" reference "$out/data/raw/test.summary" headline "$out/headlines"

verdict rougeL ROUGE-L "$at_least" "$out/scores"
