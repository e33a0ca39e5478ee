#!/usr/bin/env bash
# Prepare NIST Chinese-English, 1.09M pairs, from your own LDC files, and binarise it for fairseq, in OUT/bin.
#
#     prepare-nist-zh-en.sh --from DIR [OPTION VALUE]... OUT
#
#   --from DIR     the folder of the LDC releases, which are licensed and never downloaded. Files may lie in subfolders.
#                  Training text, sentence-aligned, UTF-8, one sentence per line: LDC2002E18.zh and LDC2002E18.en, likewise
#                  LDC2003E07, LDC2003E14, LDC2004T07 (Hansards), LDC2004T08, LDC2005T06. Test sets, as in LDC2010T11, T12, T14
#                  and T17: mt03_chinese_evalset*.xml and mt03_chinese_evalset*-ref.xml with four translations, likewise mt04,
#                  mt05, mt06
#   --merges N     BPE merges (30,000)
#   --bpe HOW      subword-nmt (default), sentencepiece (its unigram model) or sentencepiece-bpe
#   --share HOW    separate (default): merges and a dictionary for each language; or joint: the same for both
#   --max-length N, --ratio X
#                  leave out training pairs with more than N (100) words in a sentence, or more than X (9) times the other's
#   --codes FILE --dict FILE
#                  OUT/codes and OUT/dict.txt of an earlier run, needed to start from a checkpoint of that run. With
#                  separate BPE: its codes.zh, codes.en, dict.zh.txt and dict.en.txt
#   --limit N      only the first N training pairs, for a quick test
#
# Chinese: control characters are dropped, jieba segments the words. English: punctuation is normalised, unprintable characters
# are dropped, words are tokenised (XML escapes kept) and lower-cased, because the scores ignore case.
#
#   OUT/bin        binarised: train, valid (MT03), test (MT04), test1 (MT05), test2 (MT06)
#   OUT/raw        the original text; its four references for sacreBLEU are test.en, test.en1, test.en2 and test.en3, and
#                  likewise for the other sets
#   OUT/tokenised, OUT/clean, OUT/bpe
#                  its later stages, with the first reference
#   OUT/codes.zh, OUT/codes.en, OUT/dict.zh.txt, OUT/dict.en.txt, and OUT/manifest.tsv: command, versions, line counts of every
#                  part and stage, hashes
#
# The same command resumes an interrupted run. It does nothing after a finished run.

source "$(dirname "$0")/corpus.sh"

languages=(zh en)
tokenising="words lower"
merges=30000 share=separate
max_length=100 ratio=9
releases=(LDC2002E18 LDC2003E07 LDC2003E14 LDC2004T07 LDC2004T08 LDC2005T06)
declare -A evaluations=([valid]=mt03 [test]=mt04 [test1]=mt05 [test2]=mt06)

raw() { # PART
    local release split chinese english
    mkdir "$1"
    for release in "${releases[@]}"; do
        chinese=$(licensed "$release.zh")
        english=$(licensed "$release.en")
        append_pairs "$1" "$chinese" "$english"
        remember "$1" "$chinese"
        remember "$1" "$english"
    done
    for split in valid test test1 test2; do
        chinese=$(licensed "${evaluations[$split]}_chinese_evalset*.xml" '*-ref.xml')
        english=$(licensed "${evaluations[$split]}_chinese_evalset*-ref.xml")
        python "$scripts/read_evaluation.py" "$chinese" "$english" "$1/$split"
        remember "$1" "$chinese"
        remember "$1" "$english"
    done
}

licensed() { # NAME [OTHER]: the file that matches NAME and not OTHER, anywhere in the folder of --from
    local found
    found=$(find -L "$from" -name "$1" ! -name "${2:-}" | sort | sed -n 1p)
    [[ $found ]] || die "--from $from: $1 is missing: get it from the LDC under its licence (see --help)"
    echo "$found"
}

take_corpus_options "from limit merges bpe share max-length ratio codes dict" "$@"
[[ $from ]] || die "give --from DIR: the LDC distributes these corpora only under its licences (see --help)"
prepare_corpus
