"""`fairseq-capsule average`: average several checkpoints into one."""

import argparse
import io
from pathlib import Path
from typing import List

import torch

from fairseq_capsule.checkpoints import averaging
from fairseq_capsule_lab.cli.arguments import input_path, output_file, positive_int
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.files import write_whole
from fairseq_capsule_lab.runs.checkpoints import best_checkpoints, last_checkpoints


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = "the --save-dir of a training, or checkpoints"
    add("inputs", nargs="+", type=input_path, metavar="RUN_DIR|FILE", help=text)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--last", type=positive_int, metavar="N", help="the last N checkpoints of RUN_DIR")
    text = "the N checkpoints of RUN_DIR with the best validation score"
    which.add_argument("--best", type=positive_int, metavar="N", help=text)
    text = "use the checkpoints of --save-interval-updates instead of those of epochs"
    add("--updates", action="store_true", help=text)
    add("--upto", type=positive_int, metavar="EPOCH", help="use checkpoints up to this epoch")
    text = "default: RUN_DIR/checkpoint_avg_lastN.pt or checkpoint_avg_bestN.pt; --updates adds _updates to the "
    add("--output", type=output_file, metavar="FILE", help=f"{text}name, --upto adds _uptoEPOCH")


def run(args: argparse.Namespace) -> None:
    paths = _chosen(args)
    output = args.output
    if not output:
        kind, number = ("last", args.last) if args.last else ("best", args.best)
        suffix = ("_updates" if args.updates else "") + (f"_upto{args.upto}" if args.upto else "")
        output = output_file(str(args.inputs[0] / f"checkpoint_avg_{kind}{number}{suffix}.pt"))
    checkpoint = averaging.average_checkpoints(paths)
    serialised = io.BytesIO()
    torch.save(checkpoint, serialised)
    write_whole(output, serialised.getvalue())
    print(f"wrote {output}: the average of {', '.join(path.name for path in paths)}")


def _chosen(args: argparse.Namespace) -> List[Path]:
    if args.last or args.best:
        if len(args.inputs) > 1:
            raise LabError(f"{args.inputs[1]}: --last and --best choose from one folder; give only that folder")
        choose = last_checkpoints if args.last else best_checkpoints
        return choose(args.inputs[0], args.last or args.best, args.updates, args.upto)
    for path in args.inputs:
        if path.is_dir():
            raise LabError(f"{path}: a folder; choose its checkpoints with --last N or --best N")
    if args.updates or args.upto:
        raise LabError("--updates and --upto choose from a folder; give a folder with --last N or --best N")
    if not args.output:
        raise LabError("--output is missing, which the average of named files needs; give --output FILE")
    return args.inputs
