"""Errors in the arrays and views of a mechanism are found by `check_inspection` or when the array is made."""

from dataclasses import replace

import pytest
import torch

from fairseq_capsule import inspection
from fairseq_capsule.inspection import NamedArray, named
from fairseq_capsule.inspection.past_future import PastFutureInspection
from fairseq_capsule.testing import check_inspection

ARCH = "gdr_transformer_tiny"


@pytest.mark.parametrize("axes", [{"source": ("a", "b", "c")}, {"source": ("a",), "capsule": ("1", "2")}])
def test_an_array_without_a_label_for_each_element_is_refused(axes):
    with pytest.raises(ValueError, match=r"shape \[3, 2\] cannot have the numbers of labels .*; name one axis"):
        named(torch.zeros(3, 2), **axes)


@pytest.fixture
def first_panel(monkeypatch):
    """A function that changes the first panel of PAST and FUTURE."""

    def change(**changes):
        first, *others = PastFutureInspection.views
        panels = (replace(first.panels[0], **changes), *first.panels[1:])
        monkeypatch.setattr(PastFutureInspection, "views", (replace(first, panels=panels), *others))

    return change


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"rows": "targets"}, r"panel 'PAST': rows names \['targets'\]; the array assignment has \['target', 'source'"),
        ({"at": ()}, "the labels of content must be numbers, or `at` must name one of"),
        ({"at": (("content", "PAS"),)}, r"past_future: panels \['PAST'\] are never shown"),
        ({"distribution": "source"}, "the numbers along source sum to .*, not to 1"),
        ({"array": "assignments"}, r"\['PAST'\] are never shown; no model has them in arrays \['assignments'\]"),
    ],
)
def test_an_error_in_a_panel_is_named(first_panel, changes, message):
    first_panel(**changes)
    with pytest.raises(AssertionError, match=message):
        check_inspection(ARCH)


def test_wrong_labels_are_named(monkeypatch):
    arrays = PastFutureInspection.arrays

    def wrong(self, model, sentence):
        values, axes = arrays(self, model, sentence)["assignment"]
        return {"assignment": NamedArray(values[1:], axes)}

    monkeypatch.setattr(PastFutureInspection, "arrays", wrong)
    with pytest.raises(AssertionError, match="array assignment of shape .* has the numbers of labels"):
        check_inspection(ARCH)


def test_an_array_of_a_model_without_a_mechanism_is_named(monkeypatch):
    monkeypatch.setattr(inspection, "PLAIN", frozenset({"encoder_attention", "decoder_attention"}))
    with pytest.raises(AssertionError, match=r"with all mechanisms off .* \['cross_attention'\]"):
        check_inspection(ARCH)
