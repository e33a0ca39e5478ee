#!/usr/bin/env bash
# Install what the tests of the inspector's pages run in, if it is missing: Debian's chromium and its driver, and axe-core,
# which checks pages for people with disabilities. Without npm, or its network, the test with axe-core is skipped.
#
#     install-browser.sh
#
# Debian's packages are installed by apt-get, which requires root; axe-core by npm in .venv/axe.

source "$(dirname "$0")/common.sh"

take_options "" "$@"
[ ${#places[@]} -eq 0 ] || die "takes no arguments (see --help)"
cd "$scripts/.."

axe=.venv/axe axe_version=4.10.3
if [ ! -e "$axe/node_modules/axe-core/axe.min.js" ]; then
    if command -v npm >/dev/null && timeout 300 npm install --silent --no-save --no-audit --no-fund --ignore-scripts \
        --prefix "$axe" "axe-core@$axe_version" >/dev/null 2>&1; then
        echo "$program: axe-core $axe_version"
    else
        echo "$program: warning: no axe-core, its test is skipped; install npm and run this again" >&2
    fi
fi

missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v chromedriver >/dev/null || missing+=(chromium-driver)
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    die "no ${missing[*]}; install it (Debian: sudo apt-get install ${missing[*]})"
fi
echo "$program: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt=(timeout 600 apt-get -o Acquire::Retries=3)
if ! { "${apt[@]}" update && "${apt[@]}" install --yes --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    die "apt-get failed: $(tail -n 1 "$log")"
fi
