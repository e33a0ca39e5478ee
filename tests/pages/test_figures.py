import io
import warnings

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager

from capsule_routing.errors import UserError
from fairseq_capsule_lab.pages import fonts
from tests.pages.inspections import SOURCE, TARGET, make_inspection


@pytest.fixture(scope="module")
def inspection():
    return make_inspection(against="capsule_transformer")


def images(figure):
    """Return the titles and numbers of the pictures of a figure, in reading order."""
    return [
        (axis.get_title(), np.asarray(axis.images[0].get_array()))
        for axis in figure.axes
        if axis.images and axis.get_title()
    ]


def test_attention_of_all_heads_of_a_layer_is_drawn(inspection):
    shown = images(inspection.plot("encoder_attention", layer=1))
    names = [
        "attention without routing",
        "attention without routing, other model",
        "attention",
        "attention, other model",
    ]
    assert [title for title, _ in shown[:16]] == [f"{name}, head {head}" for name in names for head in range(1, 5)]
    assert len(shown) == 8 * 4  # with vertical and horizontal capsules
    for head in range(4):
        np.testing.assert_array_equal(shown[8 + head][1], inspection.arrays["encoder_attention"].values[0, head])
        other = inspection.arrays["against.encoder_attention"].values[0, head]
        np.testing.assert_array_equal(shown[12 + head][1], other)


def test_a_comparison_shows_a_layer_of_both_models():
    inspection = make_inspection(options={"encoder_layers": 1}, against="capsule_transformer")
    titles = [title for title, _ in images(inspection.plot("encoder_attention", head=1))]
    assert titles[:2] == ["attention without routing", "attention without routing, other model"]


def test_contents_are_drawn_side_by_side_on_one_scale(inspection):
    figure = inspection.plot("past_future")
    assert [title for title, _ in images(figure)] == ["PAST", "FUTURE", "redundant"]
    axes = [axis for axis in figure.axes if axis.images and axis.get_title()]
    assert len({axis.images[0].get_clim() for axis in axes}) == 1
    for index, axis in enumerate(axes):
        np.testing.assert_array_equal(axis.images[0].get_array(), inspection.arrays["assignment"].values[..., index])
    assert [label.get_text() for label in axes[0].get_xticklabels()] == list(SOURCE)
    assert [label.get_text() for label in axes[0].get_yticklabels()] == list(TARGET)


def test_iterations_are_drawn_side_by_side():
    inspection = make_inspection("capsnmt", {})
    shown = images(inspection.plot())
    assert [title for title, _ in shown] == [f"words in capsules, iteration {number}" for number in (1, 2, 3)]
    for number, (_, values) in enumerate(shown):
        np.testing.assert_array_equal(values, inspection.arrays["capsule_coupling"].values[number])


def test_every_view_can_be_drawn():
    words = ["$c$ $", *(f"word{number}" for number in range(5)), "</s>"]
    inspection = make_inspection(source=words, target=words)
    assert len(inspection.views) == 5
    for view in inspection.views:
        figure = inspection.plot(view.name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            figure.savefig(io.BytesIO(), format="png", dpi=20)


def test_axes_have_names(inspection):
    for view in inspection.views:
        axes = inspection.plot(view.name).axes
        pictures = [axis for axis in axes if axis.get_title()]
        assert all(axis.get_xlabel() for axis in pictures if axis.get_xticklabels())
        assert all(axis.get_ylabel() for axis in pictures if axis.get_yticklabels())
        assert all(axis.get_ylabel() for axis in axes if axis not in pictures)  # the scales of colours
    scale, picture, *_ = inspection.plot("past_future").axes
    assert (scale.get_ylabel(), picture.get_xlabel(), picture.get_ylabel()) == ("share", "source", "target")


def test_a_font_that_was_installed_after_matplotlib_was_used_first_is_found(tmp_path, monkeypatch):
    of_matplotlib = [font for font in font_manager.fontManager.ttflist if "mpl-data" in font.fname]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", of_matplotlib)
    monkeypatch.setattr(font_manager, "_get_fontconfig_fonts", list)
    monkeypatch.setattr(font_manager, "X11FontDirectories", [str(tmp_path)])
    make_font(tmp_path / "new.ttf", "Installed Since", "犬が")
    words = ["犬が", "b", "</s>"]
    fonts._add_new_fonts.cache_clear()
    figure = make_inspection(source=words, target=words).plot("cross_attention")
    fonts._add_new_fonts.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a missing glyph
        figure.savefig(io.BytesIO(), format="png", dpi=20)


def make_font(path, name, characters):
    builder = FontBuilder(1000, isTTF=True)
    glyphs = {character: f"glyph{number}" for number, character in enumerate(characters)}
    builder.setupGlyphOrder([".notdef", *glyphs.values()])
    builder.setupCharacterMap({ord(character): glyph for character, glyph in glyphs.items()})
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    pen.lineTo((500, 0))
    pen.lineTo((500, 500))
    pen.closePath()
    builder.setupGlyf(dict.fromkeys([".notdef", *glyphs.values()], pen.glyph()))
    builder.setupHorizontalMetrics(dict.fromkeys([".notdef", *glyphs.values()], (600, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": name, "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)


@pytest.mark.parametrize(
    "view, choice, message",
    [
        ("encoder_attention", {"layer": 3}, "layer must be one of 1, 2, not 3"),
        ("past_future", {"layer": 1}, "layer: not an axis of this view; choose from: none"),
        ("cross_attention", {"step": 1}, "step: not an axis of this view; choose from: layer, head"),
        ("capsules", {}, "the model has no view capsules; choose from: encoder_attention, decoder_attention, "),
    ],
)
def test_what_cannot_be_drawn_is_named(inspection, view, choice, message):
    with pytest.raises(UserError, match=message):
        inspection.plot(view, **choice)
