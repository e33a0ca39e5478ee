"""Batches of the splits of binarised data, and the likelihood of their references under a model."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Dict, Tuple

import torch
from fairseq import utils
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from tqdm import tqdm

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.models import building
from fairseq_capsule.data.binarised import require_whole

TOKENS = 8000  # of a batch; a longer sentence is a batch of its own


def load_split(task: FairseqTask, split: str) -> None:
    """Load a split into a task of two languages.

    Raises:
        UserError: the split does not exist or has no sentences, a file of it is incomplete, or its tokens are not in
            the dictionaries.
    """
    folder = Path(utils.split_paths(task.cfg.data)[0])
    dictionaries = {task.cfg.source_lang: task.source_dictionary, task.cfg.target_lang: task.target_dictionary}
    empty = UserError(f"--split {split}: no sentences; name another split, or binarise the text again")
    for language, text in require_whole(folder, split, task.cfg.source_lang, task.cfg.target_lang).items():
        if not text.sentences:  # fairseq cannot open such a file
            raise empty
        text.require_known_tokens(len(dictionaries[language]))
    try:
        task.load_dataset(split)
    except FileNotFoundError as error:
        raise UserError(f"--split {split}: {error}") from error
    if not len(task.dataset(split)):  # in fairseq's older formats
        raise empty


def batches(checkpoint: Path, task: FairseqTask, split: str, description: str) -> Iterator[Dict[str, Any]]:
    """Yield all batches of a split with a progress bar, on the GPU if there is one; errors as in `load_split`.

    It is also a UserError if the options of the checkpoint allow no batches.
    """
    with building(checkpoint, f"no batches of {split} can be made with its options"):
        load_split(task, split)
        dataset = task.dataset(split)
        tokens = max(TOKENS, int(dataset.sizes.max()))
        samples = task.get_batch_iterator(dataset, max_tokens=tokens, max_sentences=200).next_epoch_itr(shuffle=False)
        for sample in tqdm(samples, desc=description, disable=None, leave=False):
            yield utils.move_to_cuda(sample) if torch.cuda.is_available() else sample


@torch.no_grad()
def negative_log_likelihood(model: BaseFairseqModel, sample: Dict[str, Any], padding: int) -> Tuple[float, int]:
    """Sum over the target tokens of a batch, with teacher forcing, and their number.

    The sum is in bits. The end of sentence is a token, padding is not.
    """
    logprobs = model.get_normalized_probs(model(**sample["net_input"]), log_probs=True, sample=sample)
    target = sample["target"]
    valid = target.ne(padding)
    of_target = logprobs.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return -float(of_target[valid].double().sum()) / math.log(2), int(valid.sum())
