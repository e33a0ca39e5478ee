"""Tests of the invariants that every model of this package keeps. Your own package can run them too.

    import pytest
    from fairseq_capsule.testing import INVARIANTS

    @pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
    def test_it_keeps_the_invariants(invariant):
        invariant("my_architecture_tiny", {"my_option": 2})

An invariant raises an AssertionError if it does not hold. docs/extending.md has a complete example.
"""

from fairseq_capsule.testing.inspection import check_inspection
from fairseq_capsule.testing.invariants import (
    check_gradients,
    check_half_precision,
    check_off_is_fairseqs_own,
    check_on_changes_logits,
    check_padding,
    check_scores,
    check_steps,
    check_translations,
)
from fairseq_capsule.testing.promises import check_iterations, check_pickling, check_start, check_statistics
from fairseq_capsule.testing.resuming import check_resuming
from fairseq_capsule.testing.small_models import build_small, make_batch, make_criterion, make_sentences, make_task

INVARIANTS = (
    check_padding,
    check_translations,
    check_scores,
    check_steps,
    check_gradients,
    check_half_precision,
    check_off_is_fairseqs_own,
    check_on_changes_logits,
    check_start,
    check_iterations,
    check_statistics,
    check_pickling,
    check_inspection,
)

__all__ = [
    "INVARIANTS",
    "build_small",
    "check_on_changes_logits",
    "check_resuming",
    "make_batch",
    "make_criterion",
    "make_sentences",
    "make_task",
]
