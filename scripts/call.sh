# shellcheck shell=bash
# Sourced by the scripts that are commands of fairseq-capsule: source call.sh COMMAND WORD...
set -euo pipefail
unset CDPATH
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[[ ! -d $root/.venv/bin ]] || PATH=$root/.venv/bin:$PATH
# PYTHONSAFEPATH: Python must not import a `json.py` of the folder in which it works.
export PATH LC_ALL=C.UTF-8 PYTHONUTF8=1 PYTHONSAFEPATH=1 CAPSULE_PROGRAM=${0##*/}
if [[ ! $(type -P fairseq-capsule) ]]; then
    echo "$CAPSULE_PROGRAM: fairseq-capsule is not installed: run 'make install', or activate the environment that has it" >&2
    exit 1
fi
exec fairseq-capsule "$@"
