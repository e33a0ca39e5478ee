# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by the scripts
# Sourced by the scripts that are no command of fairseq-capsule: the environment, options and error messages.
#
# Do not compute with a value before checking it: bash's arithmetic executes commands that stand in brackets in a value. Compare
# numbers with `[` and compute with `calculate`. Compute everything else in Python.
#
# With pipefail no command may leave a pipe early, as head does. Take the first line of a command's output with `sed -n 1p`.
set -euo pipefail
shopt -s inherit_errexit
unset CDPATH

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=${0##*/}
# PYTHONSAFEPATH: Python must not import a `json.py` of the folder in which it works.
export LC_ALL=C.UTF-8 PYTHONUTF8=1 PYTHONSAFEPATH=1
if [[ -d $scripts/../.venv/bin ]]; then
    PATH=$(cd "$scripts/../.venv/bin" && pwd):$PATH
fi

die() { # MESSAGE...: prints one line, without control characters, and exits
    local message="$program: $*"
    printf '%s\n' "${message//[[:cntrl:]]/?}" >&2
    exit 1
}

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

keep_memory() { # without this, glibc returns the memory of a large tensor and requests it again each time, in small pages
    export GLIBC_TUNABLES=glibc.malloc.hugetlb=1${GLIBC_TUNABLES:+:$GLIBC_TUNABLES}
    export MALLOC_MMAP_THRESHOLD_=4000000000 MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_TOP_PAD_=100000000
}
