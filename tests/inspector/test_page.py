"""What is written: pages, and arrays with their axes."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

from fairseq_capsule.inspector import page
from fairseq_capsule.inspector.page import write_index, write_page
from tests.inspector.inspections import make_inspection, source_of


def data_of(html):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)[1])


def unpacked(array):
    """As the page's script does it."""
    low, high = np.frombuffer(zlib.decompress(base64.b64decode(array["numbers"])), np.uint8).reshape(2, -1)
    integers = (high.astype(np.int16) << 8) | low
    return integers.reshape(array["shape"]) * 10.0 ** -array["decimals"]


def test_the_page_holds_the_arrays_to_three_digits_of_the_largest_number():
    inspection = make_inspection()
    data = data_of(write_page(inspection, [source_of(inspection)]).decode())
    assert set(data["arrays"]) == set(inspection.arrays)
    for name, array in inspection.arrays.items():
        packed = data["arrays"][name]
        assert [tuple(axis) for axis in packed["axes"]] == [(axis, list(labels)) for axis, labels in array.axes.items()]
        if name.endswith("_words"):
            assert packed["words"] == array.values.tolist()
            continue
        numbers = unpacked(packed)
        np.testing.assert_allclose(numbers, array.values, atol=0.5 * 10.0 ** -packed["decimals"] * 1.001)
        assert 300 <= np.abs(numbers).max() * 10.0 ** packed["decimals"] <= 3000


def test_nothing_of_the_text_is_markup_and_nothing_comes_from_elsewhere():
    inspection = make_inspection()
    for html in (write_page(inspection, [source_of(inspection)]), write_index([source_of(inspection)])):
        text = html.decode()
        assert "<b>" not in text and "<!--" not in text
        assert not re.search(r"https?:|src=|@import|url\(", text)
    assert data_of(write_page(inspection, [source_of(inspection)]).decode())["source"] == list(inspection.source)


def test_a_long_sentence_gives_a_page_below_five_megabytes(monkeypatch):
    words = (*(f"word{number}" for number in range(100)), "</s>")
    inspection = make_inspection(source=words, target=words, against="capsule_transformer")
    whole = write_page(inspection, [source_of(inspection)])
    assert len(whole) < 5e6
    monkeypatch.setattr(page, "LARGEST", len(whole) - 1)
    shorter = write_page(inspection, [source_of(inspection)])
    assert len(shorter) < 0.8 * len(whole)  # fewer digits, all words
    assert data_of(shorter.decode())["source"] == list(words)


def test_the_archive_names_every_axis(tmp_path):
    inspection = make_inspection(options={"encoder_routing_layers": "2"}, against="gret_transformer_base")
    inspection.save(tmp_path / "1.npz")
    with np.load(tmp_path / "1.npz") as archive:
        assert tuple(archive["source"]) == inspection.source and tuple(archive["target"]) == inspection.target
        for name, array in inspection.arrays.items():
            np.testing.assert_array_equal(archive[name], array.values)
            assert archive[f"{name}.axes"].tolist() == list(array.axes)
            for axis, size in zip(array.axes, array.values.shape):
                assert tuple(archive[f"{name}.{axis}"]) == array.axes[axis] and len(array.axes[axis]) == size
        assert archive["encoder_vertical.layer"].tolist() == ["2"] and "against.global_coupling" in archive


@pytest.mark.parametrize(
    "words, text", [(("a@@", "b", "c", "</s>"), "ab c"), (("▁a", "b", "▁c", "</s>"), "ab c"), (("</s>",), "")]
)
def test_plain_text(words, text):
    assert page.plain(words) == text
