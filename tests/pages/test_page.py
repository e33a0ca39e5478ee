"""The written files: pages, and arrays with their axes."""

import base64
import html
import json
import re
import sys
import zlib

import numpy as np
import pytest
import sacrebleu

from fairseq_capsule_lab.pages.folder import summary_of
from fairseq_capsule_lab.pages.inspected import score_of
from fairseq_capsule_lab.pages.page import page_html
from fairseq_capsule_lab.pages.sentences import plain
from tests.pages.inspections import HOSTILE, make_inspection

PLAIN = {"encoder_routing": "none", "decoder_routing": "none"}


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def unpacked(array):
    """Unpack an array as the script of the page does."""
    low, high = np.frombuffer(zlib.decompress(base64.b64decode(array["numbers"])), np.uint8).reshape(2, -1)
    integers = (high.astype(np.int16) << 8) | low
    return integers.reshape(array["shape"]) * 10.0 ** -array["decimals"]


def test_the_page_contains_arrays_with_three_digits_of_the_largest_number():
    inspection = make_inspection()
    data = data_of(page_html(inspection))
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


def test_a_page_has_no_external_resources():
    inspection = make_inspection()
    shown = re.compile(r"<(?:script|link|img|iframe|object)[^>]*\b(?:src|href|data)=[^>]*>|https?:|@import|url\(")
    assert shown.findall(page_html(inspection).replace(HOSTILE, "")) == []
    assert shown.findall(page_html(inspection, summary=summary_of(inspection))) == ['<script src="sentences.js">']
    assert data_of(page_html(inspection))["source"] == list(inspection.source)


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
    "words, text",
    [
        (("a@@", "b", "c", "</s>"), "ab c"),
        (("▁a", "b", "▁c", "</s>"), "ab c"),
        (("a", "▁c", "</s>"), "a c"),
        (("<unk>", "▁", "c", "</s>"), "<unk> c"),
        (("a@@", "b", "▁", "c", "</s>"), "ab ▁ c"),  # a character of the text
        (("</s>",), ""),
    ],
)
def test_subwords_are_joined_to_text(words, text):
    assert plain(words) == text


@pytest.mark.parametrize(
    "arch, options, against, opened",
    [
        ("capsule_transformer", {}, None, "encoder_attention"),
        ("gdr_transformer_base", {}, None, "past_future"),
        ("gdr_transformer_base", {"past_future": "attn"}, None, "past_future_attention"),
        ("gdr_lstm", {}, None, "past_future"),
        ("gret_transformer_base", {}, None, "global_representation"),
        ("gret_transformer_base", {}, "gdr_transformer_base", "global_representation"),
        ("capsnmt", {}, None, "capsules"),
        ("capsule_transformer", PLAIN, None, "encoder_attention"),
        ("capsule_transformer", PLAIN, "gdr_transformer_base", "past_future"),
    ],
)
def test_a_page_opens_on_the_view_of_the_model_s_mechanism(arch, options, against, opened):
    inspection = make_inspection(arch, options, against)
    views = data_of(page_html(inspection))["views"]
    assert views[0]["name"] == opened and [view["name"] for view in views] == [view.name for view in inspection.views]


def test_captions_describe_only_existing_parts():
    def captions(arch, options):
        views = data_of(page_html(make_inspection(arch, options)))["views"]
        return {view["name"]: [panel["caption"] for panel in view["panels"]] for view in views}

    shares = captions("gdr_transformer_base", {})["past_future"]
    assert len(shares) == 3 and all("(1/3 if" in caption for caption in shares)
    without = captions("gdr_transformer_base", {"redundant_capsules": 0})["past_future"]
    assert len(without) == 2 and all("(1/2 if" in caption and "neither" not in caption for caption in without)
    attention = captions("gdr_transformer_base", {"past_future": "attn"})
    assert "past_future" not in attention and len(attention["past_future_attention"]) == 2
    assert not any("1/2" in caption for caption in attention["past_future_attention"])
    plain_attention = captions("capsule_transformer", PLAIN)["encoder_attention"]
    assert len(plain_attention) == 1 and "routing" not in plain_attention[0]


def test_the_header_states_model_data_beam_and_score():
    inspection = make_inspection("gdr_transformer_base", {}, "capsule_transformer", reference="ge teilt", beam=7)
    header = re.search("<header>(.*?)</header>", page_html(inspection), re.S)[1]
    text = html.unescape(re.sub("<[^>]*>", "", header))
    assert "gdr_transformer_base routes words to capsules. 12,345 parameters." in text
    assert f"Checkpoint: runs/{HOSTILE}/gdr_transformer_base.pt" in text
    assert "capsule_transformer routes nothing" in text and f"{HOSTILE}, test 1" in text
    assert re.search(r"beam\s+7", text) and re.search(r"date\s+2024", text) and "ge teilt" in text
    own, other = inspection.score(), inspection.score("other one")
    assert f"{inspection.translation} BLEU {own.bleu:.1f}, chrF {own.chrf:.1f}" in text
    assert f"other one BLEU {other.bleu:.1f}, chrF {other.chrf:.1f}" in text
    without = re.search("<header>(.*?)</header>", page_html(make_inspection("capsnmt", {})), re.S)[1]
    assert "BLEU" not in without and "reference" not in without and "other model" not in without


def test_scores_are_those_of_sacrebleu():
    assert score_of("a b c d e", "a b c d e", "de") == pytest.approx((100, 100))
    expected = sacrebleu.sentence_bleu("ein Hund läuft .", ["ein Hund rennt ."]).score
    assert score_of("ein Hund läuft .", "ein Hund rennt .", "de").bleu == pytest.approx(expected)
    assert score_of("你好世界", "你好世间", "zh").bleu > 30 > score_of("你好世界", "你好世间", "de").bleu


@pytest.mark.parametrize("language", ["zh-Hans", "cmn", "th"])
def test_a_language_has_its_tokeniser_under_any_name(language):
    assert score_of("你好世界", "你好世间", language).bleu > 30


def test_a_page_has_no_bleu_if_its_library_is_missing(monkeypatch):
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    monkeypatch.setitem(sys.modules, "MeCab", None)
    inspection = make_inspection(options=PLAIN, language="ja", reference="a b")
    assert inspection.score().bleu is None
    text = page_html(inspection)
    header = re.search("<header>(.*?)</header>", text, re.S)[1]
    assert "chrF" in header and "BLEU" not in header and summary_of(inspection)["bleu"] is None


def test_differences_are_shown_for_word_arrays_of_both_models():
    views = data_of(page_html(make_inspection(against="capsule_transformer")))["views"]
    found = {panel["array"] for view in views for panel in view["panels"] if panel["difference"]}
    assert found == {
        *(
            f"{side}_{name}"
            for side in ("encoder", "decoder")
            for name in ("attention", "attention_before", "horizontal")
        ),
        "encoder_vertical",
        "cross_attention",
    }
