"""A trained model with data to try it on."""

from argparse import Namespace
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Tuple, Union

import torch
from fairseq import checkpoint_utils, utils
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig
from tqdm import tqdm

from fairseq_capsule.errors import UserError

Loaded = Tuple[torch.nn.Module, Union[DictConfig, Namespace], FairseqTask]


def load_with_data(checkpoint: Path, data: Path, overrides: Optional[Dict[str, Any]] = None) -> Loaded:
    """A checkpoint's model in eval mode, its config, and its task on binarised data; on a GPU where there is one.

    Args:
        overrides: options of the checkpoint to be set otherwise, as in fairseq's `--model-overrides`.

    Raises:
        UserError: a path that is not there, or options that the checkpoint's weights do not allow.
    """
    for path in (checkpoint, data):
        if not path.exists():
            raise UserError(f"{path}: no such file or folder")
    options = {"data": str(data), **(overrides or {})}
    models, cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], options)
    model = models[0].eval()
    return model.cuda() if torch.cuda.is_available() else model, cfg, task


def batches(task: FairseqTask, split: str, description: str) -> Iterator[Dict[str, Any]]:
    """All batches of a split, where the model is, with a progress bar.

    Raises:
        UserError: no such split.
    """
    try:
        task.load_dataset(split)
    except FileNotFoundError as error:
        raise UserError(f"--split {split}: {error}") from error
    found = task.get_batch_iterator(task.dataset(split), max_tokens=8000, max_sentences=200)
    for sample in tqdm(found.next_epoch_itr(shuffle=False), desc=description, disable=None, leave=False):
        yield utils.move_to_cuda(sample) if torch.cuda.is_available() else sample
