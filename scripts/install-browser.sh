#!/usr/bin/env bash
# Install Debian's chromium and its driver, which the pages of `inspect` are tested in, where they are missing and this
# user may install packages. Never an error: without them these tests are skipped, and say so.
set -euo pipefail

missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v chromedriver >/dev/null || missing+=(chromium-driver)
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "install: no ${missing[*]}, so the tests of pages are skipped; to have them: sudo apt-get install ${missing[*]}"
    exit 0
fi
echo "install: ${missing[*]}, which pages are tested in"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ timeout 120 apt-get update && timeout 600 apt-get install --yes --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 ||
    echo "install: not installed, so the tests of pages are skipped: $(tail -n 1 "$log")"
