#!/usr/bin/env bash
# Prepare WMT14 English-German, 4.5M pairs, from the raw archives: `prepare-wmt14-en-de.sh --help`.
source "$(dirname "$0")/call.sh" prepare wmt14-en-de "$@"
