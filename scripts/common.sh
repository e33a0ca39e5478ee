# shellcheck shell=bash
# Sourced by the scripts: the environment, help, and error messages.
#
# Do not compute with a value before checking it: bash's arithmetic executes commands that stand in brackets in a value.
set -euo pipefail
shopt -s inherit_errexit
unset CDPATH

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${0##*/}
[[ ! -d $root/.venv/bin ]] || PATH=$root/.venv/bin:$PATH
# PYTHONSAFEPATH: Python must not import a `json.py` of the folder in which it works.
export PATH LC_ALL=C.UTF-8 PYTHONUTF8=1 PYTHONSAFEPATH=1

die() { # MESSAGE...: prints one line, without control characters, and exits
    local message="$program: $*"
    printf '%s\n' "${message//[[:cntrl:]]/?}" >&2
    exit 1
}

print_help() { sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; exit; } # the comment at the top of the script

take_places() { # WORD...: -h and --help print the help; every other option is refused
    local word
    for word; do
        case $word in -h | --help) print_help ;; -*) die "unknown option $word (see --help)" ;; esac
    done
}

take_folder() { # WORD...: sets `out` to the only one
    take_places "$@"
    [ $# -gt 0 ] || die "name the folder OUT to make (see --help)"
    [ $# -eq 1 ] || die "name one folder OUT, not both '$1' and '$2' (see --help)"
    # shellcheck disable=SC2034 # the scripts read it
    out=$1
}

need() { # COMMAND [HOW TO INSTALL IT]
    [[ $(type -P "$1") ]] || die "$1 is not installed: ${2:-run 'make install', or activate the environment that has it}"
}
