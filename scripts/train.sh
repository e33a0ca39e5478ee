#!/usr/bin/env bash
# Trains a model with fairseq-hydra-train, on GPUs of one or several nodes or on a CPU.
#
#     train.sh CONFIG DATA OUT [--gpus N | --processes N] [--nodes M] [--effective-tokens N] [--precision P]
#              [--like-baseline CHECKPOINT] [KEY=VALUE ...]
#
#   CONFIG         a YAML file, as configs/multi30k/gdr_transformer.yaml
#   DATA           a binarised data folder, the `bin` of a prepare script's OUT
#   --gpus N       GPUs of a node (all that can be seen); 0 trains on the CPU, as does a machine that has none
#   --processes N  processes of a node on the CPU (1)
#   --nodes M      this is one of M nodes: of a Slurm step (srun --ntasks-per-node=1 train.sh ...), or with MASTER_ADDR, the
#                  first one's name, and NODE_RANK, 0 to M-1, in the environment (and MASTER_PORT, if 29500 is taken)
#   --effective-tokens N
#                  tokens that an update is computed from, on all processes together: the accumulation,
#                  optimization.update_freq, is chosen for that
#   --precision P  fp32, fp16 or bf16 (fp32, whatever CONFIG says); the last two on GPUs alone
#   --like-baseline CHECKPOINT
#                  start from this Transformer or LSTM (task.init_from_baseline), and take the sizes of the layers and which
#                  embeddings are shared from it, whatever CONFIG says
#   KEY=VALUE      further settings, as Hydra writes them: optimization.max_epoch=20 model.dropout=0.1
#
#   OUT            the run folder: fairseq's checkpoints; train.log; settings.json, by which it knows its training again;
#                  manifest.json: for each start command, versions, git hash, hardware, effective batch, seed, times;
#                  finished, once the training has reached its end
#
# Run again it does nothing; run again after an interruption it goes on from OUT/checkpoint_last.pt.

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
        -h | --help) usage; exit ;;
        -*) die "no option $1 (see --help)" ;;
        *) if [[ $1 =~ ^[+~]*[A-Za-z0-9_.]+= ]]; then overrides+=("$1"); else places+=("$1"); fi ;;
    esac
    shift
done
[ ${#places[@]} -eq 3 ] || die "name CONFIG, DATA and OUT, not ${#places[@]} places (see --help)"
out=${places[2]} here=$PWD
plugin=$(realpath "$scripts/../fairseq_capsule")
[[ -f $plugin/__init__.py ]] || die "$plugin is missing: call the script in a clone of the repository"
need_tools fairseq-hydra-train flock python torchrun

# Whatever is computed, or quoted for Hydra, is so in Python; `words` is then the command of the training.
read_plan plan-training config="${places[0]}" data="${places[1]}" out="$out" plugin="$plugin" gpus="$gpus" \
    processes="$processes" nodes="$nodes" effective-tokens="$tokens" precision="$precision" \
    like-baseline="$baseline" visible="$(visible_gpus | paste -sd , -)" -- "${overrides[@]}"
export CUDA_VISIBLE_DEVICES=${fields[gpus]}
if [[ ${fields[device]} == GPU ]]; then
    python -c 'import sys, torch; sys.exit(torch.cuda.device_count() < int(sys.argv[1]))' "${fields[gpu_count]}" ||
        die "--gpus ${fields[gpu_count]}: torch does not see them; 'fairseq-capsule doctor' says why"
else
    keep_memory
fi
node=${fields[node]} log=train.log
if [[ $node == 0 ]]; then # it keeps the folder's books
    lock "$out"
else
    { mkdir -p "$out" && cd "$out"; } || die "cannot make the folder $out: name one that can be written"
    log=train.node$node.log
fi
run=$PWD

# --- the training ------------------------------------------------------------------------------------------------------

launch() { # from the caller's folder, to which paths among the settings are relative
    cd "$here" && export HYDRA_FULL_ERROR=1 PYTHONWARNINGS=ignore
    exec "${words[@]}"
}

train() { # adds this start's output to the log and shows its telling lines; the status is fairseq's
    local child='' status=0
    trap 'interrupted=yes; kill $child 2>/dev/null || true' HUP INT TERM
    launch >>"$log" 2>&1 & # it keeps the lock: if this script is killed, nobody gets in before its training has ended
    child=$!
    [[ ! $interrupted ]] || kill "$child" 2>/dev/null || true # interrupted before it had a name
    tail -c "+$first" -f -s 0.2 --pid="$child" "$log" 9<&- |
        sed -unE 's/^\[[^]]*\]\[(train_inner|valid[0-9]*|fairseq_capsule[^]]*)\]\[INFO\] - /  /p
            s/^\[[^]]*\]\[[^]]*\]\[INFO\] - (Loaded checkpoint)/  \1/p
            s/^\[[^]]*\]\[[^]]*\]\[WARNING\] - /  warning: /p' 9<&- &
    wait "$child" 2>/dev/null || status=$? # bash would tell of a signal by itself
    wait # an interrupted training takes its time to end
    trap - HUP INT TERM
    return $status
}

said() { # what this start has added to the log
    tail -c "+$first" "$log"
}

reason() { # STATUS: the error that ended this start, not what followed from it in other processes
    local error
    error=$(said | sed -nE 's/^(\[rank[0-9]+\]: )?((\w+\.)+[A-Z]\w*|[A-Z]\w*(Error|Exception))(: .+)$/\2\5/p' |
        grep -vE '^torch\.distributed|Connection (reset|closed) by peer' | tail -n 1) || true
    [[ $error ]] || [ "$1" -le 128 ] || error="killed by signal $(calculate "$1" - 128), perhaps for want of memory"
    has_room || error="No space left on device"
    error=${error:-$(said | tail -n 1)}
    echo "${error#fairseq_capsule.errors.UserError: }"
}

failed() { # REASON MEND
    rm -f checkpoint*.tmp # what could not be written
    [[ $node != 0 ]] || run_folder end how="$1" >/dev/null 2>&1 || true
    die "$1 (all of it: $run/$log); $2"
}

begin() { # notes the start
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
    die "cannot write in $out: it is read-only or the disk is full"
train || status=$?
[[ ! $interrupted ]] || failed interrupted "the same command goes on from update $(run_folder last-update)"
if [[ $node != 0 ]]; then
    [ $status -eq 0 ] || failed "$(reason $status)" "see the first node"
    exit
fi
# fairseq's status says nothing: an error may end with 0.
if ! grep -q 'done training in' <(said) || [[ ! -e checkpoint_last.pt ]]; then
    failed "$(reason $status)" "mend that and run the same command again"
fi
update=$(run_folder end how=finished) || exit 1
echo "ready: $run, $update updates"
