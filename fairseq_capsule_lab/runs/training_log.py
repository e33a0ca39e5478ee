"""Learning curves from the log of a training."""

import math
import re
from pathlib import Path
from typing import Dict

_VALIDATION = re.compile(r"\]\[valid\]\[INFO\] - (.*)")
# The entries of a progress line that are not measures of the model.
PROGRESS = set("epoch num_updates wps ups wpb bsz ppl lr gnorm clip loss_scale gb_free train_wall wall".split())

# Update → value.
Curve = Dict[int, float]


def read_curves(path: Path) -> Dict[str, Curve]:
    """Read the curve of each validation measure from a log. A missing log has none.

    After a restart, the later of two values at the same update is used.
    """
    curves: Dict[str, Curve] = {}
    if not path.exists():
        return curves
    with open(path, encoding="utf-8", errors="replace") as stream:
        for match in filter(None, map(_VALIDATION.search, stream)):
            values = _values(match[1])
            for name, value in values.items() if "num_updates" in values else ():
                if name not in PROGRESS and not name.startswith("best_"):
                    curves.setdefault(name, {})[int(values["num_updates"])] = value
    return curves


def _values(text: str) -> Dict[str, float]:
    """The values of a line `epoch 001 | loss 7.1 | …` that are finite numbers."""
    values = {}
    for part in text.split("|"):
        name, _, value = part.strip().rpartition(" ")
        try:
            values[name] = float(value)
        except ValueError:  # "valid on 'valid' subset"
            continue
    return {name: value for name, value in values.items() if math.isfinite(value)}
