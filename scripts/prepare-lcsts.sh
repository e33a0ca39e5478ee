#!/usr/bin/env bash
# Prepare LCSTS, short Chinese texts and their summaries, from its own files, and binarise it for fairseq, in OUT/bin.
#
#     prepare-lcsts.sh --from DIR [--vocabulary N] [--dict FILE] [--limit N] OUT
#
#   --from DIR     the folder of PART_I.txt, PART_II.txt and PART_III.txt, which its authors distribute on application
#   --vocabulary N largest number of characters in the dictionary (3,500); rarer ones become <unk>
#   --dict FILE    the dictionary of an earlier run, needed to start from a checkpoint of that run
#   --limit N      only the first N training pairs, for a quick test
#
# PART I is the training set. The validation and test sets are the pairs of PART II and PART III that people gave a score of 3 to 5
# (8,685 and 725). Control and format characters are dropped, white space becomes single spaces. The tokens are characters.
# Source and target are called `text` and `summary` and share a dictionary.
#
#   OUT/bin        binarised: train, valid, test
#   OUT/raw        the cleaned text and references for ROUGE; OUT/characters: its next stage
#   OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts, hashes
#
# The same command resumes an interrupted run. It does nothing after a finished run.

source "$(dirname "$0")/common.sh"

from='' vocabulary=3500 dict='' limit=''
take_options "from vocabulary dict limit" "$@"
take_folder
[[ $from ]] || die "give --from DIR: the authors of LCSTS distribute it only on application (see --help)"
[[ -d $from ]] || die "--from $from: no such folder"
from=$(realpath "$from")
[[ ! $limit ]] || need_positive --limit "$limit"
need_positive --vocabulary "$vocabulary"
if [[ $dict ]]; then
    need_dict "$dict"
    [ "$(wc -l <"$dict")" -le "$vocabulary" ] ||
        die "--dict $dict: $(wc -l <"$dict") characters, more than --vocabulary $vocabulary: give a larger --vocabulary, or another file"
    dict=$(realpath "$dict")
fi
for part in PART_I PART_II PART_III; do
    [[ -f $from/$part.txt ]] ||
        die "$from/$part.txt is missing: --from takes the folder of PART_I.txt, PART_II.txt and PART_III.txt"
done
need_tools fairseq-preprocess flock python

declare -A parts=([train]=PART_I [valid]=PART_II [test]=PART_III)

raw() { # PART: the pairs of each split
    local split file selection counted
    mkdir -p "$1"
    for split in train valid test; do
        file=$from/${parts[$split]}.txt
        selection=(--score 3)
        [[ $split != train ]] || selection=(--limit "${limit:-0}") # PART I has no scores
        counted=$(python "$scripts/read_lcsts.py" "$file" "${selection[@]}" "$1/$split")
        printf '%s\t%s\n' "${file##*/}" "$counted" >>"$1/PARTS"
        (cd "$from" && sha256sum "${file##*/}") >>"$1/SHA256SUMS"
    done
}

binarise() { # PART
    binarise_characters "$vocabulary" ${dict:+"$dict"} "$1"
    [[ ! $dict ]] || [ "$(wc -l <"$dict")" -lt 1000 ] || need_known "$1" "give --dict of a run on this corpus, or none"
}

enter "$out" "from $from" "limit ${limit:-none}" "vocabulary $vocabulary" "dict $(fingerprint "$dict")"
stage raw raw
stage characters in_pieces raw spell
stage bin binarise
stage dict.txt cp bin/dict.text.txt
stage manifest.tsv manifest
echo "ready: $PWD/bin"
