#!/usr/bin/env bash
# Print the tables of docs/results.md again from results/multi30k.tar.xz, without training, and write them to a folder.
#
#     rebuild-results.sh [OUT]
#
#   OUT    the folder for each table as .md and .csv, its plot and its learning curves (results)

source "$(dirname "$0")/common.sh"

[[ ${1:-} != @(-h|--help) ]] || { usage; exit; }
need_tools fairseq-capsule python
out=${1:-$scripts/../results}
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
python "$scripts/../scripts/share_results.py" unpack "$scripts/../results/multi30k.tar.xz" "$runs"
for table in comparison comparison-lstm comparison-variants; do
    fairseq-capsule table "$table" --runs "$runs" --figure --curves --out "$out"
done
