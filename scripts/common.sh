# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by the scripts
# Sourced by every script of this folder: the environment, error messages, and stages that survive an interruption.
#
# A corpus is prepared in one folder by stages. A stage makes one file or folder under a temporary name and renames it when it
# is complete. So a file with its final name is finished, and a script that runs again resumes where it stopped. A folder of
# texts holds files named SPLIT.LANG.

# Do not compute with a value before checking it: bash's arithmetic executes commands that stand in brackets in a value. Compare
# numbers with `[` and compute with `calculate`. Compute everything else in Python. tests/test_scripts.py checks this.
#
# With pipefail no command may leave a pipe early, as head does. Take the first line of a command's output with `sed -n 1p`.
set -euo pipefail
shopt -s inherit_errexit
unset CDPATH

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=${0##*/}
command_line="$program${*:+ ${*@Q}}"
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) # nproc obeys these limits of threads; here it counts processes
stages=()
PROGRESS=/dev/null # shows progress; other output goes to the logs of the stages
[[ ! -t 2 ]] || ! { : >/dev/tty; } 2>/dev/null || PROGRESS=/dev/tty
# PYTHONSAFEPATH: the scripts work in folders of other people. Python must not import a `json.py` from there.
export PROGRESS LC_ALL=C.UTF-8 PYTHONUTF8=1 PYTHONSAFEPATH=1
if [[ -d $scripts/../.venv/bin ]]; then
    PATH=$(cd "$scripts/../.venv/bin" && pwd):$PATH
fi

die() { # MESSAGE...: prints one line, without control characters, and exits
    local message="$program: $*"
    printf '%s\n' "${message//[[:cntrl:]]/?}" >&2
    exit 1
}

python() { # lets a program of this folder import its neighbours
    if [[ $1 == "$scripts"/* ]]; then PYTHONSAFEPATH='' command python "$@"; else command python "$@"; fi
}
export scripts
export -f python # other shells run filters

# --- arguments ---------------------------------------------------------------------------------------------------------

# The help of a script is the comment at its top. It is printed before the script does anything.
for argument; do
    [[ $argument != @(-h|--help) ]] || { sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; exit; }
done

value() { # OPTION [VALUE]...: the option's value
    [[ ${2:-} ]] || die "$1 requires a value (see --help)"
    echo "$2"
}

take_options() { # NAMES ARGUMENT...: `--NAME VALUE` sets the variable NAME (with _ for -); other arguments go to `places`
    local names=" $1 " name given
    shift
    places=()
    while [ $# -gt 0 ]; do
        case $1 in
            --?*)
                [[ $1 =~ ^--[a-z-]+$ && $names == *" ${1#--} "* ]] || die "unknown option $1 (see --help)"
                given=$(value "$@")
                name=${1#--}
                printf -v "${name//-/_}" %s "$given"
                shift ;;
            -*) die "unknown option $1 (see --help)" ;;
            *) places+=("$1") ;;
        esac
        shift
    done
}

take_folder() { # sets `out` to the only positional argument
    [ ${#places[@]} -gt 0 ] || die "name the folder OUT to make (see --help)"
    [ ${#places[@]} -eq 1 ] || die "name one folder OUT, not both '${places[0]}' and '${places[1]}' (see --help)"
    out=${places[0]}
}

need_positive() { # OPTION VALUE [MOST]
    [[ $2 =~ ^[1-9][0-9]*$ ]] || die "$1 must be a positive whole number, not '$2'"
    [[ $2 =~ ^[0-9]{1,12}$ ]] && [ "$2" -le "${3:-1000000000}" ] ||
        die "$1 must be a positive whole number up to ${3:-1000000000}, not $2"
}

calculate() { # NUMBER OPERATOR NUMBER: of whole numbers. Anything else is an error of expr and executes nothing
    # shellcheck disable=SC2003 # bash's arithmetic would evaluate the values
    expr "$1" "$2" "$3" || [ $? -eq 1 ] # expr ends with 1 if the result is 0
}

need_tools() { # TOOL...
    local tool
    for tool; do
        [[ $(type -P "$tool") ]] || die "$tool is not installed: run 'make install', or activate the environment that has it"
    done
}

need_module() { # MODULE EXTRA: a Python module, and the extra of the package that installs it
    python -c "import $1" 2>/dev/null ||
        die "$1 is not installed: pip install 'fairseq-capsule[$2]', or activate the environment that has it"
}

need_codes_of_sentencepiece() { # FILE: refuses what is not a SentencePiece model
    [[ -f $1 ]] || die "--codes $1: no such file"
    python "$scripts/sentencepiece_model.py" apply "$1" </dev/null 2>/dev/null || die "--codes $1: not a SentencePiece model; give the sentencepiece.model of an earlier run"
}

need_codes_of_subword-nmt() { # FILE: refuses what is not a list of merges
    [[ -f $1 ]] || die "--codes $1: no such file"
    [[ $(head -c 9 "$1" | tr -d '\0') == '#version:' ]] ||
        die "--codes $1: not codes of subword-nmt (they begin with '#version:')"
}

need_dict() { # FILE: refuses what is not a dictionary of fairseq
    [[ -s $1 ]] || die "--dict $1: no such file, or an empty one"
    local wrong
    wrong=$(awk '!/. [0-9]+( #fairseq:overwrite)?$/ { print NR; exit }' "$1")
    [[ ! $wrong ]] || die "--dict $1, line $wrong: not a dictionary of fairseq (its lines are 'SYMBOL COUNT')"
}

exists() { # FILE...: whether the first exists. For patterns like "$folder"/*.pt: compgen -G would expand $folder too
    [[ -e $1 ]]
}

fingerprint() { # FILE, or nothing if the file will be learnt
    if [[ $1 ]]; then sha256sum "$1" | cut -c 1-12; else echo learnt; fi
}

run_folder() { # COMMAND NAME=VALUE...: see fairseq_capsule_lab/runs/__main__.py
    python -m fairseq_capsule_lab.runs "$program" "$@"
}

keep_memory() { # without this, glibc returns the memory of a large tensor and requests it again each time, in small pages
    export GLIBC_TUNABLES=glibc.malloc.hugetlb=1${GLIBC_TUNABLES:+:$GLIBC_TUNABLES}
    export MALLOC_MMAP_THRESHOLD_=4000000000 MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_TOP_PAD_=100000000
}

# --- stages ------------------------------------------------------------------------------------------------------------

enter() { # OUT SETTING...: changes to the folder OUT; refuses one that was prepared with other settings
    lock "$1"
    keep_settings "$@"
}

lock() { # OUT: changes to the folder OUT and locks it
    [[ ! -e $1 || -d $1 ]] || die "$1 is not a folder: name a folder, or a new name"
    { mkdir -p "$1" 2>/dev/null && cd "$1"; } || die "cannot make the folder $1: name one that can be written"
    exec 9<. # held while the script runs
    flock --nonblock 9 || { echo "waiting for another run in $1" && flock 9; }
    need_plain "$1"
}

need_plain() { # OUT: refuses the current folder, which is OUT, if a link in it could lead what the script writes to another place
    run_folder check out="$1" || exit 1
}

cannot_write() { # FOLDER: exits
    die "cannot write in $1, which is read-only or on a full disk: make it writable, or free some space"
}

keep_settings() { # OUT SETTING...: refuses the current folder, which is OUT, if it was prepared with other settings
    local settings
    settings=$(printf '%s\n' "script $program" "${@:2}")
    if [[ ! -e settings ]]; then
        # The first finished stage renames it. Until then the folder may be prepared with other settings.
        { echo "$settings" >settings.part; } 2>/dev/null || cannot_write "$1"
    elif [[ $settings != "$(<settings)" ]]; then
        local there wanted hash='[0-9a-f]{12}( [0-9a-f]{12})*$' # means nothing to the user
        there=$(grep -vxFf <(echo "$settings") settings |
            sed -E "s/^(train|valid|test) $hash/other \1 text/; s/^(\S+) $hash/other \1/" | paste -sd , -) || true
        wanted=$(grep -vxFf settings <<<"$settings" | grep -vE " $hash" | paste -sd , -) || true
        die "$1 was prepared with ${there:-other settings}${wanted:+, not $wanted}: delete it, or name another folder"
    fi
}

stage() { # NAME COMMAND...: makes the file or folder NAME by `COMMAND... PART`, unless it exists
    local name=$1 part=$1.part.$$ log=$1.log status
    stages+=("$name")
    if [[ -e $name ]]; then
        [[ -e settings ]] || die "$PWD/$name exists, but was not made by this script: name another folder"
        echo "$name: done before"
        return
    fi
    # What an interrupted run left. Processes of it that still run hold no lock and write only there.
    rm -rf "$name".part.* 2>/dev/null || true
    set +e # not `if ! COMMAND`: in that bash ignores all failures but the last
    (set -e && "${@:2}" "$part") >"$log" 2>&1 9<&-
    status=$?
    set -e
    [ $status -eq 0 ] || stage_failed "$name" "$part" "$log"
    [[ -e settings ]] || mv settings.part settings
    mv -T "$part" "$name"
    rm "$log"
    echo "$name: $(counts "$name")"
}

stage_failed() { # NAME PART LOG: cleans up and exits with the reason in one line
    local reason
    reason=$(grep -v '^xargs: ' "$3" | tail -n 1) || reason="no reason given"
    has_room || reason="No space left on device" # so the log may have no reason
    rm -rf "$2" "$2".*
    [[ $reason != "$program: "* ]] || die "${reason#"$program: "}"
    die "stage '$1' failed: $reason (full log: $PWD/$3); fix the cause and run the same command again"
}

has_room() { # whether the disk of the current folder has a free megabyte
    [ "$(df --output=avail . | tail -n 1)" -ge 1024 ]
}

counts() { # NAME: prints the number of lines of a stage's texts, and what was taken from each part of the training text
    local file
    if [[ $1 == *.model ]]; then
        echo "$(stat -c %s "$1") bytes"
    elif [[ -f $1 ]]; then
        echo "$(wc -l <"$1") lines"
    elif [[ -f $1/preprocess.log ]]; then
        sed -nE 's|.*/([^/]+): ([0-9]+) sents, .* (\S+%) replaced.*|\1 \2 (\3 <unk>)|p' "$1/preprocess.log" |
            paste -sd , - | sed 's/,/, /g'
    else
        for file in "$1"/*.*; do
            echo "${file##*/} $(wc -l <"$file")"
        done | paste -sd , - | sed 's/,/, /g'
        [[ ! -f $1/PARTS ]] || awk -F '\t' '{ print "  " $1 ": " $2 }' "$1/PARTS"
    fi
}

manifest() { # PART: the last stage: writes the command, its settings and tools, all sources and all results
    local file
    {
        printf 'command\t%s\n' "$command_line"
        sed 's/^/setting\t/; s/ /\t/' settings
        versions fairseq-capsule fairseq fairseq-fixed ve-fairseq torch sacremoses subword-nmt jieba sentencepiece
        [[ ! -f raw/PARTS ]] || sed 's/^/part\t/' raw/PARTS
        [[ ! -f raw/SHA256SUMS ]] || sed -E 's/^(\S+) .(.*)/source\t\2\t\1/' raw/SHA256SUMS
        unset 'stages[-1]' # the manifest itself
        find "${stages[@]}" -type f ! -name '*.log' ! -name SHA256SUMS ! -name PARTS | sort | while read -r file; do
            printf 'file\t%s\t%s' "$file" "$(sha256sum "$file" | cut -d ' ' -f 1)"
            [[ $file == *.@(bin|idx|model) ]] || printf '\t%d lines' "$(wc -l <"$file")"
            echo
        done
    } >"$1"
}

versions() { # PACKAGE...: prints the versions of the installed ones. fairseq has three possible names
    python - "$@" <<'VERSIONS'
import sys
from importlib.metadata import distributions

versions = {found.metadata["Name"]: found.version for found in distributions()}
for package in sys.argv[1:]:
    if package in versions:
        print("version", package, versions[package], sep="\t")
VERSIONS
}

# --- commands of stages ------------------------------------------------------------------------------------------------

fetch() { # URL FILE: downloads the archive FILE unless it exists
    [[ ! -e $2 ]] || return 0
    local reason
    echo "$1" >"$PROGRESS"
    reason=$(curl -fSL --progress-bar --retry 3 --connect-timeout 30 --output "$2.part" "$1" 2>&1 | tee "$PROGRESS") ||
        die "cannot download $1 (${reason##*[$'\n\r']}): try again, name another MIRROR=URL," \
            "or a folder that has the files by --from"
    is_whole "$2" "$2.part" || die "$1 is not a complete archive: try again, or name another MIRROR=URL"
    mv "$2.part" "$2"
}

is_whole() { # NAME FILE: whether the archive FILE is complete. Its type comes from NAME. A part (.00) cannot be checked alone
    case $1 in
        *.zip) unzip -tq "$2" ;;
        *.tar) tar --list --file "$2" ;;
        *.gz | *.tgz) gzip --test "$2" ;;
    esac >/dev/null 2>&1
}

need_known() { # BIN ADVICE: refuses a dictionary that lacks more than 5% of the training text
    awk '/\/train\.[A-Za-z_]+: .* replaced/ && $(NF - 3) + 0 > 5 { exit 1 }' "$1/preprocess.log" ||
        die "over 5% of the training text is unknown to the dictionary: $2"
}

in_pieces() { # FOLDER FILTERS PART: filters FOLDER/SPLIT.LANG by each `FILTER LANG` into PART/SPLIT.LANG, on all cores, in constant memory
    local pieces=$3/pieces lang file
    each_piece "$2" "$pieces" "$1"/*.*[a-zA-Z] # further references, SPLIT.LANG1, stay as they are
    for lang in $(languages_of "$1"/*.*[a-zA-Z]); do
        cat "$pieces/$lang"/*.done >"$pieces/$lang.done"
        [[ $(cat "$1"/*."$lang" | wc -l) == "$(wc -l <"$pieces/$lang.done")" ]] ||
            die "$2 changed the number of lines of $1/*.$lang: report this"
        for file in "$1"/*."$lang"; do
            head --lines="$(wc -l <"$file")" >"$3/${file##*/}" # each head continues where the last one stopped
        done <"$pieces/$lang.done"
    done
    rm -r "$pieces"
}

each_piece() { # FILTERS PIECES .../SPLIT.LANG...: filters the files of a language piece by piece into PIECES/LANG/*.done
    local filters=$1 pieces=$2 lang file files lines number
    for lang in $(languages_of "${@:3}"); do
        files=()
        for file in "${@:3}"; do
            [[ $file != *."$lang" ]] || files+=("$file")
        done
        lines=$(cat "${files[@]}" | wc -l)
        # Long pieces hide the start-up time of a tool. Short pieces limit the memory of a tool that reads all its input first.
        lines=$(calculate "$(calculate "$lines" / "$cores")" + 1)
        [ "$lines" -ge 5000 ] || lines=5000
        [ "$lines" -le 200000 ] || lines=200000
        mkdir -p "$pieces/$lang"
        cat "${files[@]}" | split --numeric-suffixes --suffix-length=6 --lines="$lines" - "$pieces/$lang/"
    done
    number=$(find "$pieces" -type f | wc -l)
    # shellcheck disable=SC2086,SC2163 # each word names a function
    export -f $filters filter_piece # other shells run them
    find "$pieces" -type f -print0 | sort -z |
        xargs -0 -P "$cores" -I{} bash -c 'set -Eeuo pipefail; trap "exit 255" ERR; filter_piece "$@"' - "$filters" {} |
        python -m tqdm --desc "$filters" --unit " pieces" --total "$number" >/dev/null 2>"$PROGRESS"
}

languages_of() { # .../SPLIT.LANG...: each language once
    printf '%s\n' "${@##*.}" | sort -u
}

filter_piece() { # FILTERS .../LANG/PIECE: writes PIECE.done, and prints the piece's name for the progress bar
    local lang=${2%/*} filter
    for filter in $1; do # through files: sacremoses writes line by line, so a pipe would wake the next filter for every line
        "$filter" "${lang##*/}" <"$2" >"$2.part"
        mv "$2.part" "$2"
    done
    mv "$2" "$2.done"
    echo "$2"
}

spell() { # LANG: separates the characters of standard input; a space becomes ▁, as in fairseq's `--bpe characters`
    sed 's/ /▁/g; s/./& /g; s/ $//'
}

binarise_characters() { # VOCABULARY [DICT] PART: binarises train, valid and test with at most VOCABULARY characters
    local dict=''
    [ $# -eq 2 ] || dict=$2
    # fairseq's number includes its four special symbols. A padding factor of 1 adds no filler words.
    fairseq-preprocess --source-lang text --target-lang summary --joined-dictionary --nwordssrc "$(calculate "$1" + 4)" \
        --padding-factor 1 ${dict:+--srcdict "$dict"} --trainpref characters/train --validpref characters/valid \
        --testpref characters/test --workers "$cores" --destdir "${@: -1}"
}

lower() { # standard input in lower case
    python -c 'import sys; sys.stdout.writelines(line.lower() for line in sys.stdin)'
}
export -f lower
