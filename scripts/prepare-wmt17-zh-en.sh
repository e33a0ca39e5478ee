#!/usr/bin/env bash
# Prepare WMT17 Chinese-English, 24M raw pairs, from the raw archives, and binarise it for fairseq, in OUT/bin.
#
#     prepare-wmt17-zh-en.sh [OPTION VALUE]... OUT
#
#   --from DIR     the folder of the archives, named as published; without it they are downloaded (MIRROR=URL: from
#                  there): training-parallel-nc-v12.tgz, UNv1.0.en-zh.tar.gz.00 and .01, dev.tgz and test.tgz (of WMT17)
#   --cwmt DIR     the folder of CWMT's files (casia2015_ch.txt, casia2015_en.txt, …; subfolders are searched). They are
#                  available only on registration and never downloaded
#   --parts LIST   some of nc,un,cwmt (all three). No public recipe gives the 20.6M pairs of Duan et al. or the 7.5M of
#                  GRET, which fit nc,cwmt best
#   --limit N      only the first N training pairs, for a quick test
#   --merges N     BPE merges (32,000)
#   --bpe HOW      subword-nmt (default), sentencepiece (its unigram model) or sentencepiece-bpe
#   --share HOW    separate (default): merges and a dictionary for each language; or joint: the same for both
#   --max-length N leave out training pairs with more than N words in a sentence (49)
#   --ratio X      leave out training pairs with a sentence of more than X times the other's words (9)
#   --codes FILE   OUT/codes of an earlier run, needed with its --dict to start from a checkpoint of that run. With
#                  separate BPE: its codes.zh and codes.en
#   --dict FILE    OUT/dict.txt of an earlier run, needed to start from a checkpoint of that run. With separate BPE: its
#                  dict.zh.txt and dict.en.txt
#   --unknown-up-to PERCENT
#                  accept that so much of the training text is unknown to the dictionary (5)
#
# Chinese: control characters are dropped, jieba segments the words. English: punctuation is normalised, unprintable
# characters are dropped, words are tokenised (XML escapes kept), case is kept. --max-length also holds for validation
# pairs (49, as Duan et al. take under 50; GRET: 100).
#
#   OUT/bin        binarised: train, valid (the short enough pairs of newsdev2017), valid1 (all of it), test
#                  (newstest2017)
#   OUT/raw        the original text and references for sacreBLEU; OUT/tokenised, OUT/clean and OUT/bpe: its later stages
#   OUT/codes.zh, OUT/codes.en, OUT/dict.zh.txt, OUT/dict.en.txt
#                  the merges and the dictionaries
#   OUT/manifest.json
#                  command, versions, line counts of every part and stage, hashes
#
# The same command resumes an interrupted run. It does nothing after a finished run.

source "$(dirname "$0")/prepare-common.sh"

parts=nc,un,cwmt merges=32000 share=separate max_length=49 ratio=9
read_options "from cwmt parts limit merges bpe share max-length ratio codes dict unknown-up-to" "$@"
check parts '(nc|un|cwmt)(,(nc|un|cwmt))*' 'some of nc,un,cwmt'
[[ $parts != *cwmt* || $cwmt ]] ||
    die "CWMT is available only on registration: give its folder by --cwmt DIR, or leave it out by --parts nc,un"
open_folder zh en

raw() {
    local wmt17=https://data.statmt.org/wmt17/translation-task name
    local un=https://stuncorpusprod.blob.core.windows.net/corpusfiles
    mkdir "$part"
    [[ $parts != *nc* ]] || training_pairs news-commentary-v12.zh-en.{zh,en} $wmt17/training-parallel-nc-v12.tgz
    [[ $parts != *un* ]] || training_pairs UNv1.0.en-zh.{zh,en} $un/UNv1.0.en-zh.tar.gz.{00,01}
    [[ $parts != *cwmt* ]] || for name in casia2015 casict2015 datum Book{1..20} NEU; do cwmt_pairs "$name"; done
    held_out_pairs valid1 newsdev2017-zhen-{src.zh,ref.en}.sgm $wmt17/dev.tgz
    held_out_pairs test newstest2017-zhen-{src.zh,ref.en}.sgm $wmt17/test.tgz
    # The validation set has the pairs that are short enough in words.
    tokenise zh <"$part/valid1.zh" >"$part.zh"
    tokenise en <"$part/valid1.en" >"$part.en"
    fairseq-capsule filter similar-pairs --max-length "$max_length" --instead "$part"/valid1.{zh,en} \
        "$part".{zh,en} "$part"/valid.{zh,en}
}

cwmt_pairs() { # NAME
    local chinese english
    chinese=$(find -L "$cwmt" -name "$1_c[hn].txt" | sort | sed -n 1p)
    english=$(find -L "$cwmt" -name "$1_en.txt" | sort | sed -n 1p)
    [[ $chinese && $english ]] || die "--cwmt $cwmt: $1_ch.txt (or _cn) or $1_en.txt of CWMT is missing"
    training_pairs "$chinese" "$english"
}

tokenise() { # LANGUAGE
    case $1 in
        zh) fairseq-capsule filter chinese-words ;; # by jieba
        *) fairseq-capsule filter moses-words --drop-controls "$1" ;;
    esac
}

clean() { # FOLDER: training pairs that are not empty, not too long and of similar length
    mkdir "$part" && cp "$1"/{valid,test}* "$part"
    fairseq-capsule filter similar-pairs --max-length "$max_length" --ratio "$ratio" "$1"/train.{zh,en} "$part"/train.{zh,en}
}

binarise() { # FOLDER
    fairseq-preprocess --source-lang zh --target-lang en "${dictionaries[@]}" --trainpref "$1/train" \
        --validpref "$1/valid,$1/valid1" --testpref "$1/test" --workers "$workers" --destdir "$part"
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
