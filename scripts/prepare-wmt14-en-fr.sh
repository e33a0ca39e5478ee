#!/usr/bin/env bash
# Prepare WMT14 English-French, 36M pairs, from the raw archives, and binarise it for fairseq, in OUT/bin, for both
# directions.
#
#     prepare-wmt14-en-fr.sh [OPTION VALUE]... OUT
#
#   --from DIR     the folder of the archives, named as published; without it they are downloaded (MIRROR=URL: from
#                  there): training-parallel-europarl-v7.tgz, training-parallel-commoncrawl.tgz, training-parallel-un.tgz,
#                  training-parallel-nc-v9.tgz, training-giga-fren.tar, dev.tgz and test-full.tgz (of WMT14)
#   --limit N      only the first N training pairs, for a quick test
#   --valid SET    newstest2012+2013 (default, as in CapsNMT), or newstest2013
#   --merges N     BPE merges (50,000: CapsNMT; fairseq's own recipe has 40,000)
#   --bpe HOW      subword-nmt (default), sentencepiece (its unigram model) or sentencepiece-bpe
#   --share HOW    joint (default): one list of merges and one dictionary for both languages; or separate
#   --max-length N leave out training pairs with more than N words in a sentence (250)
#   --ratio X      leave out training pairs with a sentence of more than X times the other's words (1.5)
#   --codes FILE   OUT/codes of an earlier run, needed with its --dict to start from a checkpoint of that run
#   --dict FILE    OUT/dict.txt of an earlier run, needed to start from a checkpoint of that run
#   --unknown-up-to PERCENT
#                  accept that so much of the training text is unknown to the dictionary (5)
#
# Punctuation is normalised, unprintable characters are dropped, words are tokenised (split at hyphens, XML escapes kept).
# Case is kept.
#
#   OUT/bin        binarised: train, valid, test (newstest2014, 3,003 pairs)
#   OUT/raw        the original text and references for sacreBLEU; OUT/tokenised, OUT/clean and OUT/bpe: its later stages
#   OUT/codes, OUT/dict.txt
#                  the merges and the dictionary
#   OUT/manifest.json
#                  command, versions, line counts of every part and stage, hashes
#
# The same command resumes an interrupted run. It does nothing after a finished run.

source "$(dirname "$0")/prepare-common.sh"

valid=newstest2012+2013 merges=50000 share=joint
max_length=250 ratio=1.5 # the ratio keeps 36M of 40.8M pairs
read_options "from limit valid merges bpe share max-length ratio codes dict unknown-up-to" "$@"
check valid 'newstest2013|newstest2012\+2013' 'newstest2013 or newstest2012+2013'
open_folder en fr

raw() {
    local wmt10=https://www.statmt.org/wmt10 wmt13=https://www.statmt.org/wmt13 wmt14=https://www.statmt.org/wmt14
    mkdir "$part"
    training_pairs europarl-v7.fr-en.{en,fr} $wmt13/training-parallel-europarl-v7.tgz
    training_pairs commoncrawl.fr-en.{en,fr} $wmt13/training-parallel-commoncrawl.tgz
    training_pairs undoc.2000.fr-en.{en,fr} $wmt13/training-parallel-un.tgz
    training_pairs news-commentary-v9.fr-en.{en,fr} $wmt14/training-parallel-nc-v9.tgz
    training_pairs giga-fren.release2.fixed.{en,fr}.gz $wmt10/training-giga-fren.tar
    [ "$valid" = newstest2013 ] || held_out_pairs valid newstest2012.{en,fr} $wmt14/dev.tgz
    held_out_pairs valid newstest2013.{en,fr} $wmt14/dev.tgz
    held_out_pairs test newstest2014-fren-{src.en,ref.fr}.sgm $wmt14/test-full.tgz
}

tokenise() { fairseq-capsule filter moses-words --drop-controls --split-hyphens "$1"; } # LANGUAGE

clean() { # FOLDER: training pairs that are not empty, not too long and of similar length
    mkdir "$part" && cp "$1"/{valid,test}* "$part"
    fairseq-capsule filter similar-pairs --max-length "$max_length" --ratio "$ratio" "$1"/train.{en,fr} "$part"/train.{en,fr}
}

binarise() { # FOLDER
    fairseq-preprocess --source-lang en --target-lang fr "${dictionaries[@]}" --trainpref "$1/train" \
        --validpref "$1/valid" --testpref "$1/test" --workers "$workers" --destdir "$part"
    require_known_words "$1"
}

stage raw raw
stage tokenised filter_texts tokenise raw/*.??
if [ "$bpe" = subword-nmt ]; then
    stage clean clean tokenised
    learn_for_sides clean/train
    stage bpe filter_texts cut_into_subwords clean/*.??
    stage bin binarise bpe
else # the length of a sentence is that in pieces
    learn_for_sides tokenised/train
    stage bpe filter_texts cut_into_subwords tokenised/*.??
    stage clean clean bpe
    stage bin binarise clean
fi
finish
