#!/usr/bin/env bash
# Train a small model on an embedded corpus: data, training, averaging, translation, scores, a picture of the attention.
#
#     demo.sh [--summarize] [--train N] [--test N] [--updates N] [--at-least SCORE] OUT
#
#   --summarize       write headlines of Chinese news by GRET, instead of translating English by a capsule-Transformer
#   --train N         training pairs of the corpus (30,000)
#   --test N          unseen test pairs (500)
#   --updates N       updates of the training (1,200; headlines: 600)
#   --at-least SCORE  fail below this detokenised BLEU, for headlines ROUGE-L F1, on the unseen test texts (80)
#   OUT               the folder for the data, the run and the picture
#
# The same command resumes an interrupted run.

source "$(dirname "$0")/common.sh"

corpus=toy config=toy/capsule_transformer model=capsule-Transformer updates=1200
source=en target=de output=translation measure=detokenised_bleu label=BLEU steps=5
if [[ ${1:-} == --summarize ]]; then
    corpus=headlines config=headlines/gret_transformer model=GRET updates=600
    source=text target=summary output=headline measure=rougeL label=ROUGE-L steps=4
    shift
fi
train=30000 test=500 at_least=80 places=()
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) print_help ;;
        --train | --test | --updates | --at-least)
            [[ ${2:-} ]] || die "$1 requires a value (see --help)"
            name=${1#--}
            printf -v "${name//-/_}" %s "$2"
            shift ;;
        -*) die "unknown option $1 (see --help)" ;;
        *) places+=("$1") ;;
    esac
    shift
done
take_folder "${places[@]}"
results=$out/run/evaluation/test
[[ $updates =~ ^[1-9][0-9]{0,8}$ ]] || die "--updates must be a positive whole number, not '$updates'"
[ "$updates" -ge 60 ] || die "--updates $updates: give at least 60, so that there are three checkpoints to average"
[[ $at_least =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "--at-least must be a number, not '$at_least'"
export CUDA_VISIBLE_DEVICES=

say() { printf '\n== %s\n' "$*"; }
first() { sed -n "1,5s/^/  $(printf %-12s "$1") /p" "$2"; } # LABEL FILE

say "1 of $steps: preparing the corpus"
"$root/scripts/prepare-$corpus.sh" --train "$train" --test "$test" "$out/data"

say "2 of $steps: training a $model of 2+2 layers for $updates updates"
"$root/scripts/train.sh" "$root/configs/$config.yaml" "$out/data/bin" "$out/run" "optimization.max_update=$updates" \
    dataset.disable_validation=true checkpoint.no_epoch_checkpoints=true "checkpoint.save_interval_updates=$((updates / 20))" \
    checkpoint.keep_interval_updates=3 "common.log_interval=$((updates / 20))" |
    sed -uE 's/.* loss=([0-9.]+),.* num_updates=([0-9]+),.*/  update \2: loss \1/'

say "3 of $steps: averaging the last checkpoints; ${output}s of the test texts, and their scores"
"$root/scripts/evaluate.sh" --checkpoints last:3 --beam 5 "$out/run" "$out/data"

say "4 of $steps: some ${output}s with their references"
paste -d '\n' <(first source "$out/data/raw/test.$source") <(first reference "$out/data/raw/test.$target") \
    <(first "$output" "$results/translations.$target") /dev/null

if [ $corpus = toy ]; then
    say "5 of $steps: attention before and after routing"
    fairseq-capsule picture "$out/run/checkpoint_avg_last3_updates.pt" "$out/data" \
        --text "$(sed -n 1p "$out/data/raw/test.en")" --out "$out/attention.png"
    echo "The picture: $out/attention.png"
fi

score=$(python -c 'import json, sys; print(json.load(open(sys.argv[2]))["scores"][sys.argv[1]]["score"])' $measure "$results/scores.json")
awk -v "score=$score" -v "least=$at_least" 'BEGIN {exit score < least}' ||
    die "$label $score on unseen sentences is below $at_least: the model has not learnt; give more --updates"
printf '\n%s %.1f on unseen sentences is at least %s: the model has learnt.\n' $label "$score" "$at_least"
