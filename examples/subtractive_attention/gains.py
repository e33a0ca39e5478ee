"""Print a summary of the last gains in the log of a training with --log-routing, and draw each.

python examples/subtractive_attention/gains.py runs/mine/train.log gains.png
"""

import re
import sys
from pathlib import Path

from fairseq_capsule_lab.analysis import charts
from fairseq_capsule_lab.runs.training_log import read_training_log

_NAME = re.compile(r"routing_subtraction_(?:\d+_)?(.+)_(\d+)_(\d+)")  # the part, the attention, the head


def read_gains(log: Path):
    """Return the last gain of each part, by head and attention: `{part: {head: {attention: gain}}}`."""
    gains = {}
    for name, curve in read_training_log(log).validation.items():
        if match := _NAME.fullmatch(name):
            heads = gains.setdefault(match[1].replace("_", " "), {})
            heads.setdefault(f"head {match[3]}", {})[int(match[2])] = curve[max(curve)]
    return gains


def main(log, out):
    gains = read_gains(Path(log))
    if not gains:
        sys.exit(f"gains.py: {log}: no gains; train with --subtraction and --log-routing")
    for part, heads in gains.items():
        values = [gain for head in heads.values() for gain in head.values()]
        print(
            f"{part}: {sum(gain < 0 for gain in values)} of {len(values)} below 0, mean {sum(values) / len(values):.2f}"
        )
    attentions = sorted({number for heads in gains.values() for head in heads.values() for number in head})
    panels = {
        part: {name: [head.get(number) for number in attentions] for name, head in heads.items()}
        for part, heads in gains.items()
    }
    labels = [str(number) for number in attentions]
    charts.lines(panels, labels, "self-attention, the encoder's first", "gains after training").savefig(out, dpi=100)


if __name__ == "__main__":
    main(*sys.argv[1:])
