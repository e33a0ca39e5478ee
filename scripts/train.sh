#!/usr/bin/env bash
# Train a model on a CPU, or on the GPUs of one or several nodes: `train.sh --help`.
source "$(dirname "$0")/call.sh" train "$@"
