# shellcheck shell=bash disable=SC2034,SC2154 # the scripts set and read the variables
# Sourced by prepare-wmt14-en-de.sh, prepare-wmt14-en-fr.sh and prepare-wmt17-zh-en.sh.
#
# A stage is a command that makes the file or folder $part, which gets the name of the stage when it is complete. So a name
# that exists is finished, and the same command resumes. What a stage needs besides has a name that begins with $part.
source "${BASH_SOURCE[0]%/*}/common.sh"

workers=$(($(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) + 1)) # fairseq-preprocess does its own share after theirs
command_line=$program$(printf " '%s'" "${@//\'/\'\\\'\'}")
from='' limit='' codes='' dict='' cwmt='' part='' log='' bpe=subword-nmt unknown_up_to=5 made=()
export CAPSULE_PROGRAM=$program # how the steps name themselves
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
    local tool name variable options=()
    for tool in fairseq-capsule fairseq-preprocess; do need $tool; done
    source=$1 target=$2 sides=("$@") dictionaries=() subwords=codes
    [[ $bpe == subword-nmt ]] || subwords=sentencepiece.model
    [[ $share == separate ]] || sides=("$1") dictionaries=(--joined-dictionary) # for both languages
    [[ ! $dict ]] || dictionaries+=(--srcdict "$(of_side "$dict" "$1")")
    [[ ! $dict || $share == joint ]] || dictionaries+=(--tgtdict "$(of_side "$dict" "$2")")
    for name in $names; do
        variable=${name//-/_} options+=("$name=${!variable}")
    done
    settings=$(fairseq-capsule filter settings "$1" "$2" "script=$program" "${options[@]}")
    mkdir -p "$out"
    cd "$out"
    exec {lock}<. # the commands of a stage hold it too
    flock --nonblock $lock || { echo "waiting for another run in $out" && flock $lock; }
    [[ -e settings.json || ! -e raw ]] || die "$out/raw exists, but was not made by this script: name another folder"
    if [[ -e settings.json && $(cat settings.json) != "$settings" ]]; then
        grep -q '^ "script": ' settings.json || die "$out/settings.json: not of this script: name another folder"
        die "$out was prepared with other options (see $out/settings.json): delete it, or name another folder"
    fi
}

# --- stages ---

stage() { # NAME COMMAND...
    part=$1.part.$$ log=$1.log made+=("$1")
    if [ -e "$1" ]; then echo "$1: done before" && return; fi
    rm -rf "$1".part.*
    ("${@:2}") 2>"$log"
    echo "$settings" >settings.json.part && mv settings.json.part settings.json
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

training_pairs() { # SOURCE TARGET [ADDRESS...]: adds the pairs of two members of an archive, or two files, up to --limit
    fairseq-capsule filter training-pairs ${from:+--from "$from"} --limit "${limit:-0}" "$part" "$source" "$target" "$@"
}

held_out_pairs() { # SPLIT SOURCE TARGET ADDRESS: adds the pairs of two members to a validation or test set
    fairseq-capsule filter held-out-pairs ${from:+--from "$from"} "$1" "$part" "$source" "$target" "${@:2}"
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
    stage manifest.json print_manifest
    echo "ready: $PWD/bin"
    fairseq-capsule filter warnings "$PWD" bpe
}

print_manifest() { fairseq-capsule filter manifest --command "$command_line" . "${made[@]::${#made[@]}-1}" >"$part"; }
