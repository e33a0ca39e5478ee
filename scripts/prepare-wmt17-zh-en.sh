#!/usr/bin/env bash
# Prepare WMT17 Chinese-English, 24M raw pairs, from the raw archives, and binarise it for fairseq, in OUT/bin.
#
#     prepare-wmt17-zh-en.sh [OPTION VALUE]... OUT
#
#   --from DIR     the folder of the archives, with their original names. Without it they are downloaded (MIRROR=URL: all from there):
#                  training-parallel-nc-v12.tgz, UNv1.0.en-zh.tar.gz.00 and .01, dev.tgz and test.tgz (of WMT17)
#   --cwmt DIR     the folder of CWMT's files (casia2015_ch.txt, casia2015_en.txt, …; subfolders are searched). They are available
#                  only on registration and never downloaded
#   --parts LIST   some of nc,un,cwmt (all three). No public recipe gives the 20.6M pairs of Duan et al. or the 7.5M of GRET, which
#                  fit nc,cwmt best
#   --merges N     BPE merges (32,000)
#   --bpe HOW      subword-nmt (default), sentencepiece (its unigram model) or sentencepiece-bpe
#   --share HOW    separate (default): merges and a dictionary for each language; or joint: the same for both
#   --max-length N, --ratio X
#                  leave out training and validation pairs with more than N words in a sentence (49, as Duan et al. take under 50;
#                  GRET: 100), and training pairs with a sentence of more than X (9) times the other's words
#   --codes FILE --dict FILE
#                  OUT/codes and OUT/dict.txt of an earlier run, needed to start from a checkpoint of that run. With
#                  separate BPE: its codes.zh, codes.en, dict.zh.txt and dict.en.txt
#   --limit N      only the first N training pairs, for a quick test
#
# Chinese: control characters are dropped, jieba segments the words. English: punctuation is normalised, unprintable characters
# are dropped, words are tokenised (XML escapes kept), case is kept.
#
#   OUT/bin        binarised: train, valid (the short enough pairs of newsdev2017), valid1 (all of it), test (newstest2017)
#   OUT/raw        the original text and references for sacreBLEU; OUT/tokenised, OUT/clean and OUT/bpe: its later stages
#   OUT/codes.zh, OUT/codes.en, OUT/dict.zh.txt, OUT/dict.en.txt, and OUT/manifest.tsv: command, versions, line counts of every
#                  part and stage, hashes
#
# The same command resumes an interrupted run. It does nothing after a finished run.

source "$(dirname "$0")/corpus.sh"

languages=(zh en)
share=separate
max_length=49 ratio=9
cwmt='' parts=nc,un,cwmt
wmt17=https://data.statmt.org/wmt17/translation-task un=https://stuncorpusprod.blob.core.windows.net/corpusfiles

raw() { # PART
    mkdir "$1"
    [[ $parts != *nc* ]] || training_part "$1" news-commentary-v12.zh-en.{zh,en} $wmt17/training-parallel-nc-v12.tgz
    [[ $parts != *un* ]] || training_part "$1" UNv1.0.en-zh.{zh,en} $un/UNv1.0.en-zh.tar.gz.0{0,1}
    [[ $parts != *cwmt* ]] || cwmt "$1"
    held_out "$1" valid1 newsdev2017-zhen-src.zh.sgm newsdev2017-zhen-ref.en.sgm $wmt17/dev.tgz
    short_valid "$1"
    held_out "$1" test newstest2017-zhen-src.zh.sgm newstest2017-zhen-ref.en.sgm $wmt17/test.tgz
}

cwmt() { # PART
    local chinese english files
    for files in casia2015 casict2015 datum Book{1..20} NEU; do
        chinese=$(find -L "$cwmt" -name "${files}_c[hn].txt" | sort | sed -n 1p)
        english=$(find -L "$cwmt" -name "${files}_en.txt" | sort | sed -n 1p)
        [[ $chinese && $english ]] || die "--cwmt $cwmt: ${files}_ch.txt (or _cn) or ${files}_en.txt of CWMT is missing"
        append_pairs "$1" "$chinese" "$english"
        remember "$1" "$chinese"
        remember "$1" "$english"
    done
}

short_valid() { # PART: writes valid, the pairs of valid1 that are short enough
    local lang
    for lang in zh en; do
        words $lang <"$1/valid1.$lang" >"$1/words.$lang"
    done
    python "$scripts/clean_pairs.py" --longest "$max_length" "$1"/words.{zh,en} "$1"/valid.{zh,en} --instead "$1"/valid1.{zh,en}
    rm "$1"/words.{zh,en}
}

take_corpus_options "from cwmt parts limit merges bpe share max-length ratio codes dict" "$@"
[[ $parts =~ ^(nc|un|cwmt)(,(nc|un|cwmt))*$ ]] || die "--parts takes some of nc,un,cwmt, not '$parts'"
if [[ $parts == *cwmt* ]]; then
    [[ $cwmt ]] || die "CWMT is available only on registration: give its folder by --cwmt DIR, or leave it out by --parts nc,un"
    [[ -d $cwmt ]] || die "--cwmt $cwmt: no such folder"
    cwmt=$(realpath "$cwmt")
fi
prepare_corpus
