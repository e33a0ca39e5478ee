#!/usr/bin/env bash
# Prepare WMT17 Chinese-English, 24M raw pairs, from the raw archives: `prepare-wmt17-zh-en.sh --help`.
source "$(dirname "$0")/call.sh" prepare wmt17-zh-en "$@"
