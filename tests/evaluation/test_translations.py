"""Reading outputs with subwords of SentencePiece, and with separate characters."""

import pytest

from fairseq_capsule_lab.evaluation.translations import read_outputs, read_translations

LINES = {"S": "▁ Er ▁ kommt , ▁ sagt ▁ er .", "T": "▁ He ▁ come s , ▁ he ▁ say s .", "H": "▁ He ▁ come s ."}


@pytest.fixture
def output(tmp_path):
    path = tmp_path / "generate.out"
    lines = [f"{kind}-0\t{text}" for kind, text in LINES.items() if kind != "H"]
    # An unknown first word has no ▁.
    unknown = ["S-1\t<unk> ▁ b", "T-1\t<unk> ▁ b", "H-1\t-0.2\t<unk> ▁ b"]
    path.write_text("\n".join([*lines, f"H-0\t-0.1\t{LINES['H']}", *unknown]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("subwords", [None, "sentencepiece"])
def test_pieces_are_joined_to_untokenised_text(output, subwords):
    found = read_translations(output, subwords)
    assert found.sentences == ["He comes.", "<unk> b"]
    assert found.sources == ["Er kommt, sagt er.", "<unk> b"] and found.targets == ["He comes, he says.", "<unk> b"]
    assert not found.tokenised
    assert read_translations(output, subwords, tokenised=True).tokenised


def test_subwords_of_outputs_are_detected(output):
    assert [each.sentences[0] for each in read_outputs([output, output])] == ["He comes."] * 2
    assert read_outputs([]) == []


def test_a_piece_mark_inside_a_line_is_not_sentencepiece(tmp_path):
    path = tmp_path / "generate.out"
    path.write_text("H-0\t-0.1\tein Ha@@ us ▁ da\n", encoding="utf-8")
    found = read_translations(path)
    assert found.sentences == ["ein Haus ▁ da"] and found.tokenised


def test_separate_characters_are_joined_to_untokenised_text(tmp_path):
    """As `prepare.sh --tokenise moses,characters` writes them; fairseq escapes the unknown word of a reference."""
    path = tmp_path / "generate.out"
    lines = ["S-0\tdas Ha@@ us .", "T-0\tt h e ▁ <<unk>> a .", "H-0\t-0.1\tt h e ▁ a .", "D-0\t-0.1\tt h e ▁ a ."]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = read_translations(path)
    assert (found.sentences, found.targets) == (["the a."], ["the <<unk>>a."])
    assert found.sources == ["das Haus ."] and not found.tokenised


def test_short_words_are_not_separate_characters(tmp_path):
    path = tmp_path / "generate.out"
    path.write_text("T-0\ta b\nH-0\t-0.1\ta ▁ .\nT-1\tI am\nH-1\t-0.1\t.\n", encoding="utf-8")
    found = read_translations(path)
    assert found.sentences == ["a ▁ .", "."] and found.tokenised
