#!/usr/bin/env bash
# Average the checkpoints of a run, translate with the average, and score the translations: `evaluate.sh --help`.
source "$(dirname "$0")/call.sh" evaluate "$@"
