#!/usr/bin/env bash
# Print every table of experiments/results/ again from the archives there, without training, and write it to a folder.
# The last one is the table of claims of docs/results.md, which is only printed.
#
#     rebuild-results.sh [OUT]
#
#   OUT    the folder for each table as .md and .csv, its plot and its learning curves (experiments/results)

source "$(dirname "$0")/../scripts/common.sh"

take_places "$@"
[ $# -le 1 ] || die "name one folder OUT, not $# (see --help)"
out=${1:-$root/experiments/results}
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
for archive in "$root"/experiments/results/*.tar.xz; do
    folder=$runs/$(basename "$archive" .tar.xz)
    mkdir "$folder"
    tar -xf "$archive" -C "$folder"
done
for printed in "$root"/experiments/results/*.md; do
    table=$(basename "$printed" .md)
    own=$table
    [[ -d $runs/$own ]] || own=${table%%-*} # ablation-adequacy is in ablation.tar.xz, comparison in multi30k.tar.xz
    [[ -d $runs/$own ]] || own=multi30k
    "$root/scripts/reproduce.sh" "$table" --print --runs "$runs/$own" --figure --curves --out "$out"
done
python "$root/experiments/claims.py" "$out"
