"""Reading of checkpoint files, without building a model."""

from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple, Union

from fairseq import checkpoint_utils
from torch import Tensor

from fairseq_capsule.checkpoints import loading
from fairseq_capsule.errors import UserError


def read_checkpoint(path: Union[str, Path]) -> Dict[str, Any]:
    """Read a checkpoint to the CPU.

    Raises:
        UserError: the file is damaged, or contains something other than a checkpoint's data.
        OSError: the path does not exist or cannot be read.
    """
    loading.install()  # it replaces the function by one that checks the file
    return checkpoint_utils.load_checkpoint_to_cpu(str(path))


def floating_point(checkpoint: Mapping[str, Any]) -> List[Tuple[str, Tensor]]:
    """Return the names and values of the floating-point parameters."""
    return [(name, parameter) for name, parameter in checkpoint["model"].items() if parameter.is_floating_point()]


def require_finite(path: Path, checkpoint: Mapping[str, Any]) -> None:
    """Check the parameters of a checkpoint.

    Raises:
        UserError: there are none, or some are NaN or infinite.
    """
    if not checkpoint["model"]:
        raise UserError(f"{path}: its model has no parameters; leave it out")
    for name, tensor in floating_point(checkpoint):
        if not tensor.isfinite().all():
            raise UserError(f"{path}: parameter {name} is not finite (NaN or infinite); leave this checkpoint out")
