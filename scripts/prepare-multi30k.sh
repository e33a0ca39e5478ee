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

source "$(dirname "$0")/common.sh"

mirror=${MIRROR:-https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw}
from='' codes='' dict='' limit='' out=''
while (($#)); do
    case $1 in
        --from) from=$(value "$@"); shift ;;
        --codes) codes=$(value "$@"); shift ;;
        --dict) dict=$(value "$@"); shift ;;
        --limit) limit=$(value "$@"); shift ;;
        -h | --help) usage; exit ;;
        -*) die "no option $1 (see --help)" ;;
        *) [[ ! $out ]] || die "one folder OUT, not both '$out' and '$1' (see --help)"; out=$1 ;;
    esac
    shift
done
[[ $out ]] || die "name the folder OUT to make (see --help)"
[[ ! $limit ]] || need_positive --limit "$limit"
[[ ${codes:+given} == "${dict:+given}" ]] ||
    die "--codes and --dict belong together: give both files of the earlier run, or neither"
if [[ $codes ]]; then
    need_codes "$codes"
    need_dict "$dict"
    codes=$(realpath "$codes") dict=$(realpath "$dict")
fi
if [[ $from ]]; then
    [[ -d $from ]] || die "--from $from: no such folder"
    from=$(realpath "$from")
fi
[[ $from ]] || need_tools curl
need_tools fairseq-preprocess flock gzip python sacremoses subword-nmt

declare -A archives=([train]=train [valid]=val [test]=test_2016_flickr [test1]=test_2017_flickr [test2]=test_2017_mscoco)

raw() { # PART: the text of the archives, checked
    local split lang source=${from:-$PWD/download} archive
    mkdir -p "$1" "$source"
    for split in train valid test test1 test2; do
        archive=$source/${archives[$split]}
        for lang in en de; do
            [[ $from ]] || fetch "$mirror/${archive##*/}.$lang.gz" "$archive.$lang.gz"
            [[ -f $archive.$lang.gz ]] ||
                die "$archive.$lang.gz is missing: --from wants a folder with all ten archives (see --help)"
        done
        python "$scripts/check_pair.py" "$archive".{en,de}.gz
        (cd "$source" && sha256sum "${archive##*/}".{en,de}.gz) >>"$1/SHA256SUMS"
        for lang in en de; do
            # A carriage return inside a line would end it for the tokeniser, and the last line may lack its end.
            gzip -dc "$archive.$lang.gz" | sed 's/\r/ /g; $a\' >"$1/$split.$lang"
        done
    done
    [[ ! $limit ]] || sed -i "$((limit + 1)),\$d" "$1"/train.{en,de}
}

tokenise() { # LANG
    sacremoses --quiet --language "$1" normalize tokenize | lower
}

bpe_codes() { # PART
    if [[ $codes ]]; then
        cat "$codes" >"$1"
    else
        cat tokenised/train.{en,de} | subword-nmt learn-bpe --symbols 10000 >"$1"
    fi
}

segment() { # LANG
    subword-nmt apply-bpe --codes codes
}

binarise() { # PART
    fairseq-preprocess --source-lang en --target-lang de --joined-dictionary ${dict:+--srcdict "$dict"} \
        --trainpref bpe/train --validpref bpe/valid --testpref bpe/test,bpe/test1,bpe/test2 \
        --workers "$cores" --destdir "$1"
    need_known "$1" "give --codes and --dict of one and the same run"
}

enter "$out" "from ${from:-$mirror}" "limit ${limit:-none}" "codes $(fingerprint "$codes")" "dict $(fingerprint "$dict")"
stage raw raw
stage tokenised in_pieces raw tokenise
stage codes bpe_codes
stage bpe in_pieces tokenised segment
stage bin binarise
stage dict.txt cp bin/dict.en.txt
stage manifest.tsv manifest
echo "ready: $PWD/bin"
