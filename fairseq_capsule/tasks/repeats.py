"""`--no-repeat-ngram-size` without fairseq's CUDA extension."""

from fairseq.ngram_repeat_block import NGramRepeatBlock
from torch import Tensor

from capsule_routing.errors import UserError


class WordsSoFar(NGramRepeatBlock):
    """Blocks repeated n-grams.

    fairseq's form in Python takes the last n − 1 words of the buffer, which end in padding until the last step, so it
    blocks nothing.
    """

    def __init__(self, no_repeat_ngram_size: int):
        if no_repeat_ngram_size < 2:
            raise UserError(f"--no-repeat-ngram-size {no_repeat_ngram_size}: fairseq blocks none; give at least 2")
        super().__init__(no_repeat_ngram_size)

    def forward(self, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int) -> Tensor:
        """Set `lprobs` `[B · beam, V]` of words that would repeat an n-gram of `tokens` `[B · beam, T]` to −∞."""
        words = tokens if self.use_extension else tokens[:, : step + 1]
        blocked: Tensor = super().forward(words, lprobs, bsz, beam_size, step)
        return blocked
