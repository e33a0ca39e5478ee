#!/usr/bin/env bash
# Prepare Multi30k task 1 from the raw archives, and binarise it for fairseq, in OUT/bin. The script calls prepare.sh.
#
#     prepare-multi30k.sh [--pair en-de] [OPTION VALUE]... OUT
#
#   --pair SOURCE-TARGET
#                  two of en, de, fr and cs (en-de). fairseq can train both directions. A configuration without languages
#                  takes the first as the source
#   --from DIR     the folder of {train,val,test_2016_flickr,test_2017_flickr,test_2017_mscoco}.LANG.gz;
#                  without it they are downloaded (MIRROR=URL: from there instead of from the project)
#   --bpe HOW, --merges N, --share HOW
#                  the options of prepare.sh (subword-nmt, 10,000 and joint)
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

pair=en-de merges=10000 tokenise=moses
mirror=${MIRROR:-https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw}
take_options "pair from bpe merges share codes dict limit" "$@"
take_folder
[[ $pair =~ ^(en|de|fr|cs)-(en|de|fr|cs)$ && ${pair%-*} != "${pair#*-}" ]] ||
    die "--pair takes two of en, de, fr and cs, such as en-fr, not '$pair'"
[[ $bpe == subword-nmt ]] || tokenise=none
tests=(2016_flickr 2017_flickr 2017_mscoco)
[[ $pair != *cs* ]] || tests=(2016_flickr 2018_flickr)

archives_of() { # --SPLIT STEM: the archives of both languages
    options+=("$1" "$mirror/$2."{"${pair%-*}","${pair#*-}"}.gz)
}

options=(--source "${pair%-*}" --target "${pair#*-}" --lower --tokenise "$tokenise" --max-length none)
archives_of --train train
archives_of --valid val
for name in "${tests[@]}"; do
    archives_of --test "test_$name"
done
options+=(--bpe "$bpe" --merges "$merges" --share "$share" ${from:+--from "$from"} ${limit:+--limit "$limit"}
    ${codes:+--codes "$codes"} ${dict:+--dict "$dict"})
# Options with their default values are no settings of OUT, so that older folders stay valid.
bound="from limit codes dict"
[[ $bpe == subword-nmt ]] || bound+=" bpe tokenise"
[[ $merges == 10000 ]] || bound+=" merges"
[[ $share == joint ]] || bound+=" share"
[[ $pair == en-de ]] || more_settings+=("pair $pair")
source "$scripts/prepare.sh" "${options[@]}" "$out"
