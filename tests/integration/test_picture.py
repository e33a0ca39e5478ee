"""`fairseq-capsule picture` on a trained model."""

import pytest

from fairseq_capsule_lab.cli import main


def picture(trained, data, out, *arguments, text="a b c d"):
    return main(["picture", str(trained / "checkpoint3.pt"), str(data), "--text", text, "--out", str(out), *arguments])


def test_a_layer_is_drawn(data, trained, tmp_path, capsys):
    assert picture(trained, data, tmp_path / "top.png") == 0
    assert "5 subwords of the source, " in capsys.readouterr().out
    assert (tmp_path / "top.png").read_bytes().startswith(b"\x89PNG")
    assert picture(trained, data, tmp_path / "first.svg", "--layer", "1") == 0
    assert "<svg" in (tmp_path / "first.svg").read_text()


@pytest.mark.parametrize(
    "out, arguments, text, message",
    [
        ("a.png", ["--layer", "3"], "a b", "layer must be one of 1, 2, not 3"),
        ("a.png", [], "  ", "sentence 1 is empty"),
        ("a.png", [], "a " * 1100, "sentence 1 has 1101 subwords, more than the model's 1024"),
        ("a.gif", [], "a b", "not a picture; choose a name that ends in one of .png, .svg, .pdf"),
        ("nowhere/a.png", [], "a b", "nowhere: no such folder to write a.png in; create it"),
        ("a.png", ["--codes", "missing"], "a b", "missing: No such file or directory"),
        ("a.png", ["--codes", __file__], "a b", "line 1: "),
        (
            "a.png",
            ["--show", "assignment"],
            "a b",
            "the model has no view past_future; choose from: encoder_attention, ",
        ),
    ],
)
def test_what_cannot_be_drawn_is_named(data, trained, tmp_path, capsys, out, arguments, text, message):
    assert picture(trained, data, tmp_path / out, *arguments, text=text) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("fairseq-capsule picture: error: ") and message in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_words_without_an_entry_or_a_font_are_noted_once(data, trained, tmp_path, capsys, recwarn, suffix):
    character = "🚀"  # matplotlib cannot draw with a font of emoji
    assert picture(trained, data, tmp_path / f"a.{suffix}", text=f"a b {character} {character}") == 0
    unknown, font = capsys.readouterr().err.splitlines()
    prefix = "fairseq-capsule picture: note: "
    assert unknown == f"{prefix}2 of 4 words are unknown; was the data prepared with --codes and --tokenizer?"
    assert font == f"{prefix}no font for {character}: install one (for Chinese in Debian: apt install fonts-noto-cjk)"
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]
