"""Options out of range are refused by name when the model is built, for every architecture."""

import math
import re

import pytest
from fairseq.models import MODEL_DATACLASS_REGISTRY

from capsule_routing.errors import UserError
from tests.zoo import SYSTEMS, build

NO_PROBABILITIES = [-0.1, 1.0, math.nan]
# Names of options in fairseq and this package, and values out of range.
WRONG = {
    r"\w*dropout(_in|_out)?|\w*layerdrop": NO_PROBABILITIES,
    r"\w+_layers|max_\w+_positions|\w+_embed_dim|\w+_heads|\w+_hidden_size": [0],
    r"\w+_iterations": [0, 101, 2.5],
}
OF_OTHERS = ("base_layers", "guided_heads", "encoder_routing_layers")


@pytest.mark.parametrize("arch", SYSTEMS)
def test_values_out_of_range_are_named(arch):
    tried = 0
    for name in MODEL_DATACLASS_REGISTRY[arch].__dataclass_fields__:
        for pattern, values in WRONG.items():
            if re.fullmatch(pattern, name) and name not in OF_OTHERS:
                for value in values:
                    option = f"--{name.replace('_', '-')}"
                    with pytest.raises(UserError, match=f"^{option} must be (at least|at most|a whole number)"):
                        build(arch, {name: value})
                    tried += 1
    assert tried > 10
