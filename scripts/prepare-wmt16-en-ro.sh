#!/usr/bin/env bash
# Prepare WMT16 English-Romanian, 0.6M pairs, from the raw archives, and binarise it for fairseq, in OUT/bin, for both directions.
#
#     prepare-wmt16-en-ro.sh [OPTION VALUE]... OUT
#
#   --from DIR     the folder of the archives, with their original names. Without it they are downloaded (MIRROR=URL: all from there):
#                  training-parallel-ep-v8.tgz, en-ro.txt.zip (SETIMES of OPUS, Moses format), dev-romanian-updated.tgz and
#                  test.tgz (of WMT16)
#   --diacritics HOW
#                  remove (default, common for Romanian-English) or keep those of the Romanian text. With Romanian as the
#                  target, scores with and without diacritics differ by many points
#   --merges N     BPE merges (32,000)
#   --bpe HOW      subword-nmt (default), sentencepiece (its unigram model) or sentencepiece-bpe
#   --share HOW    joint (default): one list of merges and one dictionary for both languages; or separate
#   --max-length N, --ratio X
#                  leave out training pairs with more than N (80) words in a sentence, or more than X (9) times the other's
#   --codes FILE --dict FILE
#                  OUT/codes and OUT/dict.txt of an earlier run, needed to start from a checkpoint of that run
#   --limit N      only the first N training pairs, for a quick test
#
# Punctuation is normalised, unprintable characters are dropped, Romanian letters are normalised (comma below, not cedilla),
# diacritics are removed, words are tokenised (XML escapes kept). Case is kept.
#
#   OUT/bin        binarised: train, valid (newsdev2016, 1,999 pairs), test (newstest2016, 1,999 pairs)
#   OUT/raw        the original text and references for sacreBLEU; OUT/tokenised, OUT/clean and OUT/bpe: its later stages
#   OUT/codes, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts of every part and stage, hashes
#
# The same command resumes an interrupted run. It does nothing after a finished run.

source "$(dirname "$0")/corpus.sh"

languages=(en ro)
max_length=80 ratio=9
diacritics=remove
tokenising="normalise spell_romanian tokenise"
wmt16=https://data.statmt.org/wmt16/translation-task opus=https://object.pouta.csc.fi/OPUS-SETIMES/v2/moses

raw() { # PART
    mkdir "$1"
    training_part "$1" europarl-v8.ro-en.{en,ro} $wmt16/training-parallel-ep-v8.tgz
    training_part "$1" SETIMES.en-ro.{en,ro} $opus/en-ro.txt.zip
    held_out "$1" valid newsdev2016-enro-src.en.sgm newsdev2016-enro-ref.ro.sgm $wmt16/dev-romanian-updated.tgz
    held_out "$1" test newstest2016-enro-src.en.sgm newstest2016-enro-ref.ro.sgm $wmt16/test.tgz
}

normalise() { # LANG
    tr '\t\v\f' ' ' | sacremoses --quiet --language "$1" normalize --remove-control-chars
}

spell_romanian() { # LANG: ro with commas below instead of cedillas, and without diacritics unless --diacritics keep
    local spelling=''
    [[ $1 != ro ]] || spelling='y/ŞşŢţ/ȘșȚț/'
    [[ $1 != ro || $diacritics == keep ]] || spelling+='; y/ȘșȚțĂăÂâÎî/SsTtAaAaIi/'
    sed "$spelling"
}

tokenise() { # LANG
    sacremoses --quiet --language "$1" tokenize
}

take_corpus_options "from diacritics limit merges bpe share max-length ratio codes dict" "$@"
need_tools unzip
[[ $diacritics == remove || $diacritics == keep ]] || die "--diacritics must be remove or keep, not '$diacritics'"
export diacritics
prepare_corpus
