"""Word alignments: two directions merged by hand, and eflomal on an unambiguous text."""

import random

import pytest

from fairseq_capsule_lab.analysis.alignment import align, grow_diag_final_and
from tests.libraries import library


@pytest.mark.parametrize(
    "forward, backward, both",
    [
        ({(0, 0)}, {(0, 0)}, {(0, 0)}),
        # (1, 1) is a diagonal neighbour of (0, 0), and both of its words are free.
        ({(0, 0), (1, 1)}, {(0, 0)}, {(0, 0), (1, 1)}),
        # A neighbour of a link needs only one free word ...
        ({(0, 0), (0, 1)}, {(0, 0)}, {(0, 0), (0, 1)}),
        # ... but it needs one: both words of (1, 0) have links.
        ({(0, 0), (1, 0), (1, 1)}, {(0, 0), (1, 1)}, {(0, 0), (1, 1)}),
        # (1, 1) is added, so (2, 2) becomes a neighbour and is added too.
        ({(0, 0), (1, 1)}, {(0, 0), (2, 2)}, {(0, 0), (1, 1), (2, 2)}),
        # A link that is no neighbour needs two free words: (5, 5) is added, so (5, 8) is not.
        ({(0, 0), (5, 5)}, {(0, 0), (5, 8)}, {(0, 0), (5, 5)}),
        ({(3, 3)}, set(), {(3, 3)}),
        (set(), set(), set()),
    ],
)
def test_grow_diag_final_and_equals_a_result_by_hand(forward, backward, both):
    assert grow_diag_final_and(forward, backward) == both


def test_eflomal_aligns_words_in_reverse_order(capsys):
    library("eflomal")
    generator = random.Random(1)
    sources = [" ".join(generator.sample("abcdefgh", 4)) for _ in range(300)]
    targets = [" ".join(reversed(line.upper())).replace("   ", " ") for line in sources]
    # Case is ignored, so each word is its own translation. The order is reversed.
    long = " ".join("a" * 1024)
    forward, backward = align([*sources, long[2:], long, "a b", ""], [*targets, "A", "A", "", "A"])
    assert "1 pairs have 1,024 words or more on a side: eflomal gives them no link" in capsys.readouterr().err
    for links in (forward, backward):
        assert len(links) == 304 and links[-3:] == [set(), set(), set()]
        right = sum(links[i] == {(0, 3), (1, 2), (2, 1), (3, 0)} for i in range(300))
        assert right > 290
