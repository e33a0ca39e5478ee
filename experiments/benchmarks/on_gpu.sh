#!/usr/bin/env bash
# Measure on a GPU: training, generation, half precision. Eight minutes at most.
# Usage: experiments/benchmarks/on_gpu.sh [--wheels DIR] [--out DIR] [--seconds N] [--cpu] [--tiny] [PART...]
#
#   --wheels DIR    if the environment has no fairseq, install these wheels for this run (gpu-wheels.txt)
#   --out DIR       a folder for the results (on-gpu): a CSV file of each part, and log.txt
#   --seconds N     stop after N seconds (480); the seconds of each part grow with N
#   --cpu, --tiny   try the script on a CPU; with small models and few words
#
# A part that fails does not stop the next one. Without names these parts run, in this order, each within its seconds:
#   training 95      systems in bf16, 32,768 tokens: training.csv, and their dearest kernels: kernels.csv
#   compile 150      the same with --compile-routing
#   generation 60    beam 5, in batches and one sentence at a time, fp16: generation.csv
#   tests 75         the tests that need a GPU, if pytest is there
#   precisions 100   fp16, float32, TF32, batches of 4,096 tokens, sentences of 100 words: training.csv
# These run only if they are named:
#   updates 250      real trainings in each precision and in two processes, resumed: updates.csv, losses.csv
#   latency 300      CapsNMT, milliseconds a sentence and a step by source length: log.txt

set -uo pipefail
case ${1:-} in -h | --help) sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; exit ;; esac
here=$(cd "$(dirname "$0")" && pwd)
root=${here%/experiments/benchmarks} wheels='' out=on-gpu total=480 device=cuda tiny='' parts=()
while [ $# -gt 0 ]; do
    case $1 in
        --wheels) wheels=$(realpath "$2"); shift ;;
        --out) out=$2; shift ;;
        --seconds) total=$2; shift ;;
        --cpu) device=cpu ;;
        --tiny) tiny=yes ;;
        -*) echo "on_gpu: error: no option $1 (see --help)" >&2; exit 2 ;;
        *) parts+=("$1") ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=(training compile generation tests precisions)
mkdir -p "$out"
out=$(realpath "$out")
exec > >(tee -a "$out/log.txt") 2>&1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TQDM_DISABLE=1 PYTHONUNBUFFERED=1 PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH}

if ! python3 -c 'import fairseq' 2>/dev/null; then
    [ -n "$wheels" ] || { echo "on_gpu: error: python3 has no fairseq; activate its environment, or give --wheels" >&2; exit 1; }
    python3 -m pip install --quiet --no-index --no-deps --no-compile --target "$work/site" "$wheels"/*.whl || exit 1
    export PYTHONPATH=$work/site:$PYTHONPATH PATH=$work/site/bin:$PATH
fi

shared=(--device "$device")
if [ -n "$tiny" ]; then
    compare=("${shared[@]}" --size tiny --vocabulary 500 --batches 1 --rounds 2)
    half=bf16 precisions=(float32) batch=160 long=9 words=9 decoded=160 compiler=aot_eager pairs=300 updates=4 ways=(float32 two-processes)
else
    compare=("${shared[@]}")
    half=fp16 precisions=(fp16 tf32 float32) batch=32768 long=100 words=27 decoded=4096 compiler=inductor pairs=3000 updates=200
    ways=(float32 float32-again fp16 bf16 amp two-processes)
fi

run() { # stops the program at the end of the part
    echo "+ ${*//"$root/"/}"
    local left=$((deadline - SECONDS))
    timeout --kill-after 5 $((left > 1 ? left : 1)) python3 "$@"
}
compare() { run "$here/compare.py" "${compare[@]}" "$@"; }

training() {
    compare --systems transformer lstm capsule-transformer gdr gdr-losses gdr-losses-quarter gret selective \
        query-key-norm capsnmt gdr-lstm --precision bf16 --max-tokens "$batch" --rounds 2 \
        --out "$out/training.csv" --profile "$out/kernels.csv"
}
precisions() {
    local three=(--systems transformer capsule-transformer gdr-losses --rounds 2 --out "$out/training.csv")
    compare "${three[@]}" --precision bf16 --max-tokens $((batch / 8))
    compare "${three[@]}" --precision bf16 --max-tokens "$batch" --length "$long"
    compare "${three[@]}" --precision "${precisions[@]}" --max-tokens "$batch" --batches 2
}
tests() {
    python3 -c 'import pytest, hypothesis' || { echo "pytest or hypothesis is missing: tests skipped"; return; }
    (cd "$root" && run -m pytest -vv -p no:cacheprovider -m gpu tests/models/test_on_gpu.py)
}
generation() {
    local five=(--systems transformer capsule-transformer gdr gret capsnmt --precision "$half" --out "$out/generation.csv")
    compare "${five[@]}" --mode generate --max-tokens "$decoded" --batches 1 --length "$words" --rounds 2
    compare "${five[@]}" --mode sentences --batches 1 --length "$words" --rounds 2
}
updates() {
    run -m fairseq_capsule_lab.cli prepare toy "$work/toy" --train "$pairs" >"$work/prepared" 2>&1 || { cat "$work/prepared"; return 1; }
    run "$here/updates.py" --device "$device" --data "$work/toy/bin" --work "$work/updates" --updates "$updates" \
        --ways "${ways[@]}" --out "$out/updates.csv" --losses "$out/losses.csv"
}
compile() {
    compare --systems transformer capsule-transformer-compiled gdr-losses-compiled --backend "$compiler" \
        --precision bf16 --max-tokens "$batch" --rounds 4 --out "$out/training.csv" --profile "$out/kernels.csv"
}
latency() { run "$here/latency.py" "${shared[@]}" --archs capsnmt_base transformer --vocabulary 32000 --json; }

for part in "${parts[@]}"; do
    limit=$(sed -n "s/^#   $part \([0-9]*\) .*/\1/p" "$0")
    [ -n "$limit" ] || { echo "on_gpu: no part $part (see --help)"; continue; }
    limit=$((limit * total / 480)) left=$((total - SECONDS))
    [ "$left" -gt 0 ] || { echo "== $SECONDS s: no time for $part"; continue; }
    [ "$left" -gt "$limit" ] || limit=$left
    deadline=$((SECONDS + limit))
    echo "== $SECONDS s: $part, at most $limit s"
    "$part" || echo "== $SECONDS s: $part failed or was stopped"
done
echo "== $SECONDS s: done, results are in $out"
