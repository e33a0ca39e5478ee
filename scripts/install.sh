#!/usr/bin/env bash
# Create .venv with the versions of constraints.txt, unless it is up to date.
# Usage: [PYTHON=python3.11] scripts/install.sh
set -euo pipefail
cd "$(dirname "$0")/.."

required=$(cat constraints.txt pyproject.toml scripts/install.sh | cksum)
die() { echo "install: error: $*" >&2; exit 1; }

# A copied or linked .venv runs the code of the checkout that it was made in.
installed=$(.venv/bin/python -I -c '
from importlib.util import find_spec
found = find_spec("fairseq_capsule")
print(found.origin if found else "")' 2>/dev/null) || installed=
if [ -n "$installed" ] && [ "$(realpath "$installed")" != "$(realpath fairseq_capsule/__init__.py)" ]; then
    echo "install: warning: .venv belongs to another checkout: its commands run the code of ${installed%/*};" \
        "remove .venv and run make install" >&2
fi
if [ "$(cat .venv/installed 2>/dev/null)" = "$required" ]; then
    [ -n "$installed" ] || # the checkout was moved, for example
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
        "install one (Debian: apt install python3.11-venv python3.11-dev) or name it: make PYTHON=/path/to/python …"
}

command -v c++ >/dev/null || die "no C++ compiler, which fairseq is built with; install one (Debian: apt install g++)"

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    rm -rf .venv # of an interrupted run
    python=$(find_python)
    echo "install: creating .venv with $("$python" --version)"
    "$python" -m venv .venv
fi
.venv/bin/python - <<'CHECK' || die "no Python.h, which fairseq is built with on Python 3.11; install it (Debian: apt install python3.11-dev)"
import os, sys, sysconfig
sys.exit(sys.version_info < (3, 12) and not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))
CHECK
pip() { .venv/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt "$@"; }

# fairseq is compiled against the torch and numpy that it will run with. With build isolation pip would download a
# second torch for the compilation, a CUDA build of gigabytes.
echo "install: torch and the build tools (1 of 3)"
pip torch numpy cython setuptools wheel
echo "install: fairseq (2 of 3; about 3 minutes where it is compiled)"
pip --no-build-isolation fairseq-fixed
echo "install: fairseq-capsule and its libraries (3 of 3)"
pip --no-build-isolation --editable '.[dev]'
.venv/bin/fairseq-capsule doctor >/dev/null || { .venv/bin/fairseq-capsule doctor; die "the environment has the problems above"; }
echo "$required" > .venv/installed
