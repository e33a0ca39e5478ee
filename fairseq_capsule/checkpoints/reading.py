"""What a checkpoint file holds, before anything becomes of it."""

from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple, Union

from fairseq import checkpoint_utils
from torch import Tensor

from fairseq_capsule.errors import UserError


def read_checkpoint(path: Union[str, Path]) -> Dict[str, Any]:
    """What a checkpoint holds, on the CPU.

    Raises:
        UserError: it is damaged, or holds something else than a checkpoint's data.
        OSError: a path that is not there.
    """
    # Through the module: `loading.install` puts the reader that checks the file there.
    return checkpoint_utils.load_checkpoint_to_cpu(str(path))


def floating_point(checkpoint: Mapping[str, Any]) -> List[Tuple[str, Tensor]]:
    """The parameters that are floating-point tensors, by their names."""
    entries = checkpoint["model"].items()
    return [(name, entry) for name, entry in entries if isinstance(entry, Tensor) and entry.is_floating_point()]


def require_finite(path: Path, checkpoint: Mapping[str, Any]) -> None:
    """
    Raises:
        UserError: a checkpoint's model has no parameters, or some that are NaN or infinite.
    """
    if not checkpoint["model"]:
        raise UserError(f"{path}: its model has no parameters; leave it out")
    for name, tensor in floating_point(checkpoint):
        if not tensor.isfinite().all():
            raise UserError(f"{path}: parameter {name} is not finite (NaN or infinite); leave this checkpoint out")
