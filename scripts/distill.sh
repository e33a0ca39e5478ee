#!/usr/bin/env bash
source "$(dirname "$0")/call.sh" distill "$@"
