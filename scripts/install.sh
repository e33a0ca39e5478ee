#!/usr/bin/env bash
# Create .venv, and install this checkout and sets of packages there with the versions of constraints.txt.
# Usage: [PYTHON=python3.13] [FAIRSEQ=source] scripts/install.sh [SET...]
#
#   SET                an extra of pyproject.toml, such as train, plot, test, lint, docs, package (dev: all of them but japanese and korean)
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
    with=dev
    [[ $set != japanese && $set != korean ]] || with=$set # dev leaves them out
    [[ $(cat ".venv/installed/$set" 2>/dev/null) == "$required" || $(cat ".venv/installed/$with" 2>/dev/null) == "$required" ]] ||
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

# The Pythons that fairseq runs on, one a line: those of pyproject.toml before the first that its extra fairseq leaves out.
first_without=$(sed -n "s/.*fairseq-fixed.*python_version < '\([0-9.]*\)'.*/\1/p" pyproject.toml)
pythons=$(sed -n 's/.*"Programming Language :: Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml | sed "/^$first_without\$/,\$d")
fairseq_runs="fairseq runs on Python ${pythons//$'\n'/, }"
instead="uv (uv venv --python ${pythons##*$'\n'}), pyenv or conda"

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; } # PYTHON
fits() { grep -Fqx "$1" <<<"$pythons"; } # VERSION
fails() { [[ $1 != "$first_without" ]] || echo ": its import and Hydra's commands fail there"; } # VERSION

if version=$(version_of .venv/bin/python); then
    fits "$version" || die "$fairseq_runs, and .venv has $version$(fails "$version"); remove .venv, and make it with $instead"
    # uv's environments have no pip, and neither has that of an interrupted run.
    .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null 2>&1 || version=
fi
if [ -z "$version" ]; then
    rm -rf .venv
    found=
    for python in ${PYTHON:-${pythons//3./python3.} python3} ''; do
        version=$(version_of "$python") || continue
        if ! fits "$version"; then
            found+="; $python is $version$(fails "$version")"
        elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
            found+="; $python has no venv (Debian: apt install python$version-venv)"
        else
            break
        fi
    done
    [ -n "$python" ] || die "$fairseq_runs with venv, and there is none${PYTHON:+ at $PYTHON}$found;" \
        "make .venv with $instead, or name a Python: make PYTHON=/path/to/python …"
    echo "install: creating .venv with $("$python" --version)"
    "$python" -m venv .venv
fi
pip() { .venv/bin/python -m pip --disable-pip-version-check "$@"; }
add() { pip install --quiet --no-compile --constraint constraints.txt "$@"; }
has() { pip show --quiet "$1" >/dev/null 2>&1; }

need_compiler() { # WHAT: refuses a system that cannot compile it
    local packages=
    command -v c++ >/dev/null || packages+=" g++"
    .venv/bin/python -c 'import os, sysconfig as s; os.stat(os.path.join(s.get_path("include"), "Python.h"))' 2>/dev/null ||
        packages+=" python$version-dev"
    [ -z "$packages" ] ||
        die "$1 is compiled on this system, which requires a C++ compiler and Python.h; install them (Debian: apt install$packages)"
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

install_wheel() { # without what it requires; returns 1 if this Python, machine and C library have none
    remove_others ve-fairseq
    has ve-fairseq && [[ $(cat "$wheels") == "$(cat .venv/fairseq-wheel 2>/dev/null)" ]] && return # tests of another target may be using it
    echo "install: fairseq"
    rm -f .venv/fairseq-wheel
    local log
    log=$(pip install --quiet --no-compile --force-reinstall --no-deps --only-binary :all: --requirement "$wheels" 2>&1) && return
    [[ $log != *"DO NOT MATCH THE HASHES"* ]] ||
        die "the wheel of ve-fairseq has another SHA-256 than $wheels states; compile fairseq: FAIRSEQ=source make …"
    [[ $fairseq == wheel ]] && die "no wheel of fairseq (${log##*$'\n'}); compile it: FAIRSEQ=source make …"
    return 1
}

# What is compiled is known before torch is downloaded.
fairseq=${FAIRSEQ:-}
[[ $fairseq || ! $(has fairseq-fixed && echo yes) ]] || fairseq=source
[[ $fairseq =~ ^(wheel|source|)$ ]] || die "FAIRSEQ=$fairseq must be wheel or source"
[[ $fairseq == source ]] || install_wheel || fairseq=source
[[ $fairseq != source ]] || need_compiler fairseq
names=$(IFS=,; echo "${missing[*]}")
[[ ! ,$names, =~ ,(dev|alignment), ]] || need_compiler "eflomal, for alignments,"

echo "install: torch"
# With what the wheel of fairseq requires: alone, pip would call it an error that fairseq lacks it.
of_wheel=()
[[ $fairseq == source || -e .venv/fairseq-wheel ]] || of_wheel=(ve-fairseq)
add torch numpy setuptools wheel "${of_wheel[@]}"
if [[ $fairseq == source ]]; then
    remove_others fairseq-fixed
    echo "install: fairseq, compiled (about 3 minutes)"
    # With build isolation pip would download a second torch for the compilation, a CUDA build of gigabytes.
    add cython
    add --no-build-isolation fairseq-fixed
elif [ ! -e .venv/fairseq-wheel ]; then
    cat "$wheels" >.venv/fairseq-wheel
fi
echo "install: fairseq-capsule for ${names//,/, }"
add --no-build-isolation --editable ".[$names]"
# The wheel of fairseq requires torchaudio for speech. Beside the CPU build of torch it does not load, and breaks transformers.
! has torchaudio || .venv/bin/python -c 'import torchaudio' 2>/dev/null || pip uninstall --quiet --yes torchaudio
export PYTHONWARNINGS=ignore::SyntaxWarning # of fairseq, when Python compiles it
.venv/bin/fairseq-capsule doctor >/dev/null || { .venv/bin/fairseq-capsule doctor || die "the environment has the problems above"; }
mkdir -p .venv/installed
for set in "${missing[@]}"; do echo "$required" >".venv/installed/$set"; done
