#!/usr/bin/env bash
# Generate the embedded summarisation corpus, short Chinese news with headlines, and binarise it for fairseq, in OUT/bin.
# Nothing is downloaded.
#
#     prepare-headlines.sh [--train N] [--valid N] [--test N] [--seed N] OUT
#
#   --train N, --valid N, --test N
#                  pairs of each split (30,000, 500 and 500)
#   --seed N       seed of the corpus (1)
#
# The tokens are characters. Source and target are called `text` and `summary` and share a dictionary.
#
#   OUT/bin        binarised: train, valid, test
#   OUT/raw        the generated text and references for ROUGE; OUT/characters: its next stage
#   OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts, hashes
#
# The same command resumes an interrupted run. It does nothing after a finished run.

source "$(dirname "$0")/common.sh"

train=30000 valid=500 test=500 seed=1
take_options "train valid test seed" "$@"
take_folder
need_positive --train "$train" 10000000
need_positive --valid "$valid" 10000000
need_positive --test "$test" 10000000
need_positive --seed "$seed"
need_tools fairseq-capsule fairseq-preprocess flock python

raw() { # PART
    fairseq-capsule toy-corpus --corpus headlines --train "$train" --valid "$valid" --test "$test" --seed "$seed" "$1"
    (cd "$1" && sha256sum -- *.{text,summary} >SHA256SUMS)
}

enter "$out" "train $train" "valid $valid" "test $test" "seed $seed"
stage raw raw
stage characters in_pieces raw spell
stage bin binarise_characters 3500
stage dict.txt cp bin/dict.text.txt
stage manifest.tsv manifest
echo "ready: $PWD/bin"
