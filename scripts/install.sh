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

wheels=scripts/fairseq-wheels.sha256
required=$(cat constraints.txt pyproject.toml scripts/install.sh "$wheels" | cksum)
sets=("${@:-dev}")
die() { echo "install: error: $*" >&2; exit 1; }

for set in "${sets[@]}"; do
    grep -q "^$set = \[" pyproject.toml || die "$set is no extra of pyproject.toml (see --help)"
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

is_current() { # SET
    [ "$(cat ".venv/installed/$1" 2>/dev/null)" = "$required" ]
}

outdated() { # prints the sets that are not installed, or with other versions
    local set
    for set in "${sets[@]}"; do
        is_current "$set" || is_current dev || echo "$set"
    done
}

exec {lock}<. # one installation at a time: make starts several targets at once
flock "$lock"
missing=$(outdated)
if [ -z "$missing" ]; then
    [ -n "$place" ] || # the checkout was moved, for example
        die ".venv belongs to another place or is damaged, and its commands may fail; remove .venv and run make install"
    exit 0
fi

find_python() {
    local python
    for python in ${PYTHON:-python3.11 python3.12 python3}; do
        if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' \
            2>/dev/null; then
            echo "$python"
            return
        fi
    done
    die "${PYTHON:-no python3.11, python3.12 or python3} is a Python 3.11 or 3.12 with venv;" \
        "install one (Debian: apt install python3.11-venv) or name it: make PYTHON=/path/to/python …"
}

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    rm -rf .venv # of an interrupted run
    python=$(find_python)
    echo "install: creating .venv with $("$python" --version)"
    "$python" -m venv .venv
fi
pip() { .venv/bin/python -m pip --disable-pip-version-check "$@"; }
add() { pip install --quiet --constraint constraints.txt "$@"; }
has() { pip show --quiet "$1" >/dev/null 2>&1; }

need_compiler() { # WHAT: refuses a system that cannot compile it
    command -v c++ >/dev/null || die "no C++ compiler, which $1 is built with; install one (Debian: apt install g++)"
    .venv/bin/python -c 'import os, sysconfig as s; os.stat(os.path.join(s.get_path("include"), "Python.h"))' 2>/dev/null ||
        die "no Python.h, which $1 is built with; install it (Debian: apt install python3.11-dev)"
}

fairseq_wheel() { # prints the name of the wheel for this Python, machine and C library; nothing if there is none
    .venv/bin/python - "$wheels" <<'NAME'
import sys
from pip._vendor.packaging.tags import sys_tags
from pip._vendor.packaging.utils import parse_wheel_filename

names = [line.split()[1] for line in open(sys.argv[1])]
here = set(sys_tags())
print(*(name for name in names if not parse_wheel_filename(name)[3].isdisjoint(here)))
NAME
}

fairseq_source() { # prints wheel or source
    case ${FAIRSEQ:-} in
        wheel | source) echo "$FAIRSEQ" ;;
        '') if has fairseq-fixed || [ -z "$wheel" ]; then echo source; else echo wheel; fi ;;
        *) die "FAIRSEQ=$FAIRSEQ must be wheel or source" ;;
    esac
}

install_fairseq() {
    local names=(ve-fairseq fairseq-fixed fairseq) name folder wheel source
    wheel=$(fairseq_wheel)
    source=$(fairseq_source)
    local chosen=ve-fairseq
    [ "$source" = wheel ] || chosen=fairseq-fixed
    # They hold one import name. pip would install one over the other, and later remove files of both.
    for name in "${names[@]}"; do
        if [ "$name" != "$chosen" ] && has "$name"; then
            echo "install: removing $name, which $chosen replaces"
            pip uninstall --quiet --yes ve-fairseq fairseq-fixed fairseq 2>/dev/null
        fi
    done
    if [ "$source" = source ]; then
        need_compiler fairseq
        echo "install: fairseq, compiled (about 3 minutes)"
        # With build isolation pip would download a second torch for the compilation, a CUDA build of gigabytes.
        add cython
        add --no-build-isolation fairseq-fixed
        return
    fi
    [ -n "$wheel" ] || die "no wheel of fairseq for this Python, machine and C library; compile it: FAIRSEQ=source make …"
    has ve-fairseq && [ "$(cat .venv/fairseq-wheel 2>/dev/null)" = "$wheel" ] && return
    echo "install: fairseq"
    folder=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$folder'" EXIT
    pip download --quiet --no-deps --only-binary :all: --constraint constraints.txt --dest "$folder" ve-fairseq
    grep " $wheel\$" "$wheels" | (cd "$folder" && sha256sum --check --quiet --strict) ||
        die "the wheel of ve-fairseq has another SHA-256 than $wheels states; compile fairseq: FAIRSEQ=source make …"
    add "$folder/$wheel"
    echo "$wheel" >.venv/fairseq-wheel
}

echo "install: torch"
add torch numpy setuptools wheel
install_fairseq
for set in $missing; do
    case $set in test | dev | alignment) need_compiler "eflomal, for alignments," ;; esac
done
echo "install: fairseq-capsule for ${missing//$'\n'/, }"
add --no-build-isolation --editable ".[${missing//$'\n'/,}]"
.venv/bin/fairseq-capsule doctor >/dev/null || { .venv/bin/fairseq-capsule doctor; die "the environment has the problems above"; }
[ -d .venv/installed ] || rm -f .venv/installed
mkdir -p .venv/installed
for set in $missing; do
    echo "$required" >".venv/installed/$set"
done
