#!/usr/bin/env bash
# Measure what is chosen after a training: the checkpoint, the routing iterations and the number format.
#
#     after-training.sh RUNS DATA OUT SEED
#
# It needs the first four rows and GRET of `scripts/reproduce.sh ablation --scale paper --seeds SEED --runs RUNS`, and writes
# OUT/seedSEED. `python experiments/after_training.py OUT` prints the tables of all seeds. With ROUNDS=4 it also measures the
# speed of the formats.

source "$(dirname "$0")/../scripts/common.sh"

take_places "$@"
[ $# -eq 4 ] || die "name RUNS, DATA, OUT and SEED (see --help)"
runs=$1/paper/multi30k data=$2 out=$3/seed$4 seed=$4
mkdir -p "$out"

bleu() { # EPOCH SPLIT: adds a line to epochs.csv
    fairseq-generate "$data/bin" --user-dir "$root/fairseq_capsule" --path "$runs/transformer/seed$seed/checkpoint$1.pt" --gen-subset "$2" \
        --beam 5 --required-batch-size-multiple 1 --max-tokens 4096 >"$out/generate.out"
    fairseq-capsule score "$out/generate.out" "$data/raw/$2.de" --lowercase --json |
        python -c "import json, sys; print('$1,$2', json.load(sys.stdin)['scores']['tokenised_bleu']['score'], sep=',')" >>"$out/epochs.csv"
    rm "$out/generate.out"
}

grep '\]\[valid\]' "$runs/transformer/seed$seed/train.log" | tail -n 10 >"$out/valid.log"
echo "epoch,split,bleu" >"$out/epochs.csv"
for epoch in {31..40}; do bleu "$epoch" valid; done
for epoch in $(python "$root/experiments/after_training.py" "$out" --epochs); do
    for split in test test1 test2; do bleu "$epoch" $split; done
done

without_losses=gdr_transformer+criterion.bca_weight-0+criterion.bow_weight-0+guided_heads-none
for split in test test1 test2; do
    fairseq-capsule analyze iterations "$runs"/{$without_losses,gdr_transformer,gret_transformer}"+on-transformer/seed$seed/checkpoint_last.pt" \
        --names 'GDR without losses' --names GDR --names GRET --data "$data" --split $split --iterations 1-6 --lowercase \
        --out "$out/iterations"
    mv "$out/iterations/iterations.csv" "$out/iterations-$split.csv"
    rm -r "$out/iterations"
done

rm -f "$out/formats.csv"
for system in continued $without_losses gdr_transformer gret_transformer; do
    fairseq-capsule export "$runs/$system+on-transformer/seed$seed/checkpoint_last.pt" "$data" "$out/$system" --to transformers
    # It imports a module beside it, which PYTHONSAFEPATH prevents.
    PYTHONSAFEPATH='' python "$root/experiments/benchmarks/number_formats.py" "$out/$system" "$data" --rounds "${ROUNDS:-0}" --out "$out/formats.csv"
    rm -r "${out:?}/$system"
done
