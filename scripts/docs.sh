#!/usr/bin/env bash
# Build the site of docs/ in OUT, with warnings as errors. Requires npm, which installs KaTeX in .venv/site.
#
#     docs.sh OUT
#
# An earlier site in OUT is replaced.

source "$(dirname "$0")/common.sh"

take_folder "$@"
# mkdocs deletes what is in OUT.
[[ ! -e $out || -e $out/sitemap.xml ]] || die "$out is not a site that this script made: delete it, or name another folder"
out=$(realpath -m "$out")
cd "$root"

need npm "it installs KaTeX; install Node.js 18 or later (Debian: apt install npm)"
katex=.venv/site
if ! cmp -s scripts/site/package-lock.json "$katex/package-lock.json" || [ ! -e "$katex/installed" ]; then
    rm -rf "$katex" && mkdir -p "$katex" && cp scripts/site/package*.json "$katex"
    npm ci --prefix "$katex" --no-audit --no-fund --ignore-scripts --loglevel error >/dev/null || die "npm did not install KaTeX"
    touch "$katex/installed"
fi
# Not --quiet: mkdocs would count no warnings then. The theme advertises its successor.
log=$(NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict --site-dir "$out" 2>&1) ||
    { grep -vE "^INFO|^$" <<<"$log" >&2; die "the site was not built"; }
echo "$out/index.html"
