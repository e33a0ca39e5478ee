#!/usr/bin/env bash
# The embedded English-German corpus: from its grammar to OUT/bin, a data folder for fairseq. Nothing is downloaded.
#
#     prepare-toy.sh [--train N] [--valid N] [--test N] [--seed N] OUT
#
#   --train N, --valid N, --test N
#                  sentence pairs of each split (30,000, 500 and 500)
#   --seed N       of the corpus (1)
#
# Punctuation normalised, tokenised (XML escapes kept), true case, joint BPE of 2,500 merges, joint dictionary.
#
#   OUT/bin        binarised: train, valid, test
#   OUT/raw        the text as it was written, the references for sacreBLEU; OUT/tokenised and OUT/bpe are its next forms
#   OUT/codes, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts, hashes
#
# Run again it does nothing; run again after an interruption it goes on where it was.

source "$(dirname "$0")/common.sh"

train=30000 valid=500 test=500 seed=1 out=''
while (($#)); do
    case $1 in
        --train) train=$(value "$@"); shift ;;
        --valid) valid=$(value "$@"); shift ;;
        --test) test=$(value "$@"); shift ;;
        --seed) seed=$(value "$@"); shift ;;
        -h | --help) usage; exit ;;
        -*) die "no option $1 (see --help)" ;;
        *) [[ ! $out ]] || die "one folder OUT, not both '$out' and '$1' (see --help)"; out=$1 ;;
    esac
    shift
done
[[ $out ]] || die "name the folder OUT to make (see --help)"
need_positive --train "$train"
need_positive --valid "$valid"
need_positive --test "$test"
need_positive --seed "$seed"
need_tools fairseq-capsule fairseq-preprocess flock python sacremoses subword-nmt

raw() { # PART
    fairseq-capsule toy-corpus --train "$train" --valid "$valid" --test "$test" --seed "$seed" "$1"
    (cd "$1" && sha256sum -- *.{en,de} >SHA256SUMS)
}

tokenise() { # LANG
    sacremoses --quiet --language "$1" normalize tokenize
}

bpe_codes() { # PART
    cat tokenised/train.{en,de} | subword-nmt learn-bpe --symbols 2500 >"$1"
}

segment() { # LANG
    subword-nmt apply-bpe --codes codes
}

binarise() { # PART
    fairseq-preprocess --source-lang en --target-lang de --joined-dictionary \
        --trainpref bpe/train --validpref bpe/valid --testpref bpe/test \
        --workers "$cores" --destdir "$1"
}

enter "$out" "train $train" "valid $valid" "test $test" "seed $seed"
stage raw raw
stage tokenised in_pieces raw tokenise
stage codes bpe_codes
stage bpe in_pieces tokenised segment
stage bin binarise
stage dict.txt cp bin/dict.en.txt
stage manifest.tsv manifest
echo "ready: $PWD/bin"
