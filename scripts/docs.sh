#!/usr/bin/env bash
# Build the site of docs/ in OUT, with warnings as errors. Requires npm, which installs KaTeX.
# Usage: scripts/docs.sh OUT
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: scripts/docs.sh OUT" >&2; exit 2; }
out=$(realpath -m "$1")
cd "$(dirname "$0")/.."

die() { echo "docs: error: $*" >&2; exit 1; }

command -v npm >/dev/null || die "no npm, which installs KaTeX; install Node.js 18 or later (Debian: apt install npm)"
katex=.venv/site
if ! cmp -s scripts/site/package-lock.json "$katex/package-lock.json" || [ ! -e "$katex/installed" ]; then
    rm -rf "$katex"
    mkdir -p "$katex"
    cp scripts/site/package.json scripts/site/package-lock.json "$katex"
    npm ci --prefix "$katex" --no-audit --no-fund --ignore-scripts --loglevel error >/dev/null || die "npm did not install KaTeX"
    touch "$katex/installed"
fi
# The theme advertises its successor.
NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --quiet --strict --site-dir "$out"
echo "docs: $out/index.html"
