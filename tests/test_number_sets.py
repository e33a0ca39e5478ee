"""Texts for sets of whole numbers."""

import pytest

from capsule_routing.text.number_sets import as_ranges, number_set


@pytest.mark.parametrize(
    "numbers, text",
    [([1], "1"), ([1, 2], "1-2"), ([1, 2, 3], "1-3"), ([3, 1], "1,3"), ([5, 1, 2, 2, 9, 10], "1-2,5,9-10")],
)
def test_a_set_is_written_as_ranges_and_read_back(numbers, text):
    assert as_ranges(numbers) == text
    assert number_set(text, 1, 10) == sorted(set(numbers))
