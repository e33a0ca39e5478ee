"""The number of kernels of each architecture stays below a limit (benchmarks/count_kernels.py)."""

import pytest
from count_kernels import kernels_of

from tests.zoo import ARCHITECTURES

# Maximum kernels in a training step and in a decoding step. Lower a limit after kernels are saved. Avoid raising it.
CEILINGS = {
    "capsule_transformer": (1960, 260),
    "gdr_transformer": (1270, 226),
    "gret_transformer": (1360, 180),
    "selective_transformer": (1580, 290),
    "capsnmt": (1650, 97),
    "simple_aggregation": (1500, 97),
    "capsule_lstm": (5160, 92),
    "gdr_lstm": (5500, 143),
}


def family(arch):
    """Return an architecture without its size. Here all sizes have 6+6 layers."""
    name, _, size = arch.rpartition("_")
    return name if size in ("base", "big", "tiny") else arch


def test_every_architecture_has_a_limit():
    assert {family(arch) for arch in ARCHITECTURES} == set(CEILINGS)


@pytest.mark.parametrize("name", CEILINGS)
def test_the_number_of_kernels_is_within_the_limit(name):
    arch = next(arch for arch in ARCHITECTURES if family(arch) == name)
    found, (training, decoding) = kernels_of(arch), CEILINGS[name]
    assert found["training"] <= training
    assert found["decoding"] <= decoding
