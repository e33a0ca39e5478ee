"""The small models of the tests: what is built, and the errors."""

import pytest

from capsule_routing.errors import UserError
from fairseq_capsule.criterions.routing_losses import NAME
from fairseq_capsule.testing import INVARIANTS, inspection, invariants, promises
from fairseq_capsule.testing.small_models import build_small, criterion_of


def test_every_check_is_an_invariant():
    names = [*vars(inspection), *vars(invariants), *vars(promises)]
    checks = {name for name in names if name.startswith("check_")}
    assert {invariant.__name__ for invariant in INVARIANTS} == checks


def test_an_architecture_that_is_not_registered_is_named():
    for invariant in INVARIANTS:
        with pytest.raises(UserError, match="^unknown architecture mine_transformer_tiny; import the package that def"):
            invariant("mine_transformer_tiny")


@pytest.mark.parametrize(
    "arch, options, losses",
    [
        ("gdr_transformer_tiny", {}, {"bow_weight": 1.0, "bca_weight": 1.0}),
        ("gdr_transformer_tiny", {"guided_heads": "bca"}, {"bow_weight": 0.0, "bca_weight": 1.0}),
        ("gdr_transformer_tiny", {"guided_heads": "none"}, None),
        ("gret_transformer_tiny", {}, None),
    ],
)
def test_the_criterion_computes_the_losses_that_have_a_head(arch, options, losses):
    expected = ("label_smoothed_cross_entropy", {}) if losses is None else (NAME, losses)
    assert criterion_of(build_small(arch, options)) == expected
