"""The type of a loss of a batch."""

from typing import NamedTuple, Union

from torch import Tensor

from capsule_routing.losses.vocabulary import VocabularyLoss


class Loss(NamedTuple):
    """A loss of a batch, and how it is logged: divided by a number and a unit.

    Attributes:
        value: summed over the batch, without its weight. A loss over the vocabulary may be left to `weighted_sum`.
        number: what a log divides it by, such as the number of words or of sentences.
        unit: the unit of the log in units of the loss: log 2 for a loss in nats that is logged in bits.
    """

    value: Union[Tensor, VocabularyLoss]
    number: Union[Tensor, float]
    unit: float = 1.0
