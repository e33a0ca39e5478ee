# shellcheck shell=bash
# Sourced by the demos after common.sh: their output, and a training on a CPU.

# shellcheck disable=SC2154 # set by common.sh
plugin=$(realpath "$scripts/../fairseq_capsule")

keep_memory

step() { printf '\n== %s\n' "$*"; }

logged() { # LOG FILTER COMMAND...: writes the output to LOG and prints what FILTER keeps
    local log=$1 filter=$2
    "${@:3}" 2>&1 | tee "$log" | sed -unE "$filter" ||
        die "$3 failed: $(tail -n 1 "$log") (full log: $log); fix the cause and run the same command again"
}

train() { # UPDATES LOG DATA OPTION...: trains 2+2 layers, saves 20 checkpoints, keeps the last three
    local interval
    interval=$(calculate "$1" / 20)
    # --num-workers 0: torch may wait 5 seconds per epoch for the end of a data process.
    logged "$2" 's/.*num_updates=([0-9]+).*/&\n/; s/.*\bloss=([0-9.]+).*num_updates=([0-9]+).*/  update \2: loss \1/p' \
        fairseq-train "$3" --user-dir "$plugin" --encoder-layers 2 --decoder-layers 2 --share-all-embeddings --dropout 0 \
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
        --optimizer adam --adam-betas '(0.9,0.98)' --lr 4e-3 --lr-scheduler inverse_sqrt \
        --required-batch-size-multiple 1 --num-workers 0 --max-update "$1" --disable-validation --no-epoch-checkpoints \
        --save-interval-updates "$interval" --keep-interval-updates 3 \
        --seed 1 --cpu --no-progress-bar --log-format simple --log-interval "$interval" "${@:4}"
}

generate() { # LOG DATA CHECKPOINT OPTION...
    logged "$1" 's/.*(Translated .*)/  \1/p' \
        fairseq-generate "$2" --user-dir "$plugin" --path "$3" --beam 5 --max-tokens 8000 --cpu \
        --required-batch-size-multiple 1 "${@:4}" # otherwise fairseq leaves out a last batch that is no multiple of 8
}

show() { # LABEL FILE...: prints the first five lines of the files in turn, after their labels
    local labels=() files=()
    while [ $# -gt 0 ]; do
        labels+=("$1") files+=("$2")
        shift 2
    done
    python - "${labels[@]}" "${files[@]}" <<'SHOW'
import sys
from itertools import islice

names = sys.argv[1:]
labels, files = names[: len(names) // 2], names[len(names) // 2 :]
for lines in islice(zip(*(open(file, encoding="utf-8") for file in files)), 5):
    for label, line in zip(labels, lines):
        print(f"  {label:12} {line}", end="")
    print()
SHOW
}

verdict() { # MEASURE LABEL LEAST SCORES: fails if MEASURE is below LEAST. The last line of SCORES is a JSON object
    local found
    found=$(tail -n 1 "$4" | python -c 'import json, sys; print(json.load(sys.stdin)["scores"][sys.argv[1]]["score"])' "$1")
    python -c 'import sys; sys.exit(float(sys.argv[1]) < float(sys.argv[2]))' "$found" "$3" ||
        die "$2 $found on unseen sentences is below $3: the model has not learnt; give more --updates"
    printf '\n%s %.1f on unseen sentences is at least %s: the model has learnt.\n' "$2" "$found" "$3"
}
