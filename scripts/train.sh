#!/usr/bin/env bash
# Trains a model with fairseq-hydra-train, on GPUs of one or several nodes or on a CPU.
#
#     train.sh CONFIG DATA OUT [--gpus N | --processes N] [--nodes M] [--effective-tokens N] [--precision P] [KEY=VALUE ...]
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
#   KEY=VALUE      further settings, as Hydra writes them: optimization.max_epoch=20 model.dropout=0.1
#
#   OUT            the run folder: fairseq's checkpoints; train.log; settings, by which it knows its training again;
#                  manifest.tsv: settings, and for each start command, versions, git hash, data hash, hardware, effective
#                  batch, seed, times; finished, once the training has reached its end
#
# Run again it does nothing; run again after an interruption it goes on from OUT/checkpoint_last.pt.

source "$(dirname "$0")/common.sh"
source "$scripts/run_folder.sh"

gpus=all processes='' nodes=1 tokens=0 precision=fp32 places=() overrides=()
while (($#)); do
    case $1 in
        --gpus) gpus=$(value "$@"); [[ $gpus == 0 ]] || need_positive "$1" "$gpus"; shift ;;
        --processes) processes=$(value "$@"); need_positive "$1" "$processes"; shift ;;
        --nodes) nodes=$(value "$@"); need_positive "$1" "$nodes"; shift ;;
        --effective-tokens) tokens=$(value "$@"); need_positive "$1" "$tokens"; shift ;;
        --precision) precision=$(value "$@"); shift ;;
        -h | --help) usage; exit ;;
        -*) die "no option $1 (see --help)" ;;
        *) if [[ $1 =~ ^[+~]*[A-Za-z0-9_.]+= ]]; then overrides+=("$1"); else places+=("$1"); fi ;;
    esac
    shift
done
((${#places[@]} == 3)) || die "name CONFIG, DATA and OUT, not ${#places[@]} places (see --help)"
config=${places[0]} data=${places[1]} out=${places[2]}
[[ $precision == @(fp32|fp16|bf16) ]] || die "--precision wants fp32, fp16 or bf16, not '$precision'"
[[ ! $processes || $gpus == @(all|0) ]] || die "--gpus and --processes: there is one process a GPU; name one of the two"
[[ $config == *.yaml && -f $config ]] || die "$config: no such YAML file; name one as configs/toy/combined.yaml"
[[ -d $data ]] || die "$data: no such data folder"
exists "$data"/train.*.bin ||
    die "$data: no binarised training set in it; name the folder that fairseq-preprocess made, OUT/bin of a prepare script"
plugin=$(realpath "$scripts/../fairseq_capsule")
[[ -f $plugin/__init__.py ]] || die "$plugin is missing: call the script in a clone of the repository"
need_tools fairseq-hydra-train flock python torchrun
config=$(realpath "$config") data=$(realpath "$data") here=$PWD

# --- where: options of fairseq's and the launcher ----------------------------------------------------------------------

mapfile -t visible < <(visible_gpus)
[[ ! $processes ]] || gpus=0
[[ $gpus != all ]] || gpus=${#visible[@]}
((gpus <= ${#visible[@]})) ||
    die "--gpus $gpus: ${#visible[@]} can be seen here; ask for no more, or for --gpus 0, a training on the CPU"
CUDA_VISIBLE_DEVICES=$(IFS=, && echo "${visible[*]:0:gpus}")
export CUDA_VISIBLE_DEVICES
if ((gpus > 0)); then
    processes=$gpus device=GPU options=()
    python -c 'import sys, torch; sys.exit(torch.cuda.device_count() < int(sys.argv[1]))' "$gpus" ||
        die "--gpus $gpus: torch does not see them; 'fairseq-capsule doctor' says why"
else
    : "${processes:=1}"
    device=CPU options=(common.cpu=true distributed_training.distributed_backend=gloo
        distributed_training.ddp_backend=legacy_ddp)
    [[ $precision == fp32 ]] || die "--precision $precision: fairseq has that on GPUs alone; leave it out on the CPU"
    keep_memory
fi
for name in fp16 bf16; do
    options+=("common.$name=$([[ $precision == "$name" ]] && echo true || echo false)")
done
node=0 launcher=() world=$((nodes * processes))
if ((nodes > 1)); then
    node=${SLURM_NODEID:-${NODE_RANK:-}}
    [[ $node =~ ^[0-9]+$ ]] && ((node < nodes)) ||
        die "--nodes $nodes: which of them is this? Start it by srun, or set NODE_RANK, 0 to $((nodes - 1)), and MASTER_ADDR"
    if [[ ! ${MASTER_ADDR:-} ]]; then
        step=${SLURM_STEP_NODELIST:-${SLURM_JOB_NODELIST:-}}
        [[ $step ]] || die "--nodes $nodes: MASTER_ADDR is not set; give it the name of the first node"
        MASTER_ADDR=$(scontrol show hostnames "$step" 2>/dev/null | sed -n 1p) && [[ $MASTER_ADDR ]] ||
            die "--nodes $nodes: scontrol does not name the first node of $step; set MASTER_ADDR to it"
    fi
    # Jobs that share a node must not share a port.
    launcher=(--nnodes "$nodes" --node-rank "$node" --master-addr "$MASTER_ADDR"
        --master-port "${MASTER_PORT:-$((29500 + ${SLURM_JOB_ID:-0} % 1000))}")
elif ((world > 1)); then
    launcher=(--standalone)
fi
options+=("distributed_training.distributed_world_size=$world")
if ((world > 1)); then # fairseq by itself starts one process a GPU, and none on a CPU
    launcher=(torchrun "${launcher[@]}" --nproc-per-node "$processes" --no-python)
    options+=(distributed_training.distributed_init_method=env:// distributed_training.distributed_no_spawn=true
        'distributed_training.distributed_rank=${oc.env:RANK}' 'distributed_training.device_id=${oc.env:LOCAL_RANK}')
fi

# --- what: the configuration, and the folder that is bound to it -------------------------------------------------------

plan=$(python "$scripts/plan_training.py" "$config" "$world" "$tokens" "${overrides[@]}") || exit 1
mapfile -t plan <<<"$plan"
[[ ! ${plan[0]} ]] || options+=("${plan[0]}")
batch=${plan[1]} max_update=${plan[2]} seed=${plan[3]}
if ((node == 0)); then # it keeps the folder's books
    hash=$(find "$data" -maxdepth 1 \( -name 'dict.*.txt' -o -name 'train*.bin' -o -name 'valid*.bin' \) -print0 | sort -z |
        xargs -0 cat | sha256sum | cut -c 1-12)
    open_run "$out" "data $hash" "precision $precision" "${plan[@]:4}"
    log=train.log
else
    mkdir -p "$out" && cd "$out"
    log=train.node$node.log
fi
((max_update == 0 || $(last_update) < max_update)) || touch finished # started once more, fairseq would make another update
if [[ -e finished ]]; then
    echo "$out: finished, nothing to do"
    exit
fi
run=$PWD

# --- the training ------------------------------------------------------------------------------------------------------

quoted() { # TEXT: as Hydra reads it, whatever is in it
    sed "s/[\\\\']/\\\\&/g; s/^/'/; s/$/'/" <<<"$1"
}

launch() { # from the caller's folder, to which paths among the settings are relative
    cd "$here" && export HYDRA_FULL_ERROR=1 PYTHONWARNINGS=ignore
    exec "${launcher[@]}" fairseq-hydra-train --config-dir "${config%/*}" --config-name "$(basename "$config" .yaml)" \
        common.log_format=simple "${overrides[@]}" "${options[@]}" common.user_dir="$(quoted "$plugin")" \
        task.data="$(quoted "$data")" checkpoint.save_dir="$(quoted "$run")" hydra.run.dir="$(quoted "$run")" \
        hydra.output_subdir=null hydra.job_logging.root.handlers=[console] '~hydra.job_logging.handlers.file'
}

train() { # adds this start's output to the log and shows its telling lines; the status is fairseq's
    local child='' status=0
    trap 'interrupted=yes; kill $child 2>/dev/null || true' HUP INT TERM
    launch >>$log 2>&1 & # it keeps the lock: if this script is killed, nobody gets in before its training has ended
    child=$!
    [[ ! $interrupted ]] || kill $child 2>/dev/null || true # interrupted before it had a name
    tail -c "+$((logged + 1))" -f -s 0.2 --pid=$child $log 9<&- |
        sed -unE 's/^\[[^]]*\]\[(train_inner|valid[0-9]*|fairseq_capsule[^]]*)\]\[INFO\] - /  /p
            s/^\[[^]]*\]\[[^]]*\]\[INFO\] - (Loaded checkpoint)/  \1/p
            s/^\[[^]]*\]\[[^]]*\]\[WARNING\] - /  warning: /p' 9<&- &
    wait $child 2>/dev/null || status=$? # bash would tell of a signal by itself
    wait # an interrupted training takes its time to end
    trap - HUP INT TERM
    return $status
}

said() { # what this start has added to the log
    tail -c "+$((logged + 1))" $log
}

reason() { # STATUS: the error that ended this start, not what followed from it in other processes
    local error
    error=$(said | sed -nE 's/^(\[rank[0-9]+\]: )?((\w+\.)+[A-Z]\w*|[A-Z]\w*(Error|Exception))(: .+)$/\2\5/p' |
        grep -vE '^torch\.distributed|Connection (reset|closed) by peer' | tail -n 1) || true
    [[ $error ]] || (($1 <= 128)) || error="killed by signal $(($1 - 128)), perhaps for want of memory"
    (($(df --output=avail . | tail -n 1) >= 1024)) || error="No space left on device"
    error=${error:-$(said | tail -n 1)}
    echo "${error#fairseq_capsule.errors.UserError: }"
}

failed() { # REASON MEND
    rm -f checkpoint*.tmp # what could not be written
    ((node > 0)) || note_end "$1" 2>/dev/null || true
    die "$1 (all of it: $run/$log); $2"
}

where="nodes: $nodes, processes a node: $processes, each on a $device, $precision"
logged=$(stat -c %s $log 2>/dev/null || echo 0) status=0 interrupted=''
echo "$program: $where; effective batch: $batch"
{ echo "$program: $where; effective batch: $batch" >>$log; } 2>/dev/null ||
    die "cannot write in $out: it is read-only or the disk is full"
((node > 0)) || note_start "$where" "$batch" "$seed" "$data" "$plugin"
train || status=$?
[[ ! $interrupted ]] || failed interrupted "the same command goes on from update $(last_update)"
if ((node > 0)); then
    ((status == 0)) || failed "$(reason $status)" "see the first node"
    exit
fi
# fairseq's status says nothing: an error may end with 0.
if ! grep -q 'done training in' <(said) || [[ ! -e checkpoint_last.pt ]]; then
    failed "$(reason $status)" "mend that and run the same command again"
fi
note_end finished
touch finished
echo "ready: $run, $(last_update) updates"
