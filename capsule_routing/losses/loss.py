"""The type of a loss of a batch."""

from typing import NamedTuple, Union

from torch import Tensor


class Loss(NamedTuple):
    """A loss of a batch, and how it is logged: divided by a number and a unit.

    Attributes:
        value: summed over the batch, without its weight.
        number: what a log divides it by, such as the number of words or of sentences.
        unit: the unit of the log in units of the loss: log 2 for a loss in nats that is logged in bits.
    """

    value: Tensor
    number: Union[Tensor, float]
    unit: float = 1.0
