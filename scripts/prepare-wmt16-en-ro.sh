#!/usr/bin/env bash
# WMT16 English-Romanian, 0.6M pairs: from the raw archives to OUT/bin, a data folder for fairseq, for both directions.
#
#     prepare-wmt16-en-ro.sh [OPTION VALUE]... OUT
#
#   --from DIR     the folder of the archives, under their own names; without it they are downloaded (MIRROR=URL: all from there):
#                  training-parallel-ep-v8.tgz, en-ro.txt.zip (SETIMES of OPUS, Moses format), dev-romanian-updated.tgz and
#                  test.tgz (of WMT16)
#   --diacritics HOW
#                  remove them from the Romanian (the default, in common use for Romanian-English), or keep them: where
#                  Romanian is the target, scores with and without differ by many points
#   --merges N     of BPE (32,000)
#   --bpe HOW      subword-nmt (the default); sentencepiece, its unigram model, or sentencepiece-bpe
#   --share HOW    joint (the default): one list of merges and one dictionary for both languages; or separate
#   --max-length N, --ratio X
#                  training pairs with more words than N (80) in a sentence, or X (9) times those of the other, are left out
#   --codes FILE --dict FILE
#                  OUT/codes and OUT/dict.txt of an earlier run, for a model that starts from that run's checkpoint
#   --limit N      only the first N training pairs, for a quick try
#
# Punctuation normalised, unprinted characters dropped, Romanian letters normalised (comma below, not cedilla), diacritics
# removed, tokenised (XML escapes kept), true case.
#
#   OUT/bin        binarised: train, valid (newsdev2016, 1,999 pairs), test (newstest2016, 1,999 pairs)
#   OUT/raw        the text as it came, the references for sacreBLEU; OUT/tokenised, OUT/clean and OUT/bpe are its next forms
#   OUT/codes, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts of every part and stage, hashes
#
# Run again it does nothing; run again after an interruption it goes on where it was.

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

spell_romanian() { # LANG: ro with commas below in the place of cedillas, and without diacritics unless these stay
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
[[ $diacritics == remove || $diacritics == keep ]] || die "--diacritics wants remove or keep, not '$diacritics'"
export diacritics
prepare_corpus
