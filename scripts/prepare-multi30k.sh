#!/usr/bin/env bash
# Multi30k task 1, English-German: from the raw archives to OUT/bin, a data folder for fairseq.
#
#     prepare-multi30k.sh [--from DIR] [--codes FILE --dict FILE] [--limit N] OUT
#
#   --from DIR     the folder of {train,val,test_2016_flickr,test_2017_flickr,test_2017_mscoco}.{en,de}.gz;
#                  without it they are downloaded (MIRROR=URL names another place than the project's own)
#   --codes FILE --dict FILE
#                  BPE codes and dictionary of an earlier run, for a model that starts from that run's checkpoint
#   --limit N      only the first N training pairs, for a quick try
#
# Punctuation normalised, tokenised (XML escapes kept), lower-cased, joint BPE of 10,000 merges, joint dictionary.
#
#   OUT/bin        binarised: train, valid, test (2016 Flickr), test1 (2017 Flickr), test2 (2017 MSCOCO)
#   OUT/raw        the text as it came, the references for sacreBLEU; OUT/tokenised and OUT/bpe are its next forms
#   OUT/codes, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts, hashes
#
# Run again it does nothing; run again after an interruption it goes on where it was.

source "$(dirname "$0")/corpus.sh"

languages=(en de)
tokenising="tokenise lower"
merges=10000
mirror=${MIRROR:-https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw}
declare -A archives=([train]=train [valid]=val [test]=test_2016_flickr [test1]=test_2017_flickr [test2]=test_2017_mscoco)

raw() { # PART: the text of the archives, checked
    local split english german
    mkdir "$1"
    for split in train valid test test1 test2; do
        english=$(archive "$1" "$mirror/${archives[$split]}.en.gz")
        german=$(archive "$1" "$mirror/${archives[$split]}.de.gz")
        python "$scripts/take_pairs.py" "$english" "$german" "$1/$split".{en,de}
    done
    [[ ! $limit ]] || sed -i "$(calculate "$limit" + 1),\$d" "$1"/train.{en,de}
}

tokenise() { # LANG
    sacremoses --quiet --language "$1" normalize tokenize
}

take_corpus_options "from limit codes dict" "$@"
prepare_corpus
