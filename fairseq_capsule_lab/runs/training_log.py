"""Learning curves from fairseq's log of a training."""

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Mapping, Tuple

# A line of fairseq-hydra-train's log or of fairseq-train's.
_VALIDATION = re.compile(r"(?:\]\[valid\]\[INFO\] - |\| INFO \| valid \| )(?P<text>.*)")
# The entries of a progress line that are not measures of the model.
PROGRESS = set("epoch num_updates wps ups wpb bsz ppl lr gnorm clip loss_scale gb_free train_wall wall".split())

# Update → value.
Curve = Dict[int, float]


@dataclass
class TrainingLog:
    """The curves of one training."""

    validation: Dict[str, Curve] = field(default_factory=dict)  # of each measure


def read_training_log(path: Path) -> TrainingLog:
    """Read a log. A missing or empty log gives an empty `TrainingLog`.

    After a restart, the later of two values at the same update is used.
    """
    log = TrainingLog()
    if not path.exists():
        return log
    with open(path, encoding="utf-8", errors="replace") as stream:
        for match in filter(None, map(_VALIDATION.search, stream)):
            statistics = _statistics(match["text"])
            for name, value in statistics.items() if "num_updates" in statistics else ():
                if name not in PROGRESS and not name.startswith("best_"):
                    log.validation.setdefault(name, {})[int(statistics["num_updates"])] = value
    return log


def _statistics(text: str) -> Dict[str, float]:
    """The values of a line `epoch 001 | loss 7.1 | …`, or of a line of `--log-format json`, that are finite numbers."""
    if text.startswith("{"):
        pairs = [(name.removeprefix("valid_"), value) for name, value in json.loads(text).items()]
    else:
        pairs = [part.strip().rpartition(" ")[::2] for part in text.split("|")]
    figures = {}
    for name, value in pairs:
        try:
            figures[name] = float(value)
        except ValueError:  # "valid on 'valid' subset"
            continue
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def shared_measures(logs: Mapping[str, TrainingLog]) -> Tuple[str, ...]:
    """The validation measures that at least one run has, in order of first appearance."""
    return tuple(dict.fromkeys(name for log in logs.values() for name in log.validation))
