"""The invariants of every architecture and option. Tests of exact resuming are in tests/integration.

A registered architecture is tested automatically (tests/zoo.py).
"""

import pytest

from fairseq_capsule.testing.inspection import check_inspection
from fairseq_capsule.testing.invariants import (
    check_gradients,
    check_half_precision,
    check_off_is_fairseqs_own,
    check_padding,
    check_steps,
    check_translations,
)
from fairseq_capsule.testing.promises import check_iterations, check_pickling, check_start, check_statistics
from tests.zoo import CASES, OFF, SYSTEMS, case_name

OF_COMPUTATION = [check_padding, check_translations, check_gradients, check_half_precision, check_steps]
OF_MECHANISMS = [check_iterations, check_pickling, check_start, check_statistics]


@pytest.mark.parametrize("arch, options", CASES, ids=case_name)
@pytest.mark.parametrize("invariant", [*OF_COMPUTATION, *OF_MECHANISMS])
def test_the_invariants_hold(arch, options, invariant):
    invariant(arch, options)


@pytest.mark.parametrize("arch", SYSTEMS)
@pytest.mark.parametrize("hint", [1, 2], ids=lambda hint: f"beam {hint}")
def test_a_model_that_does_not_know_the_beam_size_decodes_the_same(arch, hint):
    """1 is a model that was told nothing."""
    check_steps(arch, beam_size=hint)


# With the leaky softmax the shares of a word sum to less than 1: a part of it goes to no capsule.
@pytest.mark.parametrize("arch, options", [case for case in CASES if "leaky_softmax" not in case[1]], ids=case_name)
def test_the_inspector_can_show_every_model(arch, options):
    check_inspection(arch, options)


@pytest.mark.parametrize("arch", OFF)
@pytest.mark.parametrize("normalize_before", [False, True])
def test_a_model_with_everything_off_equals_fairseq_s_model(arch, normalize_before):
    check_off_is_fairseqs_own(
        arch, {"encoder_normalize_before": normalize_before, "decoder_normalize_before": normalize_before}
    )


def test_everything_off_is_checked_in_other_sizes_too():
    check_off_is_fairseqs_own("capsule_transformer_tiny", {"encoder_layers": 1})
