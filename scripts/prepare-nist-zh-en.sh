#!/usr/bin/env bash
# Prepare NIST Chinese-English, 1.09M pairs, from your own LDC files: `prepare-nist-zh-en.sh --help`.
source "$(dirname "$0")/call.sh" prepare nist-zh-en "$@"
