"""What trainings and corpora cost, by the speeds that were measured, experiments/results/speed.csv.

Hours are of one H100 in bfloat16 with up to 32,768 tokens at once, those of tiny models of one core of a CPU.
"""

import csv
from functools import cache
from math import ceil
from typing import Dict

from experiments.tables.definitions import REPOSITORY
from experiments.tables.runs import Run, composed_of

SPEEDS = REPOSITORY / "experiments/results/speed.csv"
TRAINING = "training, Base, GPU, bf16, 32,768 tokens"
GENERATION = "generation, Base, GPU, fp16, beam 5, 4,096 tokens, sentences of 27 words"
TINY, TINY_CORES = "training, tiny", 2  # its speeds are those of two cores
BATCH = 32768  # tokens that the GPU takes at once
START = 27e-6  # seconds to start a kernel: a step of few tokens takes the time of its kernels' starts (docs/speed.md)
BIG = 3.5  # multiplications of Transformer-Big for a word, relative to Base's; its speed was not measured
SMALL = 100_000  # pairs; the models of smaller corpora are tiny
WORDS = {True: 15, False: 27}  # of a sentence, in small corpora (Multi30k) and in others (WMT14)
# A checkpoint: the parameters and both averages of Adam, in float32.
GIGABYTES = {"tiny": 0.03, "base": 0.8, "big": 2.6}
# A prepared pair: time on one core, and the archives and all stages of its text (docs/corpora.md).
PREPARED_SECONDS, PREPARED_KILOBYTES = 0.61e-3, 1.4

TRANSFORMER, LSTM = "fairseq's transformer", "fairseq's lstm"
SYSTEMS = {  # the name in speed.csv of each configuration; the others are counted as the Transformer
    "capsule_transformer": "capsule-Transformer",
    "gdr_transformer": "GDR, both losses",
    "gret_transformer": "GRET",
    "probe": "GRET",
    "selective_transformer": "Selective attention",
    "capsnmt": "CapsNMT",
    "lstm": LSTM,
    "gdr_lstm": "GDR on an LSTM, both losses",
}


@cache
def measured(measure: str, setting: str) -> Dict[str, float]:
    """The measured values of a measure in a setting, by the system's name in speed.csv."""
    with SPEEDS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["measure"], row["setting"]) == (measure, setting)]
    return {row["what"]: float(row["value"]) for row in rows}


def cost(kind: str, run: Run) -> Dict[str, float]:
    """What a step of a kind costs for a run, in `gpu_hours` or `cpu_hours` and `gigabytes`, as far as it is counted.

    Nothing is counted on a corpus of unknown size.
    """
    if not run.setup.pairs:
        return {}
    hours = "cpu_hours" if is_tiny(run) else "gpu_hours"
    if kind == "prepare":  # on one core
        pairs = run.setup.pairs
        return {"cpu_hours": pairs * PREPARED_SECONDS / 3600, "gigabytes": pairs * PREPARED_KILOBYTES / 1e6}
    if kind == "train":
        return {hours: training_hours(run), "gigabytes": checkpoints_gigabytes(run)}
    return {hours: translation_hours(run)} if kind == "distil" else {}


def system_of(run: Run) -> str:
    """The name in speed.csv of the system that costs as much as a run's; the Transformer for an unknown one."""
    model = composed_of(run).model
    if run.config == "gdr_lstm" and model.past_future == "none":
        return LSTM
    if run.config == "gdr_transformer" and model.guided_heads == "none":
        return "GDR without losses"
    return SYSTEMS.get(run.config, TRANSFORMER)


def is_tiny(run: Run) -> bool:
    return run.setup.pairs < SMALL


def size_of(run: Run) -> str:
    """`tiny`, `base` or `big`."""
    return "tiny" if is_tiny(run) else "big" if "size=big" in run.overrides else "base"


def training_hours(run: Run) -> float:
    """The hours of a training: on one GPU, of a tiny model on one core of a CPU.

    Tokens are those of a full batch, with padding, so the hours are rather too many.
    """
    config = composed_of(run)
    length = WORDS[is_tiny(run)]
    times = config.optimization.get("update_freq", [1])[0]
    batch = config.dataset.get("max_tokens") or config.dataset.get("batch_size") * length
    batch = run.setup.effective_tokens or batch * times
    epoch = ceil(run.setup.pairs * length / batch)
    updates = config.optimization.get("max_update") or config.optimization.max_epoch * epoch
    if is_tiny(run):
        return TINY_CORES * updates * batch / measured("speed", TINY)[TRANSFORMER] / 3600
    system = system_of(run)
    of_tokens = updates * batch * _relative_work(run) / measured("speed", TRAINING)[system]
    of_kernels = updates * ceil(batch / BATCH) * START * measured("kernels", TRAINING)[system]
    return max(of_tokens, of_kernels) / 3600


def translation_hours(run: Run) -> float:
    """The hours in which a teacher translates its training set; a tiny one translates as fast as it trains."""
    setting, cores = (TINY, TINY_CORES) if is_tiny(run) else (GENERATION, 1)
    words = run.setup.pairs * WORDS[is_tiny(run)] * _relative_work(run)
    return cores * words / measured("speed", setting)[TRANSFORMER] / 3600


def checkpoints_gigabytes(run: Run) -> float:
    """The disk that the checkpoints of a training fill: those that fairseq keeps, the best, the last and an average."""
    kept = composed_of(run).checkpoint
    number = max(kept.get("keep_interval_updates", 0), kept.get("keep_last_epochs", 0), 0)
    return GIGABYTES[size_of(run)] * (number + 3)


def _relative_work(run: Run) -> float:
    return BIG if size_of(run) == "big" else 1
