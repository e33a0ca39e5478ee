#!/usr/bin/env bash
# Prepare your own parallel text: `prepare.sh --help`.
source "$(dirname "$0")/call.sh" prepare own "$@"
