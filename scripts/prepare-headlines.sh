#!/usr/bin/env bash
# The embedded summarisation corpus, short Chinese news and their headlines: from its grammar to OUT/bin, a data folder
# for fairseq. Nothing is downloaded.
#
#     prepare-headlines.sh [--train N] [--valid N] [--test N] [--seed N] OUT
#
#   --train N, --valid N, --test N
#                  pairs of each split (30,000, 500 and 500)
#   --seed N       of the corpus (1)
#
# The tokens are characters; source and target are `text` and `summary`, with a joint dictionary.
#
#   OUT/bin        binarised: train, valid, test
#   OUT/raw        the text as it was written, the references for ROUGE; OUT/characters is its next form
#   OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts, hashes
#
# Run again it does nothing; run again after an interruption it goes on where it was.

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
