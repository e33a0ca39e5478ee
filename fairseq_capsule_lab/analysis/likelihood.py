"""Negative log-likelihood of the references under a model."""

import math
from typing import Any, Dict, Tuple

import torch
from fairseq.models import BaseFairseqModel


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
