#!/usr/bin/env bash
source "$(dirname "$0")/common.sh"
need fairseq-capsule
PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH} exec python "$root/experiments/reproduce.py" "$@"
