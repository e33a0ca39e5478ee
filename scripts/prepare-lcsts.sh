#!/usr/bin/env bash
# Prepare LCSTS, short Chinese texts and their summaries, from its own files: `prepare-lcsts.sh --help`.
source "$(dirname "$0")/call.sh" prepare lcsts "$@"
