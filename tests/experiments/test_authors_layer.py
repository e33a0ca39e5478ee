"""The comparison with the authors' code of Dynamic Past and Future. Without their code only its page can be checked."""

from pathlib import Path

import pytest

from capsule_routing.errors import UserError
from experiments.authors_layer import DIFFERENCES, load

PAGE = Path(__file__).parents[2] / "docs/dynamic-past-future.md"


def test_the_page_has_every_difference_with_its_size():
    text = PAGE.read_text()
    for name in (name for names in DIFFERENCES.values() for name in names):
        assert f" {name} 0." in text or f" {name} 1." in text, name


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match="name a clone of zhengzx-nlp/dynamic-nmt"):
        load(tmp_path)
