# shellcheck shell=bash
# Functions for calls.txt.
set -o pipefail

one() { # SYSTEM OUT OPTION...: trains in one process; prints the logged values
    local arch=$1 losses="--criterion label_smoothed_cross_entropy"
    [[ $1 != combined ]] || arch="capsule_transformer_tiny --past-future gdr --guided-heads both --global-representation capsule"
    [[ $1 != gdr_lstm ]] || arch="gdr_lstm --encoder-embed-dim 64 --encoder-hidden-size 64 --decoder-embed-dim 64 --decoder-hidden-size 64 --decoder-out-embed-dim 64"
    [[ $1 != @(gdr_*|combined) ]] || losses="--task capsule_translation --criterion label_smoothed_cross_entropy_with_routing_losses"
    # shellcheck disable=SC2086 # several options
    fairseq-train bin --user-dir "$REPO/fairseq_capsule" --arch $arch $losses --label-smoothing 0.1 --dropout 0.1 \
        --optimizer adam --lr 2e-3 --max-tokens 300 --seed 1 --cpu --num-workers 0 --log-format json --log-interval 1 \
        --save-dir "$2" "${@:3}" 2>&1 | sed -nE 's/^.*\| INFO \| (train_inner|valid) \| /\1 /p'
}

two() { # SYSTEM OUT OPTION...: trains in two processes
    local meet options
    meet=$(mktemp -u)
    options=(--distributed-world-size 2 --distributed-init-method "file://$meet" --distributed-no-spawn
        --distributed-backend gloo --ddp-backend legacy_ddp)
    one "$@" "${options[@]}" --distributed-rank 1 >/dev/null &
    one "$@" "${options[@]}" --distributed-rank 0 && wait $!
}

three_updates() { # one|two SYSTEM
    "$1" "$2" "whole-$1-$2" --disable-validation --save-interval-updates 2 --max-update 3
}

killed() { # one|two SYSTEM: SIGKILL after the second update, then resumes to the third
    local out=killed-$1-$2
    set -m # the training is a process group
    "$1" "$2" "$out" --disable-validation --save-interval-updates 2 --max-update 1000 >/dev/null 2>&1 &
    set +m
    while [[ ! -e $out/checkpoint_1_2.pt ]]; do kill -0 $! || return 1; sleep 0.05; done
    kill -KILL -- -$!
    wait $! 2>/dev/null
    cp "$out/checkpoint_1_2.pt" "$out/checkpoint_last.pt" # a fast machine may have saved a later update
    rm -f "$out"/checkpoint_1_[4-9].pt "$out"/*.tmp
    "$1" "$2" "$out" --disable-validation --save-interval-updates 2 --max-update 3
}

served() { # ARGUMENT...: asks `fairseq-capsule serve` for its pages
    local address
    mkdir -p answers
    set -m # the server is a process group
    fairseq-capsule serve "$@" --port 0 >served &
    set +m
    while [[ ! -s served ]]; do kill -0 $! || return 1; sleep 0.2; done
    read -r address _ <served
    curl -sS "$address" -o answers/page.html
    curl -sS "$address?text=the+birds&beam=2" -o answers/translated.html
    curl -sS "${address}inside?text=the+birds&beam=2" -o answers/inside.html
    kill -INT -- -$!
    wait $!
}
