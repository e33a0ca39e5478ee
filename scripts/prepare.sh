#!/usr/bin/env bash
# Prepare your own parallel text from plain or gzipped files, and binarise it for fairseq, in OUT/bin.
#
#     prepare.sh --source LANG --target LANG --train TEXT --valid TEXT --test TEXT [OPTION VALUE]... OUT
#
#   TEXT           PREFIX or PREFIX,PREFIX,…: the files PREFIX.LANG or PREFIX.LANG.gz of both languages. Or SOURCE TARGET: two files
#                  of any name or two addresses (https://...). --train, --valid and --test can be given more than once. Several
#                  training texts are concatenated. Several test sets are called test, test1, ...
#   --from DIR     a folder with the files of these addresses; without it they are downloaded to OUT/download
#   --source LANG --target LANG
#                  any names of letters and _, such as en, zh or pt_BR; Moses knows two-letter codes
#   --valid-lines N, --test-lines N
#                  without --valid or --test, take N pairs out of the training text. None of their source sentences stays in
#                  the training text
#   --seed N       seed of this choice (1)
#   --bpe HOW      subword-nmt (default), sentencepiece (its unigram model) or sentencepiece-bpe
#   --merges N     number of merges of subword-nmt or of pieces of SentencePiece (10,000)
#   --share HOW    joint (default): one list of merges and one dictionary for both languages; or separate
#   --tokenise HOW moses, jieba (Chinese by jieba, the other language by Moses), characters or none; or HOW,HOW for source and target.
#                  Default: none with SentencePiece, otherwise jieba with Chinese and moses without
#   --lower        lower-case everything
#   --max-length N, --ratio X
#                  leave out training pairs with more than N (250) words in a sentence, or more than X (9) times the other's.
#                  With SentencePiece pieces are counted. --max-length none turns both limits off
#   --codes FILE --dict FILE
#                  OUT/codes (or OUT/sentencepiece.model) and OUT/dict.txt of an earlier run, needed to start from a
#                  checkpoint of that run
#   --limit N      only the first N training pairs, for a quick test
#
# Training pairs that are broken (for example not UTF-8) or empty on one side are left out and counted; over 5% of a text are a
# warning. In validation and test sets they are errors. Control characters become spaces. Windows line ends and a byte order mark are removed.
#
#   OUT/bin        binarised: train, valid, test, test1, ...
#   OUT/raw        the original text and references for sacreBLEU; OUT/tokenised, OUT/clean and OUT/bpe: its later stages
#   OUT/codes or OUT/sentencepiece.model, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts of every part and
#                  stage, hashes
#
# The same command resumes an interrupted run. It does nothing after a finished run.

# prepare-multi30k.sh sources this script with arguments. It has sourced corpus.sh already.
[[ ${BASH_SOURCE[0]} != "$0" ]] || source "$(dirname "$0")/corpus.sh"

source='' target='' valid_lines='' test_lines='' seed=1 tokenise='' lower=''
merges=10000 max_length=250 ratio=9
declare -A texts=()     # SPLIT: a line for each text, `SOURCE<tab>TARGET` or `PREFIX<tab>`
declare -A addresses=() # name of a file: the address that it comes from

take_text() { # --SPLIT VALUE [TARGET]...: adds to `texts`; sets `taken` to the number of arguments
    local split=${1#--} given prefix prefixes
    given=$(value "$@")
    if is_address "$given"; then
        is_address "${3:-}" || die "$1 $given: this is an address, so give the address of the target language after it"
        take_address "$1" "$given"
        take_address "$1" "$3"
        texts[$split]+=$given$'\t'$3$'\n' taken=3
        return
    fi
    if [[ -f $given ]]; then
        [[ -f ${3:-} ]] || die "$1 $given: this is a file, so give the file of the target language after it, or the PREFIX of both"
        texts[$split]+=$given$'\t'$3$'\n' taken=3
        return
    fi
    IFS=, read -ra prefixes <<<"$given"
    for prefix in "${prefixes[@]}"; do
        texts[$split]+=$prefix$'\t\n'
    done
    taken=2
}

is_address() { # TEXT
    [[ $1 =~ ^[a-z]+://[^[:space:]]+$ ]]
}

take_address() { # OPTION ADDRESS: adds to `addresses`, by the name of its file
    local name=${2##*/}
    [[ $name ]] || die "$1 $2: this is the address of a folder; give the address of a file"
    [[ ${addresses[$name]:-$2} == "$2" ]] || die "$1 $2: ${addresses[$name]} has the same file name; download one of the two and give its file"
    addresses[$name]=$2
}

find_texts() { # replaces the prefixes in `texts` with their files
    local split found first second prefix
    for split in "${!texts[@]}"; do
        found=''
        while IFS=$'\t' read -r first second; do
            if [[ ! $second ]]; then
                prefix=$first
                first=$(file_of "$split" "$prefix.$source")
                second=$(file_of "$split" "$prefix.$target")
            fi
            found+=$(place_of "$first")$'\t'$(place_of "$second")$'\n'
        done <<<"${texts[$split]%$'\n'}"
        texts[$split]=$found
    done
}

file_of() { # SPLIT FILE: FILE or FILE.gz
    if [[ -f $2 ]]; then echo "$2"; elif [[ -f $2.gz ]]; then echo "$2.gz"; else die "--$1: no file $2 and no $2.gz"; fi
}

place_of() { # FILE or ADDRESS: prints it so that it is valid in any folder
    if is_address "$1"; then echo "$1"; else realpath "$1"; fi
}

need_held_out() { # valid|test LINES: requires either --valid or --valid-lines
    [[ ! $2 ]] || need_positive "--$1-lines" "$2"
    [[ ${texts[$1]:-} || $2 ]] || die "give the $1 pairs by --$1, or take some of the training text by --$1-lines N"
    [[ ! ${texts[$1]:-} || ! $2 ]] || die "--$1 and --$1-lines: give one of the two"
}

need_language() { # OPTION LANG
    [[ $2 ]] || die "name the language by $1, such as $1 en"
    [[ $2 =~ ^[A-Za-z]([A-Za-z_]*[A-Za-z])?$ ]] || die "$1 takes letters and _, such as en or pt_BR, not '$2'"
}

take_tokenisers() { # sets `source_tokeniser` and `target_tokeniser` by --tokenise
    local first=${tokenise%%,*} second=${tokenise#*,} how
    for how in "$first" "$second"; do
        [[ $how == @(moses|jieba|characters|none) ]] || die "--tokenise takes moses, jieba, characters or none, not '$how'"
        [[ $how != characters || $bpe == subword-nmt ]] || die "--tokenise characters: SentencePiece reads text, not characters"
    done
    if [[ $tokenise == jieba ]]; then
        is_chinese "$source" || first=moses
        is_chinese "$target" || second=moses
    fi
    export source source_tokeniser=$first target_tokeniser=$second
}

is_chinese() { # LANG: as `fairseq-capsule score` decides it, whose import takes seconds
    [[ ${1,,} == @(zh|zho|chi|cmn|yue)?(_*) ]]
}

fingerprint_of_texts() { # prints a hash of lines of `texts` from standard input: of the content of files, and of addresses
    local file
    tr '\t' '\n' | while IFS= read -r file; do
        if is_address "$file"; then echo "$file"; else cat "$file"; fi
    done | sha256sum | cut -c 1-12
}

raw() { # PART: writes the texts, and takes validation and test pairs out of the training text
    local split first second number out=()
    mkdir "$1"
    for split in train valid test; do
        number=''
        while IFS=$'\t' read -r first second; do
            [[ $first ]] || continue
            if is_address "$first"; then
                first=$(archive "$1" "$first")
                second=$(archive "$1" "$second")
            else
                sha256sum "$first" "$second" >>"$1/SHA256SUMS"
            fi
            if [[ $split == train ]]; then
                append_pairs "$1" "$first" "$second"
            else
                python "$scripts/take_pairs.py" "$first" "$second" "$1/$split$number".{"$source","$target"}
                number=$(calculate "${number:-0}" + 1)
            fi
        done <<<"${texts[$split]:-}"
    done
    [[ -s $1/train.$source ]] ||
        die "no pair of the training text can be used ($(cut -f 2 "$1/PARTS" | paste -sd ' ' -)): check that the text is UTF-8"
    [[ ! $valid_lines ]] || out+=(--valid "$valid_lines")
    [[ ! $test_lines ]] || out+=(--test "$test_lines")
    [[ ! ${out[*]} ]] || python "$scripts/hold_out.py" --seed "$seed" "${out[@]}" "$1" "$source" "$target"
}

printable() { # LANG: white space and control characters become single spaces. Formatting characters stay: some scripts need them
    python -c 'import re, sys
for line in sys.stdin:
    print(*re.sub("[\x00-\x1f\x7f-\x9f\ufeff]", " ", line).split())'
}

tokenised() { # LANG
    local how=$target_tokeniser
    [[ $1 != "$source" ]] || how=$source_tokeniser
    case $how in
        moses) sacremoses --quiet --language "${1%%_*}" normalize tokenize ;;
        jieba) python "$scripts/cut_chinese.py" ;;
        characters) spell ;;
        none) cat ;;
    esac
}

arguments=()
while [ $# -gt 0 ]; do
    case $1 in
        --train | --valid | --test) take_text "$@"; shift "$taken" ;;
        --source) source=$(value "$@"); shift 2 ;;
        --target) target=$(value "$@"); shift 2 ;;
        --lower) lower=yes; shift ;;
        *) arguments+=("$1"); shift ;;
    esac
done
languages=("$source" "$target")
take_corpus_options "from valid-lines test-lines seed bpe merges share tokenise max-length ratio codes dict limit" "${arguments[@]}"
need_language --source "$source"
need_language --target "$target"
[[ $source != "$target" ]] || die "--source and --target are both $source: they name the files, so they must differ"
need_positive --seed "$seed"
[[ ${texts[train]:-} ]] || die "give the training text by --train PREFIX, or --train SOURCE TARGET"
need_held_out valid "$valid_lines"
need_held_out test "$test_lines"
find_texts
if [[ ! $tokenise ]]; then
    tokenise=moses
    ! is_chinese "$source" && ! is_chinese "$target" || tokenise=jieba
    [[ $bpe == subword-nmt ]] || tokenise=none
fi
take_tokenisers
[[ $tokenise != *jieba* ]] || need_module jieba chinese
[[ ! $from || ${addresses[*]} ]] || die "--from $from is the folder of downloaded files, so give addresses with --train, --valid or --test"
[[ ${addresses[*]} ]] || option_names=${option_names#from }
if [[ ! $bound ]]; then
    for split in train valid test; do # binds OUT to the content of the texts
        [[ ! ${texts[$split]:-} ]] || more_settings+=("$split $(fingerprint_of_texts <<<"${texts[$split]%$'\n'}")")
    done
    more_settings+=("source $source" "target $target" "lower ${lower:-no}")
fi
# shellcheck disable=SC2034 # corpus.sh reads it
tokenising="printable tokenised${lower:+ lower}"
export -f spell
# Characters are subwords already.
[[ $tokenise != @(characters|characters,characters) ]] || bpe=none
prepare_corpus
