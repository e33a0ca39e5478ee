#!/usr/bin/env bash
# WMT14 English-French, 36M pairs: from the raw archives to OUT/bin, a data folder for fairseq, for both directions.
#
#     prepare-wmt14-en-fr.sh [OPTION VALUE]... OUT
#
#   --from DIR     the folder of the archives, under their own names; without it they are downloaded (MIRROR=URL: all from there):
#                  training-parallel-europarl-v7.tgz, training-parallel-commoncrawl.tgz, training-parallel-un.tgz,
#                  training-parallel-nc-v9.tgz, training-giga-fren.tar, dev.tgz and test-full.tgz (of WMT14)
#   --valid SET    newstest2012+2013 (the default, as CapsNMT), or newstest2013
#   --merges N     of BPE (50,000: CapsNMT; fairseq's own recipe has 40,000)
#   --bpe HOW      subword-nmt (the default); sentencepiece, its unigram model, or sentencepiece-bpe
#   --share HOW    joint (the default): one list of merges and one dictionary for both languages; or separate
#   --max-length N, --ratio X
#                  training pairs with more words than N (250) in a sentence, or X (1.5) times those of the other, are left out
#   --codes FILE --dict FILE
#                  OUT/codes and OUT/dict.txt of an earlier run, for a model that starts from that run's checkpoint
#   --limit N      only the first N training pairs, for a quick try
#
# Punctuation normalised, unprinted characters dropped, tokenised (split at hyphens, XML escapes kept), true case.
#
#   OUT/bin        binarised: train, valid, test (newstest2014, 3,003 pairs)
#   OUT/raw        the text as it came, the references for sacreBLEU; OUT/tokenised, OUT/clean and OUT/bpe are its next forms
#   OUT/codes, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts of every part and stage, hashes
#
# Run again it does nothing; run again after an interruption it goes on where it was.

source "$(dirname "$0")/corpus.sh"

languages=(en fr)
merges=50000
max_length=250 ratio=1.5 # leaves 36M of 40.8M
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
