"""What `fairseq-capsule score` warns about and refuses: other references, damaged output, missing languages."""

import re

import pytest

from fairseq_capsule_lab.evaluation.translations import _agrees
from tests.cli.scored import GENERATED, REFERENCES, write


class TestWarnings:
    def test_lower_cased_translations_are_reported(self, command, reference, tmp_path):
        lower = write(tmp_path / "lower", [line.lower() for line in REFERENCES])
        assert "use --lowercase to ignore case" in command("score", lower, reference).err
        assert command("score", lower, reference, "--lowercase").err == ""

    def test_correct_input_gives_no_warning(self, command, generated, reference):
        assert command("score", generated, reference).err == ""


class TestOtherReferences:
    @pytest.fixture
    def other(self, tmp_path):
        return write(tmp_path / "other.de", ["Etwas ganz anderes.", "Noch etwas.", "Und mehr.", "Schluss."])

    def test_the_reference_of_another_text_is_refused(self, command, refused, generated, other):
        assert refused("score", generated, other).startswith(f"{other}: 4 of the 4 T- lines of {generated} differ")
        assert command("score", generated, other, "--other-reference").status == 0

    def test_the_right_reference_in_another_order_is_refused(self, refused, generated, tmp_path):
        path = write(tmp_path / "order.de", REFERENCES[1:] + REFERENCES[:1])
        assert "--other-reference" in refused("score", generated, path)

    def test_plain_text_is_not_checked_against_the_reference(self, command, reference, other):
        assert command("score", reference, other).status == 0

    def test_one_matching_reference_is_enough(self, command, generated, reference, other):
        assert command("score", generated, other, reference).status == 0

    def test_the_second_system_is_checked_too(self, refused, generated, reference, tmp_path):
        text = GENERATED
        for line in re.findall(r"T-\d+\t.*", GENERATED):
            text = text.replace(line, line.partition("\t")[0] + "\tEs war einmal .")
        another = tmp_path / "another.out"
        another.write_text(text, encoding="utf-8")
        assert f"T- lines of {another} differ" in refused("score", generated, reference, "--against", another)

    @pytest.mark.parametrize(
        "target, reference",
        [
            ("er fragt : &quot; gut &amp; schön ? &quot;", 'Er fragt: "Gut & schön?"'),
            ("er f@@ragt <<unk>> und <<unk>> .", "Er fragt: laut und leise."),
            ("<<unk>> <<unk>>", "Ganz unbekannt"),
            ("sa rosteasca", "Să rostească"),
            ("Să rostească", "Să rostească".translate(str.maketrans("ș", "ş"))),
            ("他 说 : １２ 月", "他说：12月"),
        ],
    )
    def test_differences_made_by_preprocessing_are_accepted(self, target, reference):
        assert _agrees(target, reference)

    @pytest.mark.parametrize("target, reference", [("ein <<unk>> haus", "Haus ein"), ("ein haus", "ein Haus steht")])
    def test_other_differences_are_not_accepted(self, target, reference):
        assert not _agrees(target, reference)


class TestRefusals:
    def test_unequal_numbers_of_sentences_are_refused(self, refused, generated, reference, tmp_path):
        short = write(tmp_path / "short", REFERENCES[:3])
        assert refused("score", generated, short).startswith(f"{short}: 3 sentences, but {generated} has 4")
        assert refused("score", reference, reference, "--against", short).startswith(f"{short}: 3 sentences")
        assert refused("score", reference, reference, short).startswith(f"{short}: 3 sentences")

    @pytest.mark.parametrize(
        "pattern, replacement, problem",
        [
            (r"(?m)^[STHDP]-3\t.*\n", "", "; generate it again with --required-batch-size-multiple 1, "),
            (r"(?m)^[STHD]-1\t.*\n", "", ": 1 of 4 sentences missing (S-1)"),
            (r"(?m)^[HD]-[13]\t.*\n", "", ": 2 of 4 sentences missing (H-1, H-3)"),
            (r"(?m)^S-3\t", "S-2\t", ", line 13: S-2 occurs twice"),
            (r"(?m)^D-1\t.*\n", "D-1\t-0.\n", ", line 20: truncated after the score -0."),
        ],
    )
    def test_damaged_output_is_refused(self, refused, generated, reference, pattern, replacement, problem):
        generated.write_text(re.sub(pattern, replacement, GENERATED), encoding="utf-8")
        assert problem in refused("score", generated, reference)

    def test_empty_files_and_another_encoding_are_refused(self, refused, reference, tmp_path):
        empty, latin = write(tmp_path / "empty", []), tmp_path / "latin"
        latin.write_bytes("\n".join(REFERENCES).encode("latin-1"))
        assert refused("score", reference, empty).startswith(f"{empty}: empty")
        assert refused("score", latin, reference).startswith(f"{latin}, line 1: not UTF-8")

    @pytest.mark.parametrize("language", ["pt_BR", "zh-Hans", "cmn"])
    def test_any_language_code_is_accepted(self, command, reference, language, tmp_path):
        named = write(tmp_path / f"reference.{language}", REFERENCES)
        by_option = command("score", reference, named, "--lang", language)
        assert by_option.status == 0
        assert ("tok:zh" in by_option.out) == language.startswith(("zh", "cmn"))
        if language[2:3] in ("_", "-"):
            assert command("score", reference, named).out == by_option.out

    def test_a_reference_without_a_language_is_refused(self, refused, reference, tmp_path):
        nameless = write(tmp_path / "reference", REFERENCES)
        assert refused("score", reference, nameless).startswith(f"--lang is missing, and {nameless} does not end with")


SGM = '<refset setid="test" srclang="any">\n<doc docid="1">\n<seg id="1">Ein Mann schläft.</seg>\n</doc>\n</refset>\n'
TEXTS = {
    "score": ["{0} text.de", "first.out {0}", "first.out text.de {0}", "first.out text.de --against {0}"],
    "seeds": [
        "{0} --baseline first.out:second.out --system second.out:first.out",
        "text.de --baseline {0}:first.out --system first.out:second.out",
    ],
    "analyze coverage": ["first.out --train {0} text.de --out {1}", "first.out --train text.de {0} --out {1}"],
    "inspect": ["model.pt data/bin --file {0} --out {1}"],
}


@pytest.mark.parametrize("name", ["test.de.sgm", "test.de"])
@pytest.mark.parametrize("line", [f"{kind} {line}" for kind, lines in TEXTS.items() for line in lines])
def test_segments_are_not_read_as_lines(command, world, tmp_path, monkeypatch, name, line):
    """Their documents may be in another order than those of the source."""
    monkeypatch.chdir(world)
    path = tmp_path / name
    path.write_text(SGM, encoding="utf-8")
    result = command(*line.format(path, tmp_path / "out").split())
    assert (
        result.status == 1 and f"error: {path}: SGML or XML; give plain text in the order of the source" in result.err
    )
    assert not (tmp_path / "out").exists()
