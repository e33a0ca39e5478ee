#!/usr/bin/env bash
# Prepare Multi30k task 1 from the raw archives: `prepare-multi30k.sh --help`.
source "$(dirname "$0")/call.sh" prepare multi30k "$@"
