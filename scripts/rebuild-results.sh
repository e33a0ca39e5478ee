#!/usr/bin/env bash
# Print every table of results/ again from results/multi30k.tar.xz, without training, and write it to a folder.
#
#     rebuild-results.sh [OUT]
#
#   OUT    the folder for each table as .md and .csv, its plot and its learning curves (results)

source "$(dirname "$0")/common.sh"

take_options "" "$@"
[ ${#places[@]} -le 1 ] || die "name one folder OUT, not ${#places[@]} (see --help)"
need_tools fairseq-capsule python
results=$scripts/../results
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
python "$scripts/share_results.py" unpack "$results/multi30k.tar.xz" "$runs"
for curves in "$results"/*-curves.md; do
    fairseq-capsule table "$(basename "$curves" -curves.md)" --runs "$runs" --figure --curves --out "${places[0]:-$results}"
done
