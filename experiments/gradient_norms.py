#!/usr/bin/env python3
"""Compare the gradient of the parameters that a mechanism added to its baseline with the gradient of all others.

The gradient is that of the training loss over a split, in bits per token, without dropout. The root mean square over
the parameters of each group is printed, because norms of groups of different sizes cannot be compared. Adam divides a
gradient by its size, so a small one does not mean that a parameter does not learn.
"""

import argparse
import math
import sys
from pathlib import Path

from capsule_routing.errors import UserError


def gradient_sizes(checkpoint, baseline, data, split):
    """Return the root mean square of the gradient of the added parameters, that of the others, and the number added.

    Raises:
        UserError: a checkpoint is damaged or does not fit the data.
    """
    # Their import takes seconds, and --help does not need it.
    from fairseq.modules import FairseqDropout

    from fairseq_capsule.checkpoints.loading import read_checkpoint
    from fairseq_capsule.checkpoints.models import building, load_with_data
    from fairseq_capsule_lab.analysis.batches import batches

    model, cfg, task = load_with_data(checkpoint, data)
    with building(checkpoint, "no criterion can be built from its options"):
        criterion = task.build_criterion(cfg.criterion)
    model.train()  # fairseq has a fast path without gradients for models in eval mode
    for module in model.modules():
        if isinstance(module, FairseqDropout):
            module.p = 0.0
    tokens = 0
    for sample in batches(checkpoint, task, split, checkpoint.parent.name):
        loss, size, _ = criterion(model, sample)
        loss.backward()
        tokens += size
    common = read_checkpoint(baseline)["model"]
    squares, counts = {True: 0.0, False: 0.0}, {True: 0, False: 0}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            squares[name in common] += float(parameter.grad.double().square().sum())
            counts[name in common] += parameter.numel()
    ours, others = (math.sqrt(squares[known] / max(1, counts[known])) / tokens / math.log(2) for known in (False, True))
    return ours, others, counts[False]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="+", type=Path, metavar="CHECKPOINT", help="trained models")
    parser.add_argument("--baseline", required=True, type=Path, help="the checkpoint that they were started from")
    parser.add_argument("--data", required=True, type=Path, help="the binarised data")
    parser.add_argument("--split", default="valid", help="the split of the data (default: valid)")
    args = parser.parse_args()
    try:
        for checkpoint in args.checkpoints:
            ours, others, added = gradient_sizes(checkpoint, args.baseline, args.data, args.split)
            print(f"added ({added:,} parameters) {ours:.2g}, others {others:.2g}: {checkpoint}")
    except (UserError, OSError) as error:
        sys.exit(f"gradient_norms.py: {error}")


if __name__ == "__main__":
    main()
