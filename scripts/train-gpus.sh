#!/usr/bin/env bash
# Train on several GPUs or nodes by one plain command of torchrun and fairseq-hydra-train, printed first to read,
# change and paste. Take train.sh for a run folder that refuses other settings and for repair of a truncated
# checkpoint. Run it in the clone: the configurations name the plugin by its folder there.
#
#     train-gpus.sh [OPTION VALUE]... CONFIG DATA OUT [KEY=VALUE]...
#
#   CONFIG           a YAML file such as configs/papers/duan.yaml
#   DATA, OUT        the binarised data; the folder for checkpoints. fairseq resumes from OUT/checkpoint_last.pt
#   --gpus N         GPUs of each node, with a process for each (all visible ones)
#   --cpu N          instead, N processes on the CPU
#   --nodes M        srun --nodes M --ntasks-per-node 1 train-gpus.sh --nodes M ... Without Slurm start it on each node
#                    with MASTER_ADDR, the name of the first node, and NODE_RANK, 0 to M-1, in the environment
#   --precision P    fp16 or bf16 (float32)
#   --update-freq N  batches of a process per update: dataset.max_tokens × processes × N tokens (that of CONFIG)
#   KEY=VALUE        further settings, such as dataset.max_tokens=2048

source "$(dirname "$0")/common.sh"

processes=gpu nodes=1 settings=()
while [[ ${1:-} == -* ]]; do
    case $1 in
        -h | --help) print_help ;;
        --gpus) processes=$2 ;;
        --cpu) processes=$2 settings+=(common.cpu=true distributed_training.{distributed_backend=gloo,ddp_backend=legacy_ddp}) ;;
        --nodes) nodes=$2 ;;
        --precision) settings+=("common.$2=true") ;;
        --update-freq) settings+=("optimization.update_freq=[$2]") ;;
        *) die "unknown option $1 (see --help)" ;;
    esac
    shift 2
done
[ $# -ge 3 ] || die "name CONFIG, DATA and OUT (see --help)"
tasks=${SLURM_STEP_NUM_TASKS:-1}
if [ "$tasks" -gt "${SLURM_STEP_NUM_NODES:-$tasks}" ]; then
    remedy="give it --ntasks-per-node 1; if each task has a folder of its own, set SLURM_STEP_NUM_TASKS=1 before $program"
    die "srun started $tasks tasks on $SLURM_STEP_NUM_NODES nodes; $remedy"
fi
meeting=(--standalone)
if [ "$nodes" != 1 ]; then
    first=${MASTER_ADDR:-$(scontrol show hostnames "${SLURM_JOB_NODELIST:?use srun, or set MASTER_ADDR}" | sed -n 1p)}
    meeting=(--nnodes "$nodes" --node-rank "${SLURM_NODEID:-${NODE_RANK:?set it to 0 on the first node, 1 on the next}}")
    meeting+=(--master-addr "$first" --master-port "${MASTER_PORT:-29500}")
fi
for key in distributed_world_size:WORLD_SIZE distributed_rank:RANK device_id:LOCAL_RANK; do # torchrun sets the values
    settings+=("distributed_training.${key%:*}=\${oc.env:${key#*:}}")
done
command=(torchrun "${meeting[@]}" --nproc-per-node "$processes" --no-python fairseq-hydra-train
    --config-dir "$(dirname "$1")" --config-name "$(basename "$1" .yaml)" "task.data=$2" "checkpoint.save_dir=$3"
    common.log_format=simple distributed_training.{distributed_init_method=env://,distributed_no_spawn=true}
    "${settings[@]}" "${@:4}")
# torchrun passes SIGUSR1 on, after which all processes save and end. It gives them 30 seconds.
export PET_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1
printf '%q ' "${command[@]}" && echo
exec "${command[@]}"
