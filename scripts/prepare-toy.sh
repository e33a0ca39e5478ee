#!/usr/bin/env bash
# Generate the embedded English-German corpus: `prepare-toy.sh --help`.
source "$(dirname "$0")/call.sh" prepare toy "$@"
