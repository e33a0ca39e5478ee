#!/usr/bin/env bash
# Create .venv, and install this checkout and sets of packages there with the versions of constraints.txt.
# Usage: [PYTHON=python3.11] [FAIRSEQ=source] scripts/install.sh [SET...]
#
#   SET                an extra of pyproject.toml, such as train, plot, test, lint, docs, package (dev: all of them)
#   PYTHON=PROGRAM     the Python of a new .venv
#   FAIRSEQ=source     compile fairseq-fixed; FAIRSEQ=wheel: take the wheel of ve-fairseq. Otherwise the fairseq of .venv is
#                      kept, and a new .venv gets the wheel where this system has one
#
# A set that is installed already is not installed again.

set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$(dirname "$0")/.."

wheels=scripts/fairseq-wheels.txt
required=$(cat constraints.txt pyproject.toml scripts/install.sh "$wheels" | cksum)
die() { echo "install: error: $*" >&2; exit 1; }
exec {lock}<. # one installation at a time: make starts several targets at once
flock "$lock"

missing=()
for set in "${@:-dev}"; do
    grep -q "^$set = \[" pyproject.toml || die "$set is no extra of pyproject.toml (see --help)"
    [[ $(cat ".venv/installed/$set" 2>/dev/null) == "$required" || $(cat .venv/installed/dev 2>/dev/null) == "$required" ]] ||
        missing+=("$set")
done

# A copied or linked .venv runs the code of the checkout that it was made in.
place=$(.venv/bin/python -I -c '
from importlib.util import find_spec
package = find_spec("fairseq_capsule")
print(package.origin if package else "")' 2>/dev/null) || place=
if [ -n "$place" ] && [ "$(realpath "$place")" != "$(realpath fairseq_capsule/__init__.py)" ]; then
    echo "install: warning: .venv belongs to another checkout: its commands run the code of ${place%/*};" \
        "remove .venv and run make install" >&2
fi
if [ ${#missing[@]} -eq 0 ]; then
    [ -n "$place" ] && exit # otherwise the checkout was moved, for example
    die ".venv belongs to another place or is damaged, and its commands may fail; remove .venv and run make install"
fi

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    rm -rf .venv # of an interrupted run
    for python in ${PYTHON:-python3.11 python3.12 python3} ''; do
        "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null && break
    done
    [ -n "$python" ] || die "${PYTHON:-no python3.11, python3.12 or python3} is a Python 3.11 or 3.12 with venv;" \
        "install one (Debian: apt install python3.11-venv) or name it: make PYTHON=/path/to/python …"
    echo "install: creating .venv with $("$python" --version)"
    "$python" -m venv .venv
fi
pip() { .venv/bin/python -m pip --disable-pip-version-check "$@"; }
add() { pip install --quiet --no-compile --constraint constraints.txt "$@"; }
has() { pip show --quiet "$1" >/dev/null 2>&1; }

need_compiler() { # WHAT: refuses a system that cannot compile it
    command -v c++ >/dev/null || die "no C++ compiler, which $1 is built with; install one (Debian: apt install g++)"
    .venv/bin/python -c 'import os, sysconfig as s; os.stat(os.path.join(s.get_path("include"), "Python.h"))' 2>/dev/null ||
        die "no Python.h, which $1 is built with; install it (Debian: apt install python3.11-dev)"
}

remove_others() { # NAME: the distributions hold one import name. pip would install one over the other, and later remove files of both
    local name
    for name in ve-fairseq fairseq-fixed fairseq; do
        if [ "$name" != "$1" ] && has "$name"; then
            echo "install: removing $name, which $1 replaces"
            pip uninstall --quiet --yes ve-fairseq fairseq-fixed fairseq 2>/dev/null
        fi
    done
}

install_wheel() { # returns 1 if this Python, machine and C library have none
    remove_others ve-fairseq
    has ve-fairseq && [[ $(cat "$wheels") == "$(cat .venv/fairseq-wheel 2>/dev/null)" ]] && return # tests of another target may be using it
    echo "install: fairseq"
    local log
    log=$(pip install --quiet --no-compile --force-reinstall --no-deps --only-binary :all: --requirement "$wheels" 2>&1) && add ve-fairseq &&
        cat "$wheels" >.venv/fairseq-wheel && return
    [[ $log != *"DO NOT MATCH THE HASHES"* ]] ||
        die "the wheel of ve-fairseq has another SHA-256 than $wheels states; compile fairseq: FAIRSEQ=source make …"
    [[ $fairseq == wheel ]] && die "no wheel of fairseq (${log##*$'\n'}); compile it: FAIRSEQ=source make …"
}

echo "install: torch"
add torch numpy setuptools wheel
fairseq=${FAIRSEQ:-}
[[ $fairseq || ! $(has fairseq-fixed && echo yes) ]] || fairseq=source
[[ $fairseq =~ ^(wheel|source|)$ ]] || die "FAIRSEQ=$fairseq must be wheel or source"
if [[ $fairseq == source ]] || ! install_wheel; then
    remove_others fairseq-fixed
    need_compiler fairseq
    echo "install: fairseq, compiled (about 3 minutes)"
    # With build isolation pip would download a second torch for the compilation, a CUDA build of gigabytes.
    add cython
    add --no-build-isolation fairseq-fixed
fi
names=$(IFS=,; echo "${missing[*]}")
[[ ! ,$names, =~ ,(test|dev|alignment), ]] || need_compiler "eflomal, for alignments,"
echo "install: fairseq-capsule for ${names//,/, }"
add --no-build-isolation --editable ".[$names]"
# The wheel of fairseq requires torchaudio for speech. Beside the CPU build of torch it does not load, and breaks transformers.
! has torchaudio || .venv/bin/python -c 'import torchaudio' 2>/dev/null || pip uninstall --quiet --yes torchaudio
.venv/bin/fairseq-capsule doctor >/dev/null || { .venv/bin/fairseq-capsule doctor || die "the environment has the problems above"; }
mkdir -p .venv/installed
for set in "${missing[@]}"; do echo "$required" >".venv/installed/$set"; done
