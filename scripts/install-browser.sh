#!/usr/bin/env bash
# Install what the tests of the inspector's pages run in, if it is missing: Debian's chromium and its driver, and axe-core,
# which checks pages for people with disabilities. Without npm, or its network, the test with axe-core is skipped.
#
#     install-browser.sh
#
# Debian's packages are installed by apt-get, which requires root; axe-core by npm in .venv/axe.

source "$(dirname "$0")/common.sh"

take_places "$@"
[ $# -eq 0 ] || die "takes no arguments (see --help)"
cd "$root"

axe=.venv/axe axe_version=4.10.3
[ -e "$axe/node_modules/axe-core/axe.min.js" ] ||
    timeout 300 npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix "$axe" "axe-core@$axe_version" \
        >/dev/null 2>&1 || echo "$program: warning: no axe-core, its test is skipped; install npm and run this again" >&2

mapfile -t missing < <(type -P chromium >/dev/null || echo chromium; type -P chromedriver >/dev/null || echo chromium-driver)
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" -ne 0 ] || [[ ! $(type -P apt-get) ]]; then
    die "no ${missing[*]}; install it (Debian: sudo apt-get install ${missing[*]})"
fi
echo "$program: ${missing[*]}"
apt() { DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -o Acquire::Retries=3 "$@" 2>&1; }
log=$(apt update && apt install --yes --no-install-recommends "${missing[@]}") || die "apt-get failed: ${log##*$'\n'}"
