"""What fairseq and this package really write comes in by every way."""

import pytest

from fairseq_capsule.errors import UserError
from tests.checkpoints.ways_in import WAYS

# What a good checkpoint of another kind is told by these: they have loaded it.
OTHER_KINDS = {"probe": "bag_of_words_probe", "overlap": "guided-heads"}


@pytest.mark.parametrize("way", WAYS)
def test_a_real_checkpoint_comes_in(place, way):
    try:
        getattr(place, way)(place.good)
    except UserError as error:
        assert OTHER_KINDS.get(way, "nothing") in str(error)
