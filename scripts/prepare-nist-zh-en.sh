#!/usr/bin/env bash
# NIST Chinese-English, 1.09M pairs: from your own files of the LDC to OUT/bin, a data folder for fairseq.
#
#     prepare-nist-zh-en.sh --from DIR [OPTION VALUE]... OUT
#
#   --from DIR     the folder of the LDC's releases, which are licensed and never downloaded; how deep a file lies does not matter.
#                  Training text, sentence-aligned, UTF-8, a sentence a line: LDC2002E18.zh, LDC2002E18.en, and so LDC2003E07,
#                  LDC2003E14, LDC2004T07 (Hansards), LDC2004T08, LDC2005T06. Test sets, as in LDC2010T11, T12, T14 and T17:
#                  mt03_chinese_evalset*.xml and mt03_chinese_evalset*-ref.xml with four translations, and so mt04, mt05, mt06
#   --merges N     of BPE (30,000)
#   --bpe HOW      subword-nmt (the default); sentencepiece, its unigram model, or sentencepiece-bpe
#   --share HOW    separate (the default): merges and a dictionary for each language; or joint: the same for both
#   --max-length N, --ratio X
#                  training pairs with more words than N (100) in a sentence, or X (9) times those of the other, are left out
#   --codes FILE --dict FILE
#                  OUT/codes and OUT/dict.txt of an earlier run, for a model that starts from that run's checkpoint; with
#                  separate BPE that means its codes.zh, codes.en, dict.zh.txt and dict.en.txt
#   --limit N      only the first N training pairs, for a quick try
#
# Chinese: control characters dropped, cut into words by jieba. English: punctuation normalised, unprinted characters dropped,
# tokenised (XML escapes kept), lower-cased, since the scores are without case.
#
#   OUT/bin        binarised: train, valid (MT03), test (MT04), test1 (MT05), test2 (MT06)
#   OUT/raw        the text as it came; its four references for sacreBLEU are test.en, test.en1, test.en2 and test.en3, and so on
#   OUT/tokenised, OUT/clean, OUT/bpe
#                  its next forms, with the first reference
#   OUT/codes.zh, OUT/codes.en, OUT/dict.zh.txt, OUT/dict.en.txt, and OUT/manifest.tsv: command, versions, line counts of every
#                  part and stage, hashes
#
# Run again it does nothing; run again after an interruption it goes on where it was.

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

licensed() { # NAME [OTHER]: the file of that name, and not of the other, somewhere in --from's folder
    local found
    found=$(find -L "$from" -name "$1" ! -name "${2:-}" | sort | sed -n 1p)
    [[ $found ]] || die "--from $from: $1 is missing: the LDC hands it out under its licence (see --help)"
    echo "$found"
}

take_corpus_options "from limit merges bpe share max-length ratio codes dict" "$@"
[[ $from ]] || die "--from DIR is wanted: the LDC hands out these corpora under its licences only (see --help)"
prepare_corpus
