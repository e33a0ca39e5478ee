#!/usr/bin/env bash
# Translate a training set with a teacher, as the data of students: `distill.sh --help`.
source "$(dirname "$0")/call.sh" distill "$@"
