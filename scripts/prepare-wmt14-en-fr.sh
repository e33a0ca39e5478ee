#!/usr/bin/env bash
# Prepare WMT14 English-French, 36M pairs, from the raw archives: `prepare-wmt14-en-fr.sh --help`.
source "$(dirname "$0")/call.sh" prepare wmt14-en-fr "$@"
