#!/usr/bin/env bash
# The embedded English-German corpus: from its grammar to OUT/bin, a data folder for fairseq. Nothing is downloaded.
#
#     prepare-toy.sh [--train N] [--valid N] [--test N] [--seed N] OUT
#
#   --train N, --valid N, --test N
#                  sentence pairs of each split (30,000, 500 and 500)
#   --seed N       of the corpus (1)
#
# Punctuation normalised, tokenised (XML escapes kept), true case, joint BPE of 2,500 merges, joint dictionary.
#
#   OUT/bin        binarised: train, valid, test
#   OUT/raw        the text as it was written, the references for sacreBLEU; OUT/tokenised and OUT/bpe are its next forms
#   OUT/codes, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts, hashes
#
# Run again it does nothing; run again after an interruption it goes on where it was.

source "$(dirname "$0")/corpus.sh"

languages=(en de)
tokenising=tokenise
merges=2500
train=30000 valid=500 test=500 seed=1

raw() { # PART
    fairseq-capsule toy-corpus --train "$train" --valid "$valid" --test "$test" --seed "$seed" "$1"
    (cd "$1" && sha256sum -- *.{en,de} >SHA256SUMS)
}

tokenise() { # LANG
    sacremoses --quiet --language "$1" normalize tokenize
}

need_tools fairseq-capsule
take_corpus_options "train valid test seed" "$@"
need_positive --train "$train" 10000000
need_positive --valid "$valid" 10000000
need_positive --test "$test" 10000000
need_positive --seed "$seed"
prepare_corpus
