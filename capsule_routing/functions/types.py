"""Types that many functions and modules take."""

from typing import Optional, Tuple

from torch import Tensor

Mask = Optional[Tensor]  # True marks padding
Factors = Optional[Tuple[Tensor, Tensor]]  # queries and keys whose products are the logits
