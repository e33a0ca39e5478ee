#!/usr/bin/env bash
# Prepare WMT16 English-Romanian, 0.6M pairs, from the raw archives: `prepare-wmt16-en-ro.sh --help`.
source "$(dirname "$0")/call.sh" prepare wmt16-en-ro "$@"
