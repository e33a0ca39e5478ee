#!/usr/bin/env bash
# Generate the embedded summarisation corpus, short Chinese news with headlines: `prepare-headlines.sh --help`.
source "$(dirname "$0")/call.sh" prepare headlines "$@"
