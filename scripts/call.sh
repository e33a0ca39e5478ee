# shellcheck shell=bash
# Sourced by the scripts that are commands of fairseq-capsule: source call.sh COMMAND WORD...
source "${BASH_SOURCE[0]%/*}/common.sh"
need fairseq-capsule
CAPSULE_PROGRAM=$program exec fairseq-capsule "$@"
