#!/usr/bin/env bash
# Prepare Multi30k task 1 from the raw archives, and binarise it for fairseq, in OUT/bin.
#
#     prepare-multi30k.sh [--pair en-de] [--from DIR] [--codes FILE --dict FILE] [--limit N] OUT
#
#   --pair SOURCE-TARGET
#                  two of en, de, fr and cs (en-de). fairseq can train both directions. A configuration without languages
#                  takes the first as the source
#   --from DIR     the folder of {train,val,test_2016_flickr,test_2017_flickr,test_2017_mscoco}.LANG.gz;
#                  without it they are downloaded (MIRROR=URL: from there instead of from the project)
#   --codes FILE --dict FILE
#                  BPE codes and dictionary of an earlier run, needed to start from a checkpoint of that run
#   --limit N      only the first N training pairs, for a quick test
#
# Punctuation is normalised, words are tokenised (XML escapes kept) and lower-cased. Joint BPE of 10,000 merges, joint dictionary.
#
#   OUT/bin        binarised: train, valid, test (2016 Flickr), test1 (2017 Flickr), test2 (2017 MSCOCO). Czech has no
#                  text of 2017; its test1 is 2018 Flickr
#   OUT/raw        the original text and references for sacreBLEU; OUT/tokenised and OUT/bpe: its later stages
#   OUT/codes, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts, hashes
#
# The same command resumes an interrupted run. It does nothing after a finished run.

source "$(dirname "$0")/corpus.sh"

pair=en-de
tokenising="tokenise lower"
merges=10000
mirror=${MIRROR:-https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw}
declare -A archives=([train]=train [valid]=val [test]=test_2016_flickr [test1]=test_2017_flickr [test2]=test_2017_mscoco)

raw() { # PART: checks and copies the text of the archives
    local split first second
    mkdir "$1"
    for split in train valid test test1 test2; do
        [[ ${archives[$split]:-} ]] || continue
        first=$(archive "$1" "$mirror/${archives[$split]}.${languages[0]}.gz")
        second=$(archive "$1" "$mirror/${archives[$split]}.${languages[1]}.gz")
        python "$scripts/take_pairs.py" "$first" "$second" "$1/$split".{"${languages[0]}","${languages[1]}"}
    done
    [[ ! $limit ]] || sed -i "$(calculate "$limit" + 1),\$d" "$1"/train.{"${languages[0]}","${languages[1]}"}
}

tokenise() { # LANG
    sacremoses --quiet --language "$1" normalize tokenize
}

languages=(en de) # the default pair, which take_corpus_options needs
take_corpus_options "from limit codes dict pair" "$@"
[[ $pair =~ ^(en|de|fr|cs)-(en|de|fr|cs)$ && ${pair%-*} != "${pair#*-}" ]] ||
    die "--pair takes two of en, de, fr and cs, such as en-fr, not '$pair'"
languages=("${pair%-*}" "${pair#*-}")
[[ $pair == en-de ]] || more_settings+=("pair $pair")
[[ $pair != *cs* ]] || archives=([train]=train [valid]=val [test]=test_2016_flickr [test1]=test_2018_flickr)
option_names=${option_names% pair} # only other pairs than en-de are a setting, by more_settings
prepare_corpus
