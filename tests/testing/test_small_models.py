"""The small models of the tests: what is built, and the errors."""

import pytest

from fairseq_capsule.errors import UserError
from fairseq_capsule.testing import INVARIANTS


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
def test_an_architecture_that_is_not_registered_is_named(invariant):
    message = "^unknown architecture mine_transformer_tiny; import the package that defines it$"
    with pytest.raises(UserError, match=message):
        invariant("mine_transformer_tiny")
