"""The search of `generate()` that fairseq's is: its options, and what they forbid."""

from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList
from transformers.generation.logits_process import MinLengthLogitsProcessor, SuppressTokensLogitsProcessor

from capsule_routing.huggingface.configuration import CapsuleConfig


def search_of_fairseq(config: CapsuleConfig) -> GenerationConfig:
    """Return options of `generate()` that search as `fairseq-generate --beam 5` does."""
    return GenerationConfig(
        num_beams=5,
        length_penalty=1.0,  # the score is divided by the length, with `</s>` counted
        early_stopping=True,  # a sentence is complete when it has as many translations as beams
        # The first `</s>`, 200 words and the last `</s>`; the last one is not fed to the decoder.
        max_length=min(202, config.max_target_positions + 1),
        min_length=2,  # the first `</s>`, and no other one after it
        suppress_tokens=[config.pad_token_id],
        bos_token_id=config.bos_token_id,
        pad_token_id=config.pad_token_id,
        eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id,
    )


def is_search_of_fairseq(options: Any) -> bool:
    """Return whether options of `generate()` search as `search_of_fairseq`, with any lengths and number of beams."""
    searched = options.early_stopping is True and not options.do_sample and options._eos_token_tensor is not None
    return searched and options.min_length == 2 and options.suppress_tokens == [options.pad_token_id]


def processors_of_fairseq(processors: LogitsProcessorList, options: Any) -> LogitsProcessorList:
    """Change what transformers makes of options of `generate()`: faster where scores are equal, and with fairseq's end.

    Beam search gives the processors scores of their own, so forbidden ones are set in place.
    """
    in_place = options.num_beams > 1
    changed = LogitsProcessorList()
    for processor in processors:
        if type(processor) is SuppressTokensLogitsProcessor:
            changed.append(Forbid(processor.suppress_tokens, in_place))
        elif type(processor) is MinLengthLogitsProcessor:
            changed.append(Forbid(processor.eos_token_id, in_place, processor.min_length))
        else:
            changed.append(processor)
    if is_search_of_fairseq(options):
        changed.append(EndAtLongest(options.max_length, options._eos_token_tensor))
    return changed


class Forbid(LogitsProcessor):
    """Forbid tokens.

    Args:
        tokens: their numbers.
        in_place: whether the scores may be changed; otherwise they are copied.
        until: the number of tokens from which they are allowed, the first one counted; None: never.
    """

    def __init__(self, tokens: Tensor, in_place: bool, until: Any = None):
        self.tokens, self.in_place, self.until = tokens, in_place, until

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if self.until is not None and input_ids.size(1) >= self.until:
            return scores
        fill = scores.index_fill_ if self.in_place else scores.index_fill
        return fill(1, self.tokens.to(scores.device), -torch.inf)


class EndAtLongest(LogitsProcessor):
    """Allow only `</s>` at the last position, as fairseq does. Its score is kept, unlike with `forced_eos_token_id`.

    Where another option forbids `</s>`, the words stay. So it must be the last processor.

    Args:
        longest: the number of tokens, with the first and the last one.
        ends: the numbers of `</s>`.
    """

    def __init__(self, longest: int, ends: Tensor):
        self.longest, self.ends = longest, ends

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.size(1) < self.longest - 1:
            return scores
        ends = self.ends.to(scores.device)
        allowed = torch.full_like(scores, -torch.inf).index_copy(1, ends, scores[:, ends])
        return torch.where(allowed.isfinite().any(1, keepdim=True), allowed, scores)
