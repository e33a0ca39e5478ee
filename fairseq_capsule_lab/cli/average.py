"""`fairseq-capsule average`: average several checkpoints into one."""

import io
from collections.abc import Sequence
from pathlib import Path

from capsule_routing.errors import UserError
from fairseq_capsule_lab.cli.arguments import USER_DIR, existing, output_path, positive_int
from fairseq_capsule_lab.cli.commands import argument, command, flag, one_of, option
from fairseq_capsule_lab.files import write_whole

DEFAULT = "RUN/checkpoint_avg_lastN.pt or checkpoint_avg_bestN.pt; --updates adds _updates"


@command("average", "runs/capsule --last 5")
@argument("inputs", existing, "The --save-dir of a training, or checkpoints.", "RUN|FILE", many=True)
@option("--last", positive_int, "N", "The last N checkpoints of RUN.")
@option("--best", positive_int, "N", "The N checkpoints of RUN with the best validation score.")
@flag("--updates", "Use the checkpoints of --save-interval-updates instead of those of epochs.")
@option("--output", output_path, "FILE", f"The file to write.  [default: {DEFAULT}]")
@USER_DIR
def average(inputs: Sequence[Path], last: int | None, best: int | None, updates: bool, output: Path | None) -> None:
    """Average the last or the best checkpoints of a run, or the checkpoints that you name."""
    import torch

    from fairseq_capsule.checkpoints.averaging import average_checkpoints
    from fairseq_capsule.mechanisms.registry import routing_options
    from fairseq_capsule_lab.runs.checkpoints import best_checkpoints, last_checkpoints

    one_of({"--last": last, "--best": best})
    suffix = "_updates" if updates else ""
    if last or best:
        if len(inputs) > 1:
            raise UserError(f"{inputs[1]}: --last and --best choose from one folder; give only that folder")
        folder = inputs[0]
    if last:
        paths = last_checkpoints(folder, last, updates)
        output = output or folder / f"checkpoint_avg_last{last}{suffix}.pt"
    elif best:
        paths = best_checkpoints(folder, best, updates)
        output = output or folder / f"checkpoint_avg_best{best}{suffix}.pt"
    else:
        paths = list(inputs)
        for path in paths:
            if path.is_dir():
                raise UserError(f"{path}: a folder; choose its checkpoints with --last N or --best N")
        if updates:
            raise UserError("--updates chooses from a folder; give a folder with --last N or --best N")
        if not output:
            raise UserError("--output is missing, which the average of named files needs; give --output FILE")
    checkpoint = average_checkpoints(paths, routing_options)
    serialised = io.BytesIO()
    torch.save(checkpoint, serialised)
    write_whole(output, serialised.getvalue())
    print(f"wrote {output}: the average of {', '.join(path.name for path in paths)}")
