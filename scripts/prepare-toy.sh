#!/usr/bin/env bash
# Generate the embedded English-German corpus and binarise it for fairseq, in OUT/bin. Nothing is downloaded.
#
#     prepare-toy.sh [--train N] [--valid N] [--test N] [--seed N] OUT
#
#   --train N, --valid N, --test N
#                  sentence pairs of each split (30,000, 500 and 500)
#   --seed N       seed of the corpus (1)
#
# Punctuation is normalised, words are tokenised (XML escapes kept), case is kept. Joint BPE of 2,500 merges, joint dictionary.
#
#   OUT/bin        binarised: train, valid, test
#   OUT/raw        the generated text and references for sacreBLEU; OUT/tokenised and OUT/bpe: its later stages
#   OUT/raw/alignments
#                  SPLIT.align: the words of OUT/tokenised that translate each other, as 0-0 1-2, source and target, from 0
#   OUT/codes, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts, hashes
#
# The same command resumes an interrupted run. It does nothing after a finished run.

source "$(dirname "$0")/corpus.sh"

languages=(en de)
tokenising=tokenise
merges=2500
more_settings=("grammar 2") # the version of the sentences
train=30000 valid=500 test=500 seed=1

raw() { # PART
    fairseq-capsule toy-corpus --train "$train" --valid "$valid" --test "$test" --seed "$seed" --alignments "$1"
    mkdir "$1/alignments"
    mv "$1"/*.align "$1/alignments" # the next stage tokenises the other files
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
