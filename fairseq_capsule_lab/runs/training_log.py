"""Learning curves from fairseq's log of a training."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from fairseq_capsule_lab.runs.folder import LARGEST

# A line of fairseq-hydra-train's log or of fairseq-train's.
_LINE = re.compile(r"(?:\]\[(?P<hydra>[\w.]+)\]\[INFO\] - |\| INFO \| (?P<plain>[\w.]+) \| )(?P<text>.*)")
_MEASURE = re.compile(r"\w{1,60}", re.ASCII)
MOST_MEASURES = 20  # with a chart each
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
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as stream:
        for match in filter(None, map(_LINE.search, stream)):
            logger, text = match["hydra"] or match["plain"], match["text"]
            if logger == "valid":
                statistics = _statistics(text, "valid_")
                for name, value in statistics.items() if "num_updates" in statistics else ():
                    if name not in PROGRESS and not name.startswith("best_"):
                        log.validation.setdefault(name, {})[int(statistics["num_updates"])] = value
    return log


def _statistics(text: str, prefix: str) -> Dict[str, float]:
    """The values of a line `epoch 001 | loss 7.1 | …`, or of a line of `--log-format json`."""
    if text.startswith("{"):
        try:
            pairs = [(name.removeprefix(prefix), value) for name, value in json.loads(text).items()]
        except (ValueError, RecursionError):
            return {}
    else:
        pairs = [part.strip().rpartition(" ")[::2] for part in text.split("|")]
    figures = {name: finite(value) for name, value in pairs if _MEASURE.fullmatch(name)}
    return {name: value for name, value in figures.items() if value is not None}


def finite(value: Any) -> Optional[float]:
    """A figure from JSON or a text as a float; None if it is no number, or not between -`LARGEST` and `LARGEST`."""
    try:
        figure = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return figure if abs(figure) <= LARGEST else None


def shared_measures(logs: Mapping[str, TrainingLog]) -> Tuple[str, ...]:
    """The first `MOST_MEASURES` validation measures that at least one run has, in order of first appearance."""
    return tuple(dict.fromkeys(name for log in logs.values() for name in log.validation))[:MOST_MEASURES]
