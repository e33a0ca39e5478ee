#!/usr/bin/env bash
source "$(dirname "$0")/call.sh" prepare iwslt14-de-en "$@"
