"""Tests of the invariants that every model of this package keeps. Your own package can run them too.

    import pytest
    from fairseq_capsule.testing import INVARIANTS

    @pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
    def test_it_keeps_the_invariants(invariant):
        invariant("my_architecture_tiny", {"my_option": 2})

An invariant raises an AssertionError if it does not hold. docs/extending.md has a complete example.
"""

from typing import Callable, Tuple

from fairseq_capsule.testing import invariants, promises
from fairseq_capsule.testing.inspection import check_inspection
from fairseq_capsule.testing.resuming import check_resuming
from fairseq_capsule.testing.small_models import build_small, make_batch, make_criterion, make_sentences, make_task

_CHECKS = {**vars(invariants), **vars(promises)}
_NAMES = [name for name in _CHECKS if name.startswith("check_")]
INVARIANTS: Tuple[Callable[..., None], ...] = (*(_CHECKS[name] for name in _NAMES), check_inspection)
check_on_changes_logits = invariants.check_on_changes_logits

__all__ = ["INVARIANTS", "build_small", "check_resuming", "make_batch", "make_criterion", "make_sentences", "make_task"]
