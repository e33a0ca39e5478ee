#!/usr/bin/env bash
# Train a model with fairseq-hydra-train on a CPU, or on the GPUs of one or several nodes.
#
#     train.sh CONFIG DATA OUT [--gpus N | --processes N] [--nodes M] [--effective-tokens N] [--precision P]
#              [--like-baseline CHECKPOINT] [KEY=VALUE ...]
#
#   CONFIG         a YAML file such as configs/multi30k/gdr_transformer.yaml
#   DATA           a binarised data folder, the `bin` of a prepare script's OUT
#   --gpus N       GPUs per node (all visible ones). 0 trains on the CPU, as does a machine without GPUs
#   --processes N  processes per node on the CPU (1)
#   --nodes M      train on M nodes. In a Slurm step (srun --ntasks-per-node=1 train.sh ...), or on each node with MASTER_ADDR, the
#                  name of the first node, and NODE_RANK, 0 to M-1, in the environment (and MASTER_PORT, if 29500 is in use)
#   --effective-tokens N
#                  tokens per update, on all processes together. The script chooses the accumulation
#                  (optimization.update_freq) accordingly
#   --precision P  fp32, fp16 or bf16 (fp32, whatever CONFIG says). fp16 and bf16 need GPUs
#   --like-baseline CHECKPOINT
#                  start from this Transformer or LSTM (task.init_from_baseline), with its layer sizes and shared embeddings,
#                  whatever CONFIG says
#   KEY=VALUE      further settings in Hydra's syntax: optimization.max_epoch=20 model.dropout=0.1. common.user_dir=DIR, here or in
#                  CONFIG, names a plugin of your own (docs/extending.md)
#
#   OUT            the run folder: fairseq's checkpoints; train.log; settings.json, which identifies the training;
#                  manifest.json: the command, versions, git hash, hardware, effective batch, seed and times of each start;
#                  finished, once the training is complete
#
# The same command resumes an interrupted training from OUT/checkpoint_last.pt. It does nothing after a finished training.

source "$(dirname "$0")/common.sh"

gpus='' processes='' nodes='' tokens='' precision=fp32 baseline='' places=() overrides=()
while [ $# -gt 0 ]; do
    case $1 in
        --gpus) gpus=$(value "$@"); shift ;;
        --processes) processes=$(value "$@"); shift ;;
        --nodes) nodes=$(value "$@"); shift ;;
        --effective-tokens) tokens=$(value "$@"); shift ;;
        --like-baseline) baseline=$(value "$@"); shift ;;
        --precision) precision=$(value "$@"); shift ;;
        -*) die "unknown option $1 (see --help)" ;;
        *) if [[ $1 =~ ^[+~]*[A-Za-z0-9_.]+= ]]; then overrides+=("$1"); else places+=("$1"); fi ;;
    esac
    shift
done
[ ${#places[@]} -eq 3 ] || die "name CONFIG, DATA and OUT, not ${#places[@]} places (see --help)"
out=${places[2]} here=$PWD
plugin=$(realpath "$scripts/../fairseq_capsule")
[[ -f $plugin/__init__.py ]] || die "$plugin is missing: call the script in a clone of the repository"
need_tools fairseq-hydra-train flock python torchrun

# Python computes all values and quotes them for Hydra. `words` is then the command of the training.
plan() {
    read_plan plan-training config="${places[0]}" data="${places[1]}" out="$out" plugin="$plugin" gpus="$gpus" \
        processes="$processes" nodes="$nodes" effective-tokens="$tokens" precision="$precision" \
        like-baseline="$baseline" visible="$(visible_gpus | paste -sd , -)" -- "${overrides[@]}"
}
plan
export CUDA_VISIBLE_DEVICES=${fields[gpus]}
if [[ ${fields[device]} == GPU ]]; then
    python -c 'import sys, torch; sys.exit(torch.cuda.device_count() < int(sys.argv[1]))' "${fields[gpu_count]}" ||
        die "--gpus ${fields[gpu_count]}: torch does not see them; 'fairseq-capsule doctor' shows why"
else
    keep_memory
fi
node=${fields[node]} log=train.log
if [[ $node == 0 ]]; then # the first node writes the records
    lock "$out"
else
    { mkdir -p "$out" && cd "$out"; } || die "cannot make the folder $out: name one that can be written"
    need_plain "$out"
    log=train.node$node.log
fi
run=$PWD resumes=''
[[ ! -e checkpoint_last.pt ]] || resumes=yes
if [[ $resumes != "${fields[resumes]}" ]]; then # another start wrote its first checkpoint before this one had the lock
    cd "$here"
    plan
    cd "$run"
fi

# --- the training ------------------------------------------------------------------------------------------------------

launch() { # in the caller's folder, because paths in the settings are relative to it
    cd "$here" && export HYDRA_FULL_ERROR=1 PYTHONWARNINGS=ignore
    exec "${words[@]}"
}

train() { # adds the output to the log and shows the important lines; returns fairseq's status
    local child='' status=0
    trap 'interrupted=yes; kill $child 2>/dev/null || true' HUP INT TERM
    launch >>"$log" 2>&1 & # it inherits the lock: if this script is killed, the folder stays locked until the training ends
    child=$!
    [[ ! $interrupted ]] || kill "$child" 2>/dev/null || true # interrupted before `child` was set
    tail -c "+$first" -f -s 0.2 --pid="$child" "$log" 9<&- |
        sed -unE 's/^\[[^]]*\]\[(train_inner|valid[0-9]*|fairseq_capsule[^]]*)\]\[INFO\] - /  /p
            s/^\[[^]]*\]\[[^]]*\]\[INFO\] - (Loaded checkpoint)/  \1/p
            s/^\[[^]]*\]\[[^]]*\]\[WARNING\] - /  warning: /p' 9<&- &
    wait "$child" 2>/dev/null || status=$? # bash prints a message about a signal
    wait # an interrupted training may take long to end
    trap - HUP INT TERM
    return $status
}

said() { # what this start added to the log
    tail -c "+$first" "$log"
}

reason() { # STATUS: the error that ended this start, not its consequences in other processes
    local error
    error=$(said | sed -nE 's/^(\[rank[0-9]+\]: )?((\w+\.)+[A-Z]\w*|[A-Z]\w*(Error|Exception))(: .+)$/\2\5/p' |
        grep -vE '^torch\.distributed|Connection (reset|closed) by peer' | tail -n 1) || true
    [[ $error ]] || [ "$1" -le 128 ] || error="killed by signal $(calculate "$1" - 128), perhaps because memory ran out"
    has_room || error="No space left on device"
    error=${error:-$(said | tail -n 1)}
    echo "$error"
}

failed() { # REASON ADVICE
    local reason
    reason=$(sed -E 's/^(fairseq_capsule|hydra|omegaconf)\.errors\.\w+: //' <<<"$1")
    rm -f checkpoint*.tmp # not completely written
    [[ $node != 0 ]] || run_folder end how="$reason" >/dev/null 2>&1 || true
    die "$reason (full log: $run/$log); $2"
}

begin() { # records the start
    run_folder start node="$node" out="$out" max_update="${fields[max_update]}" command="$command_line" plugin="$plugin" \
        processes="${fields[where]}" batch="${fields[batch]}" data="${fields[data]}" seed="${fields[seed]}" \
        <<<"${fields[settings]}"
}

status=0 interrupted=''
begin || status=$?
[ $status -ne 3 ] || exit 0 # finished
[ $status -eq 0 ] || exit $status
first=$(calculate "$(stat -c %s "$log" 2>/dev/null || echo 0)" + 1)
echo "$program: ${fields[where]}; effective batch: ${fields[batch]}"
{ echo "$program: ${fields[where]}; effective batch: ${fields[batch]}" >>"$log"; } 2>/dev/null ||
    cannot_write "$out"
train || status=$?
[[ ! $interrupted ]] || failed interrupted "the same command resumes from update $(run_folder resume-update)"
if [[ $node != 0 ]]; then
    [ $status -eq 0 ] || failed "$(reason $status)" "see the first node"
    exit
fi
# fairseq's status is unreliable: it may be 0 after an error.
if ! grep -q 'done training in' <(said) || [[ ! -e checkpoint_last.pt ]]; then
    error=$(reason $status) advice="fix the cause and run the same command again"
    [[ $error != @(hydra|omegaconf).errors.* ]] || advice="correct the command"
    failed "$error" "$advice"
fi
update=$(run_folder end how=finished) || exit 1
echo "ready: $run, $update updates"
