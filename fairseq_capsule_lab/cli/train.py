"""Train a model with fairseq-hydra-train on a CPU, or on the GPUs of one or several nodes.

    train.sh CONFIG DATA OUT [--gpus N | --processes N] [--nodes M] [--effective-tokens N] [--precision P]
             [--like-baseline CHECKPOINT] [KEY=VALUE ...]

  CONFIG         a YAML file such as configs/multi30k/gdr_transformer.yaml
  DATA           OUT of a prepare script or its `bin`, or a folder of fairseq-preprocess
  --gpus N       GPUs per node (all visible ones). 0 trains on the CPU, as does a machine without GPUs
  --processes N  processes per node on the CPU (1)
  --nodes M      train on M nodes. In a Slurm step (srun --ntasks-per-node=1 train.sh ...), or on each node with
                 MASTER_ADDR, the name of the first node, and NODE_RANK, 0 to M-1, in the environment (and
                 MASTER_PORT, if 29500 is in use)
  --effective-tokens N
                 tokens per update, on all processes together. The script chooses the accumulation
                 (optimization.update_freq) accordingly
  --precision P  fp32, fp16 or bf16 (fp32, whatever CONFIG says). fp16 and bf16 need GPUs
  --like-baseline CHECKPOINT
                 start from this Transformer or LSTM (task.init_from_baseline), with its layer sizes and shared
                 embeddings, whatever CONFIG says
  KEY=VALUE      further settings in Hydra's syntax: optimization.max_epoch=20 model.dropout=0.1.
                 common.user_dir=DIR, here or in CONFIG, names a plugin of your own (docs/extending.md)

  OUT            the run folder: fairseq's checkpoints; train.log; settings.json, which identifies the training;
                 manifest.json: the command, versions, git hash, hardware, effective batch, seed and times of each
                 start; finished, once the training is complete

The same command resumes an interrupted training from OUT/checkpoint_last.pt. It does nothing after a finished
training.
"""

import re
from collections.abc import Sequence

from fairseq_capsule_lab.cli.arguments import read_words
from fairseq_capsule_lab.errors import LabError

OPTIONS = ("gpus", "processes", "nodes", "effective-tokens", "precision", "like-baseline")
OVERRIDE = re.compile(r"[+~]*[A-Za-z0-9_.]+=", re.ASCII)


def run(program: str, words: Sequence[str]) -> None:
    options, rest = read_words(words, OPTIONS)
    overrides = [word for word in rest if OVERRIDE.match(word)]
    places = [word for word in rest if not OVERRIDE.match(word)]
    if len(places) != 3:
        raise LabError(f"name CONFIG, DATA and OUT, not {len(places)} places (see --help)")
    from fairseq_capsule_lab.runs.train import train  # it imports Hydra

    train(program, words, {**options, **dict(zip(("config", "data", "out"), places))}, overrides)
