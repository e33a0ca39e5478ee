# shellcheck shell=bash
# Sourced instead of common.sh by the scripts that prepare a translation corpus from archives.
#
# A script sets its languages and the defaults of its options (and `tokenising` if the default does not fit). It defines a function
# `raw PART` that makes PART/SPLIT.LANG. Then it calls `take_corpus_options NAMES "$@"` and `prepare_corpus`.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

languages=()                  # two; the data serve both directions
from='' codes='' dict='' limit='' out=''
bpe=subword-nmt               # splits words into subwords: subword-nmt, sentencepiece (unigram), sentencepiece-bpe, none
merges=32000 share=joint      # number of merges or pieces: one list for both languages (joint), or one each (separate)
max_length='' ratio=''        # leave out training pairs with a longer sentence or a larger ratio of lengths
hyphens=''                    # options of `sacremoses tokenize`
tokenising=words              # the filters from raw to tokenised text
mirror=${MIRROR:-}
more_settings=()              # KEY VALUE: further settings of OUT
bound=''                      # set by a script that calls prepare.sh: the options that are settings of OUT, if not all of them are

take_corpus_options() { # NAMES ARGUMENT...: sets the options of these names and refuses wrong values
    local name
    option_names=$1
    take_options "$@"
    take_folder
    [[ $max_length != none ]] || max_length=''
    for name in limit merges max_length; do
        [[ ! ${!name} ]] || need_positive "--${name//_/-}" "${!name}"
    done
    [[ $ratio =~ ^([0-9]*\.)?[0-9]*$ && $ratio != . ]] || die "--ratio must be a number, not '$ratio'"
    [[ $bpe == @(subword-nmt|sentencepiece|sentencepiece-bpe) ]] ||
        die "--bpe takes subword-nmt, sentencepiece or sentencepiece-bpe, not '$bpe'"
    [[ $share == @(joint|separate) ]] || die "--share takes joint or separate, not '$share'"
    if [[ $from ]]; then
        [[ -d $from ]] || die "--from $from: no such folder"
        from=$(realpath "$from")
    fi
    need_tools fairseq-preprocess flock gzip python sacremoses subword-nmt tar
    [[ " ${languages[*]} " != *" zh "* ]] || need_module jieba chinese
    [[ $bpe == subword-nmt ]] || need_module sentencepiece sentencepiece
}

need_earlier_files() { # refuses wrong --codes and --dict
    local lang
    if [[ $bpe == none ]]; then
        [[ ! $codes ]] || die "--codes: characters have no codes; give only --dict"
    else
        [[ ${codes:+given} == "${dict:+given}" ]] ||
            die "--codes and --dict belong together: give both files of the earlier run, or neither"
    fi
    [[ $dict ]] || return 0
    for lang in $(sides); do
        [[ ! $codes ]] || "need_codes_of_${bpe%-bpe}" "$(of_side "$codes" "$lang")"
        need_dict "$(of_side "$dict" "$lang")"
    done
    codes=${codes:+$(realpath -m "$codes")} dict=$(realpath -m "$dict")
}

enter_corpus() { # changes to OUT; its settings are the values of all options and `more_settings`
    local name settings=("${more_settings[@]}")
    for name in ${bound:-$option_names}; do
        case $name in
            from) settings+=("from ${from:-${mirror:-the addresses in this script}}") ;;
            codes | dict) settings+=("$name $(fingerprints "${!name}")") ;;
            bpe) [[ $bpe == subword-nmt ]] || settings+=("bpe $bpe") ;; # older folders have no line for it
            *) name=${name//-/_} settings+=("${name//_/-} ${!name:-none}") ;;
        esac
    done
    export bpe share hyphens scripts
    enter "$out" "${settings[@]}"
}

sides() { # what has its own merges and dictionary: each language, or `both` together
    if [[ $share == joint ]]; then echo both; else echo "${languages[@]}"; fi
}

of_side() { # FILE both|LANG: codes → codes or codes.LANG; dict.txt → dict.txt or dict.LANG.txt; likewise sentencepiece.model
    local ending=''
    [[ $1 != *.@(txt|model) ]] || ending=.${1##*.}
    if [[ $2 == both ]]; then echo "$1"; else echo "${1%"$ending"}.$2$ending"; fi
}

codes_name() { # the file that segments text: OUT/codes, or OUT/sentencepiece.model
    if [[ $bpe == subword-nmt ]]; then echo codes; else echo sentencepiece.model; fi
}

fingerprints() { # FILE, or nothing if the file will be learnt
    local lang
    for lang in $(sides); do
        fingerprint "${1:+$(of_side "$1" "$lang")}"
    done | paste -sd ' ' -
}

# --- from archives to raw text -----------------------------------------------------------------------------------------

archive() { # PART URL: prints the path of an archive, in the folder of --from or downloaded; refuses a wrong checksum
    local file=${from:-$PWD/download}/${2##*/} url=$2 wanted found
    if [[ ! $from ]]; then
        need_tools curl
        mkdir -p download
        [[ ! $mirror ]] || url=$mirror/${2##*/}
        fetch "$url" "$file"
    fi
    [[ -f $file ]] || die "$file is missing: --from takes a folder with all archives (see --help)"
    wanted=$(awk -v address="${2#*://}" '$2 == address { print $1 }' "$scripts/archives.md5")
    if [[ $wanted ]]; then
        found=$(md5sum <"$file" | cut -d ' ' -f 1)
        [[ $found == "$wanted" ]] ||
            die "$file: wrong checksum, MD5 $found instead of $wanted: delete it and fetch it again"
    fi
    remember "$1" "$file"
    echo "$file"
}

remember() { # PART FILE: notes its hash for the manifest
    grep -qxFe "${2##*/}" <(cut -c 67- "$1/SHA256SUMS" 2>/dev/null) ||
        (cd "$(dirname "$2")" && sha256sum "${2##*/}") >>"$1/SHA256SUMS"
}

unpack() { # PART MEMBERS URL...: extracts members, named without their folders, from an archive or its parts to PART/members
    local url file files=() member told zipped
    for url in "${@:3}"; do
        file=$(archive "$1" "$url")
        files+=("$file")
    done
    echo "${files[*]}" >"$PROGRESS"
    mkdir -p "$1/members"
    # shellcheck disable=SC2086 # each word is a member
    if [[ $file == *.zip ]]; then
        told=$(unzip -joq "$file" $2 -d "$1/members" 2>&1) || true
    else
        zipped=--gzip
        [[ $file != *.tar ]] || zipped=''
        told=$(cat "${files[@]}" | tar --extract $zipped --warning=no-unknown-keyword --warning=no-alone-zero-block --directory "$1/members" --no-anchored --transform 's|.*/||' $2 2>&1) || true
    fi
    told=$(grep -vE '^$|Not found in archive|xiting with failure status|filename not matched|trailing garbage ignored' <<<"$told" | sed -n 1p) || true
    [[ ! $told ]] || die "${files[*]}: cannot be unpacked ($told): fetch it again, or free some disk space"
    for member in $2; do
        [[ -f $1/members/$member && ! -L $1/members/$member ]] || die "$file has no $member: check that this is the right archive"
    done
}

training_part() { # PART SOURCE TARGET URL...: appends the pairs of two members of an archive to the training set
    [[ ! $limit || ! -e $1/train.${languages[0]} ]] || [ "$(wc -l <"$1/train.${languages[0]}")" -lt "$limit" ] || return 0
    unpack "$1" "$2 $3" "${@:4}"
    append_pairs "$1" "$1/members/$2" "$1/members/$3"
    rm -r "$1/members"
}

append_pairs() { # PART SOURCE TARGET: appends the pairs of two files to the training set, up to --limit, without broken ones
    local left=0 counted
    touch "$1/train.${languages[0]}"
    [[ ! $limit ]] || left=$(calculate "$limit" - "$(wc -l <"$1/train.${languages[0]}")")
    [[ ! $limit ]] || [ "$left" -gt 0 ] || return 0
    counted=$(python "$scripts/take_pairs.py" --drop --limit "$left" "$2" "$3" "$1"/train.{"${languages[0]}","${languages[1]}"})
    printf '%s\t%s\n' "${2##*/}" "$counted" >>"$1/PARTS"
}

held_out() { # PART SPLIT SOURCE TARGET URL: appends the pairs of two members to a validation or test set; fails at a broken one
    unpack "$1" "$3 $4" "$5"
    python "$scripts/take_pairs.py" "$1/members/$3" "$1/members/$4" "$1/$2".{"${languages[0]}","${languages[1]}"}
    rm -r "$1/members"
}

need_newstests() { # VALUE of --valid
    [[ $1 == newstest2013 || $1 == newstest2012+2013 ]] || die "--valid must be newstest2013 or newstest2012+2013, not '$1'"
}

newstests() { # PART URL: concatenates the newstests that --valid names, from WMT14's development sets
    local year
    # shellcheck disable=SC2154 # an option of the script
    for year in ${valid//[^0-9]/ }; do
        held_out "$1" valid "newstest$year".{"${languages[0]}","${languages[1]}"} "$2"
    done
}

# --- from raw text to binarised data -----------------------------------------------------------------------------------

words() { # LANG: normalises punctuation, drops unprintable characters and tokenises; segments Chinese into words
    if [[ $1 == zh ]]; then
        python "$scripts/cut_chinese.py"
    else
        # shellcheck disable=SC2086
        tr '\t\v\f' ' ' | sacremoses --quiet --language "$1" normalize --remove-control-chars tokenize $hyphens
    fi
}

clean() { # FOLDER PART: copies FOLDER, but only training pairs that are not empty, not too long and of similar length
    mkdir "$2"
    cp "$1"/{valid,test}*.* "$2"
    python "$scripts/clean_pairs.py" --longest "$max_length" --ratio "${ratio:-0}" \
        {"$1","$2"}/train.{"${languages[0]}","${languages[1]}"}
    [[ -s $2/train.${languages[0]} ]] || die "no training pair passes --max-length $max_length and --ratio ${ratio:-none}: give larger ones"
}

learn_codes() { # both|LANG PART: learns the merges or pieces of the training text, or copies those of --codes
    local lang texts=()
    for lang in ${1/both/${languages[*]}}; do
        texts+=("$text/train.$lang")
    done
    if [[ $codes ]]; then
        cat "$(of_side "$codes" "$1")" >"$2"
    elif [[ $bpe == subword-nmt ]]; then
        learn_merges "$2" "${texts[@]}"
    else
        local type=unigram
        [[ $bpe == sentencepiece ]] || type=bpe
        python "$scripts/sentencepiece_model.py" learn --type $type --size "$merges" "${texts[@]}" "$2"
    fi
}

learn_merges() { # PART TEXT...: counts words on all cores
    local pieces=$1.pieces
    each_piece count_words "$pieces" "${@:2}"
    # learn-bpe counts the words of a text in this way too. It breaks ties by the pair, so the order of words does not matter.
    find "$pieces" -name '*.done' -exec cat {} + |
        awk '{ count[$1] += $2 } END { for (word in count) print word, count[word] }' >"$pieces/words"
    if grep -q '^[^ ][^ ]' "$pieces/words"; then
        subword-nmt learn-bpe --dict-input --symbols "$merges" <"$pieces/words" >"$1" 2> >(tee "$PROGRESS" >&2)
        [ "$(wc -l <"$1")" -gt 1 ] || die "too little text to learn merges: no two letters stand together twice; give more text"
    else
        printf '%s\n' '#version: 0.2' '▁ ▁' >"$1" # single characters have nothing to merge, but subword-nmt refuses an empty list
    fi
    rm -r "$pieces"
}

count_words() { # LANG
    subword-nmt get-vocab
}

segment() { # LANG
    if [[ $bpe == subword-nmt ]]; then
        subword-nmt apply-bpe --codes "codes$([[ $share == joint ]] || echo ".$1")"
    else
        python "$scripts/sentencepiece_model.py" apply "sentencepiece$([[ $share == joint ]] || echo ".$1").model"
    fi
}

binarise() { # PART
    local dictionaries=(--joined-dictionary ${dict:+--srcdict "$dict"})
    if [[ $share == separate ]]; then
        dictionaries=()
        [[ ! $dict ]] ||
            dictionaries=(--srcdict "$(of_side "$dict" "${languages[0]}")" --tgtdict "$(of_side "$dict" "${languages[1]}")")
    fi
    fairseq-preprocess --source-lang "${languages[0]}" --target-lang "${languages[1]}" "${dictionaries[@]}" \
        --trainpref "$text/train" --validpref "$(prefixes valid)" --testpref "$(prefixes test)" \
        --workers "$cores" --destdir "$1" 2>&1 | tee "$PROGRESS"
    need_known "$1" "give${codes:+ --codes and} --dict of the same run"
}

prefixes() { # valid|test: the existing ones, as bpe/test,bpe/test1,…
    printf '%s\n' "$text/$1"*."${languages[0]}" | sed 's/\.[^.]*$//' | paste -sd , -
}

prepare_corpus() { # makes what is missing
    local side
    text=tokenised
    need_earlier_files
    enter_corpus
    trap 'die "interrupted; the same command resumes"' INT
    stage raw raw
    stage tokenised in_pieces raw "$tokenising"
    [[ ! $max_length || $bpe == sentencepiece* ]] || clean_stage
    if [[ $bpe != none ]]; then
        for side in $(sides); do
            stage "$(of_side "$(codes_name)" "$side")" learn_codes "$side"
        done
        stage bpe in_pieces $text segment
        text=bpe
    fi
    # Text for SentencePiece may have no words, so its pieces are counted.
    [[ ! $max_length || $bpe != sentencepiece* ]] || clean_stage
    stage bin binarise
    for side in $(sides); do
        stage "$(of_side dict.txt "$side")" cp "bin/dict.${side/both/${languages[0]}}.txt"
    done
    stage manifest.tsv manifest
    echo "ready: $PWD/bin"
    # take_pairs.py adds a warning to a part of which it left out much.
    [[ ! -f raw/PARTS ]] || awk -F '\t' -v program="$program" '$3 { print program ": warning: " $3 }' raw/PARTS >&2
}

clean_stage() {
    stage clean clean "$text"
    text=clean
}
