#!/usr/bin/env bash
# Install Debian's chromium and its driver if they are missing. The tests of the inspector's pages run in them.
set -euo pipefail

missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v chromedriver >/dev/null || missing+=(chromium-driver)
[ ${#missing[@]} -eq 0 ] && exit 0

die() { echo "install-browser: error: $*" >&2; exit 1; }

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    die "no ${missing[*]}; install it (Debian: sudo apt-get install ${missing[*]})"
fi
echo "install-browser: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt=(timeout 600 apt-get -o Acquire::Retries=3)
if ! { "${apt[@]}" update && "${apt[@]}" install --yes --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    die "apt-get failed: $(tail -n 1 "$log")"
fi
