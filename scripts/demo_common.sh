# shellcheck shell=bash
# Sourced by the demos, behind common.sh: how they show what they do, and how a training is set up on a CPU.

# shellcheck disable=SC2154 # set by common.sh
plugin=$(realpath "$scripts/../fairseq_capsule")

keep_memory

step() { printf '\n== %s\n' "$*"; }

logged() { # LOG FILTER COMMAND...: the output goes to LOG, what FILTER keeps of it to the screen
    local log=$1 filter=$2
    "${@:3}" 2>&1 | tee "$log" | sed -unE "$filter" || die "$3 failed: $(tail -n 1 "$log") (all of it: $log)"
}

train() { # UPDATES LOG DATA OPTION...: a model of 2+2 layers, a checkpoint every 20th of the way, the last three kept
    local interval
    interval=$(calculate "$1" / 20)
    # Without a process that loads the data: torch may wait for its end for 5 seconds, every epoch.
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
        --required-batch-size-multiple 1 "${@:4}" # else fairseq leaves out the last batch where it is no multiple of 8
}

show() { # LABEL FILE...: the first five lines of each file, beside each other, behind its label
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

verdict() { # MEASURE LABEL LEAST SCORES: the last line of SCORES is the JSON object of `fairseq-capsule score`
    local found
    found=$(tail -n 1 "$4" | python -c 'import json, sys; print(json.load(sys.stdin)["scores"][sys.argv[1]]["score"])' "$1")
    python -c 'import sys; sys.exit(float(sys.argv[1]) < float(sys.argv[2]))' "$found" "$3" ||
        die "$2 $found on unseen sentences, below $3: it has not learnt"
    printf '\n%s %.1f on unseen sentences, at least %s was wanted: it has learnt.\n' "$2" "$found" "$3"
}
