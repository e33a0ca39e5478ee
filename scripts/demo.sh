#!/usr/bin/env bash
# The main job on the embedded corpus: data, training, averaging, translation, scores, a picture of the attention.
#
#     demo.sh [--train N] [--updates N] [--at-least BLEU] OUT
#
#   --train N         training pairs of the corpus (30,000)
#   --updates N       of the training (2,000)
#   --at-least BLEU   fail below this detokenised BLEU on the unseen test sentences (80)
#
# Run again after an interruption it goes on where it was.

source "$(dirname "$0")/common.sh"

train=30000 updates=2000 least=80 out=''
while (($#)); do
    case $1 in
        --train) train=$(value "$@"); shift ;;
        --updates) updates=$(value "$@"); shift ;;
        --at-least) least=$(value "$@"); shift ;;
        -h | --help) usage; exit ;;
        -*) die "no option $1 (see --help)" ;;
        *) [[ ! $out ]] || die "one folder OUT, not both '$out' and '$1' (see --help)"; out=$1 ;;
    esac
    shift
done
[[ $out ]] || die "name the folder OUT to make (see --help)"
need_positive --train "$train"
need_positive --updates "$updates"
((updates >= 60)) || die "--updates $updates: at least 60, for three checkpoints to average"
need_tools fairseq-capsule fairseq-generate fairseq-train
plugin=$(realpath "$scripts/../fairseq_capsule")

# Without these, glibc gives every large tensor's memory back to the system and asks for it again, all the time.
export MALLOC_MMAP_THRESHOLD_=4000000000 MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_TOP_PAD_=100000000

step() { printf '\n== %s\n' "$*"; }

logged() { # LOG FILTER COMMAND...: the output goes to LOG, what FILTER keeps of it to the screen
    local log=$1 filter=$2
    "${@:3}" 2>&1 | tee "$log" | sed -unE "$filter" || die "$3 failed: $(tail -n 1 "$log") (all of it: $log)"
}

step "1 of 6: the corpus, tokenised, in subwords, binarised"
"$scripts/prepare-toy.sh" --train "$train" "$out/data"

step "2 of 6: training a capsule-Transformer of 2+2 layers for $updates updates"
logged "$out/train.log" 's/.*num_updates=([0-9]+).*/&\n/; s/.*\bloss=([0-9.]+).*num_updates=([0-9]+).*/  update \2: loss \1/p' \
    fairseq-train "$out/data/bin" --user-dir "$plugin" --arch capsule_transformer_tiny --encoder-layers 2 --decoder-layers 2 \
    --share-all-embeddings --dropout 0 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --optimizer adam --adam-betas '(0.9,0.98)' --lr 4e-3 --lr-scheduler inverse_sqrt --warmup-updates 400 \
    --max-tokens 1024 --required-batch-size-multiple 1 --max-update "$updates" --disable-validation --no-epoch-checkpoints \
    --save-interval-updates $((updates / 20)) --keep-interval-updates 3 --save-dir "$out/run" \
    --seed 1 --cpu --no-progress-bar --log-format simple --log-interval $((updates / 20))

step "3 of 6: averaging the last checkpoints"
fairseq-capsule average "$out/run" --updates --last 3 --output "$out/average.pt"

step "4 of 6: translating the test sentences"
logged "$out/generate.out" 's/.*(Translated .*)/  \1/p' \
    fairseq-generate "$out/data/bin" --user-dir "$plugin" --path "$out/average.pt" --beam 5 --max-tokens 8000 --cpu \
    --required-batch-size-multiple 1 # else fairseq leaves out the last batch where it is no multiple of 8

step "5 of 6: scores, and some translations beside their references"
fairseq-capsule score "$out/generate.out" "$out/data/raw/test.de" --output "$out/translations.de" --json | tee "$out/scores" |
    grep -v '^{'
paste -d '\n' <(head -n 5 "$out/data/raw/test.en") <(head -n 5 "$out/data/raw/test.de") <(head -n 5 "$out/translations.de") |
    sed -E 's/^/  source       /; n; s/^/  reference    /; n; s/^/  translation  /; a\\'

step "6 of 6: attention before and after routing"
fairseq-capsule picture "$out/average.pt" "$out/data/bin" --codes "$out/data/codes" --tokenizer moses \
    --text "$(head -n 1 "$out/data/raw/test.en")" --out "$out/attention.png"

bleu=$(tail -n 1 "$out/scores" | python -c 'import json, sys; print(json.load(sys.stdin)["scores"]["detokenised_bleu"]["score"])')
if python -c 'import sys; sys.exit(float(sys.argv[1]) < float(sys.argv[2]))' "$bleu" "$least"; then
    printf '\nBLEU %.1f on unseen sentences, at least %s was wanted: it has learnt. The picture: %s\n' "$bleu" "$least" "$out/attention.png"
else
    die "BLEU $bleu on unseen sentences, below $least: it has not learnt"
fi
