#!/usr/bin/env bash
# Prepare WMT14 English-French, 36M pairs, from the raw archives, and binarise it for fairseq, in OUT/bin, for both directions.
#
#     prepare-wmt14-en-fr.sh [OPTION VALUE]... OUT
#
#   --from DIR     the folder of the archives, with their original names. Without it they are downloaded (MIRROR=URL: all from there):
#                  training-parallel-europarl-v7.tgz, training-parallel-commoncrawl.tgz, training-parallel-un.tgz,
#                  training-parallel-nc-v9.tgz, training-giga-fren.tar, dev.tgz and test-full.tgz (of WMT14)
#   --valid SET    newstest2012+2013 (default, as in CapsNMT), or newstest2013
#   --merges N     BPE merges (50,000: CapsNMT; fairseq's own recipe has 40,000)
#   --bpe HOW      subword-nmt (default), sentencepiece (its unigram model) or sentencepiece-bpe
#   --share HOW    joint (default): one list of merges and one dictionary for both languages; or separate
#   --max-length N, --ratio X
#                  leave out training pairs with more than N (250) words in a sentence, or more than X (1.5) times the other's
#   --codes FILE --dict FILE
#                  OUT/codes and OUT/dict.txt of an earlier run, needed to start from a checkpoint of that run
#   --limit N      only the first N training pairs, for a quick test
#
# Punctuation is normalised, unprintable characters are dropped, words are tokenised (split at hyphens, XML escapes kept).
# Case is kept.
#
#   OUT/bin        binarised: train, valid, test (newstest2014, 3,003 pairs)
#   OUT/raw        the original text and references for sacreBLEU; OUT/tokenised, OUT/clean and OUT/bpe: its later stages
#   OUT/codes, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts of every part and stage, hashes
#
# The same command resumes an interrupted run. It does nothing after a finished run.

source "$(dirname "$0")/corpus.sh"

languages=(en fr)
merges=50000
max_length=250 ratio=1.5 # keeps 36M of 40.8M pairs
hyphens=--aggressive-dash-splits
valid=newstest2012+2013
wmt10=https://www.statmt.org/wmt10 wmt13=https://www.statmt.org/wmt13 wmt14=https://www.statmt.org/wmt14

raw() { # PART
    mkdir "$1"
    training_part "$1" europarl-v7.fr-en.{en,fr} $wmt13/training-parallel-europarl-v7.tgz
    training_part "$1" commoncrawl.fr-en.{en,fr} $wmt13/training-parallel-commoncrawl.tgz
    training_part "$1" undoc.2000.fr-en.{en,fr} $wmt13/training-parallel-un.tgz
    training_part "$1" news-commentary-v9.fr-en.{en,fr} $wmt14/training-parallel-nc-v9.tgz
    training_part "$1" giga-fren.release2.fixed.{en,fr}.gz $wmt10/training-giga-fren.tar
    newstests "$1" $wmt14/dev.tgz
    held_out "$1" test newstest2014-fren-src.en.sgm newstest2014-fren-ref.fr.sgm $wmt14/test-full.tgz
}

take_corpus_options "from limit valid merges bpe share max-length ratio codes dict" "$@"
need_newstests "$valid"
prepare_corpus
