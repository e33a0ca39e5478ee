# shellcheck shell=bash disable=SC2034,SC2154 # the scripts set and read the variables
# Sourced by prepare-wmt14-en-de.sh, prepare-wmt14-en-fr.sh and prepare-wmt17-zh-en.sh.
#
# A stage is a command that makes the file or folder $part, which gets the name of the stage when it is complete. So a name
# that exists is finished, and the same command resumes. What a stage needs besides has a name that begins with $part.
source "${BASH_SOURCE[0]%/*}/common.sh"

checksums=${CAPSULE_CHECKSUMS:-$root/fairseq_capsule_lab/corpora/archives.md5} # tests name another list
workers=$(($(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) + 1)) # fairseq-preprocess does its own share after theirs
command_line=$program$(printf " '%s'" "${@//\'/\'\\\'\'}")
from='' limit='' codes='' dict='' cwmt='' bpe=subword-nmt unknown_up_to=5 made=()
export share
exec {terminal}>&2 # while a stage runs, standard error is its log

# --- options and the folder ---

read_options() { # NAMES WORD...: sets the variable of each given option, and `out`
    local name words
    names=$1
    words=$(getopt --name "$program" --options h --longoptions "help,${names// /:,}:" -- "${@:2}") || exit 1
    eval set -- "$words"
    while [[ $1 != -- ]]; do
        [[ $1 != -h && $1 != --help ]] || print_help
        name=${1#--}
        printf -v "${name//-/_}" %s "$2"
        shift 2
    done
    take_folder "${@:2}"
    for name in limit merges max_length; do check $name '[1-9][0-9]{0,8}|' 'a positive whole number'; done
    check unknown_up_to '100|[0-9]{1,2}(\.[0-9]+)?' 'a percentage from 0 to 100'
    check ratio '[0-9]+\.?|[0-9]*\.[0-9]+' 'a number'
    check bpe 'subword-nmt|sentencepiece(-bpe)?' 'subword-nmt, sentencepiece or sentencepiece-bpe'
    check share 'joint|separate' 'joint or separate'
    [[ ${codes:+given} == "${dict:+given}" ]] ||
        die "--codes and --dict belong together: give both files of the earlier run, or neither"
    for name in from cwmt; do [[ ! ${!name} || -d ${!name} ]] || die "--$name ${!name}: no such folder"; done
    for name in from cwmt codes dict; do [[ ! ${!name} ]] || printf -v $name %s "$(realpath "${!name}")"; done
}

check() { # NAME PATTERN TEXT: refuses another value of an option
    [[ ${!1} =~ ^($2)$ ]] || die "--${1//_/-} takes $3, not '${!1}'"
}

of_side() { # FILE LANGUAGE: codes.de for codes, dict.de.txt for dict.txt, if each language has its own
    case $share,$1 in joint,*) echo "$1" ;; *.txt | *.model) echo "${1%.*}.$2.${1##*.}" ;; *) echo "$1.$2" ;; esac
}

open_folder() { # SOURCE TARGET: goes into OUT, and refuses a folder that was made with other options
    local tool side file
    for tool in fairseq-capsule fairseq-preprocess; do need $tool; done
    source=$1 target=$2 sides=("$@") dictionaries=() subwords=codes
    [[ $bpe == subword-nmt ]] || subwords=sentencepiece.model
    [[ $share == separate ]] || sides=("$1") dictionaries=(--joined-dictionary) # for both languages
    [[ ! $dict ]] || dictionaries+=(--srcdict "$(of_side "$dict" "$1")")
    [[ ! $dict || $share == joint ]] || dictionaries+=(--tgtdict "$(of_side "$dict" "$2")")
    [[ ! $dict ]] || for side in "${sides[@]}"; do
        for file in "$(of_side "$codes" "$side")" "$(of_side "$dict" "$side")"; do
            [ -f "$file" ] || die "$file: no such file"
        done
        ! grep -q ' #fairseq:overwrite' "$file" || die "--dict $file: #fairseq:overwrite: remove the symbol that is there twice"
    done
    settings=$(print_settings)
    mkdir -p "$out"
    cd "$out"
    exec {lock}<. # the commands of a stage hold it too
    flock --nonblock $lock || { echo "waiting for another run in $out" && flock $lock; }
    [[ -e settings || ! -e raw ]] || die "$out/raw exists, but was not made by this script: name another folder"
    [[ ! -e settings || $(cat settings) == "$settings" ]] ||
        die "$out was prepared with other options (see $out/settings): delete it, or name another folder"
}

print_settings() {
    local name value
    echo "script $program"
    for name in $names; do
        value=${name//-/_} value=${!value}
        case $name in
            from) echo "from ${from:-${MIRROR:-the addresses in this script}}" ;;
            codes | dict) echo "$name $(fingerprints "$value")" ;;
            unknown-up-to) ;; # it changes no file
            bpe) [[ $bpe == subword-nmt ]] || echo "bpe $bpe" ;;
            *) echo "$name ${value:-none}" ;;
        esac
    done
}

fingerprints() { # FILE: the first digits of the SHA-256 of an earlier run's file, for each side
    local side
    for side in "${sides[@]}"; do
        if [[ $1 ]]; then sha256sum <"$(of_side "$1" "$side")" | cut -c -12; else echo learnt; fi
    done | paste -s -d ' '
}

# --- stages ---

stage() { # NAME COMMAND...
    part=$1.part.$$ log=$1.log made+=("$1")
    if [ -e "$1" ]; then echo "$1: done before" && return; fi
    rm -rf "$1".part.*
    ("${@:2}") 2>"$log"
    echo "$settings" >settings.part && mv settings.part settings
    mv "$part" "$1"
    rm -rf "$part".* "$log"
    lines=$(find "$1" -name '*.??' | sort | xargs -r wc -l | sed -E '/ total$/d; s|^ *([0-9]+) .*/|\1 |' | paste -s -d ,)
    echo "$1: ${lines:-done}"
}

report_failure() {
    [[ $? != 0 && -e ${log:-} ]] || return 0
    rm -rf "$part"*
    reason=$(tail -n 1 "$log")
    reason="${reason#"$program: "} (full log: $PWD/$log)"
    die "stage '${log%.log}' failed: $reason; fix the cause and run the same command again"
}
trap report_failure EXIT

filter_texts() { # COMMAND TEXT...: filters texts SPLIT.LANG by `COMMAND LANG`
    local text
    mkdir "$part"
    for text in "${@:2}"; do "$1" "${text##*.}" <"$text" >"$part/${text##*/}"; done
}

# --- raw text ---

archive() { # ADDRESS: sets `archive` to the file of --from, or to the downloaded one
    local known
    archive=${from:-download}/${1##*/}
    if [[ ! $from && ! -e $archive ]]; then
        mkdir -p download
        curl --fail --silent --show-error --location --retry 3 --speed-time 30 --output "$archive.part" \
            "${MIRROR:-${1%/*}}/${1##*/}"
        mv "$archive.part" "$archive"
    fi
    [ -f "$archive" ] || die "$archive is missing: --from takes a folder with all archives (see --help)"
    known=$(awk -v "address=${1#*://}" '$2 == address {print $1 "  -"}' "$checksums")
    [[ ! $known || $(md5sum <"$archive") == "$known" ]] || die "$archive: wrong checksum: delete it and fetch it again"
    note "$archive"
}

note() { # FILE: notes the SHA-256 of a source once
    grep -qs "  ${1##*/}$" "$part/SHA256SUMS" || (cd "${1%/*}" && sha256sum "${1##*/}") >>"$part/SHA256SUMS"
}

unpack() { # MEMBER MEMBER ADDRESS...: takes two members out of an archive, or of its pieces, into $part.members
    local address archives=()
    for address in "${@:3}"; do
        archive "$address"
        archives+=("$archive")
    done
    rm -rf "$part.members" && mkdir "$part.members"
    cat "${archives[@]}" | gzip -cdf | tar -x --no-anchored --transform='s:.*/::' -C "$part.members" "$1" "$2" ||
        die "${archives[*]}: no complete archive with $1 and $2: fetch it again"
}

training_pairs() { # SOURCE TARGET [ADDRESS...]: adds the pairs of two files or members, up to --limit
    local taken folder=''
    touch "$part/train.$target"
    taken=$(wc -l <"$part/train.$target")
    [[ ! $limit || $taken -lt $limit ]] || return 0
    if [ $# -gt 2 ]; then
        unpack "$@"
        folder=$part.members/
    fi
    fairseq-capsule filter training-pairs --limit $((limit ? limit - taken : 0)) "$folder$1" "$folder$2" \
        "$part/train.$source" "$part/train.$target" | tee -a "$part/PARTS" | cut -f 1,2
}

held_out_pairs() { # SPLIT SOURCE TARGET ADDRESS: adds the pairs of two members to a validation or test set
    unpack "${@:2}"
    fairseq-capsule filter held-out-pairs "$part.members/$2" "$part.members/$3" "$part/$1.$source" "$part/$1.$target"
}

# --- subwords and binarised data ---

learn_for_sides() { # PREFIX: learns the subwords of both languages or each, or copies --codes
    local side texts learn
    for side in "${sides[@]}"; do
        texts=("$1.$source" "$1.$target") learn=(learn_subwords)
        [[ $share == joint ]] || texts=("$1.$side")
        [[ ! $codes ]] || learn=(copy "$(of_side "$codes" "$side")")
        stage "$(of_side "$subwords" "$side")" "${learn[@]}" "${texts[@]}"
    done
}

copy() { cp "$1" "$part"; } # FILE

learn_subwords() { # TEXT...: merges of subword-nmt, or the model of SentencePiece
    fairseq-capsule filter learn-subwords --bpe "$bpe" --merges "$merges" "$part" "$@"
}

cut_into_subwords() { fairseq-capsule filter subwords "$(of_side "$subwords" "$1")"; } # LANGUAGE

fairseq-preprocess() { # prints the command, in a form to paste, and corrects the offsets that it wrote into $part
    local line
    printf -v line ' %q' "${@/#"$part"/${part%.part.*}}"
    printf '+ (cd %q && fairseq-preprocess%s)\n' "$PWD" "$line" >&"$terminal"
    command fairseq-preprocess "$@"
    fairseq-capsule filter offsets "$part"
}

require_known_words() { # PREFIX: a dictionary of another corpus lacks many
    fairseq-capsule filter known-words --up-to "$unknown_up_to" "$part" "$1/train.$source" "$1/train.$target"
}

finish() { # the dictionaries and the manifest
    local side
    for side in "${sides[@]}"; do stage "$(of_side dict.txt "$side")" copy "bin/dict.$side.txt"; done
    stage manifest.tsv print_manifest
    echo "ready: $PWD/bin"
    awk -v "program=$program" 'FNR == 1 {found = 0} NF > 1024 && !found++ {print program ": warning: " FILENAME ", line " FNR \
        ": over 1,024 tokens, more than most models have positions: leave it out, or give the model more of them"}' \
        bpe/{valid,test}*.?? >&2
    awk -F '\t' -v "program=$program" 'NF > 2 {print program ": warning: " $3}' raw/PARTS >&2
}

print_manifest() { fairseq-capsule filter manifest --command "$command_line" . "${made[@]::${#made[@]}-1}" >"$part"; }
