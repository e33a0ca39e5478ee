"""`fairseq-capsule score`: the BLEU of fairseq, labels and signatures, the paired bootstrap."""

import json
import os
import re
import unicodedata
from pathlib import Path

import pytest
import sacrebleu

from capsule_routing.text.languages import bleu_tokeniser
from capsule_routing.text.preparation import TextPreparation
from fairseq_capsule_lab.cli.score import _described
from fairseq_capsule_lab.evaluation.scores import Score, ScoreDifference, split_compounds
from tests.cli.scored import GENERATED, REFERENCES, TRANSLATIONS, write

MEASURES = ["tokenised_bleu", "compound_split_bleu", "detokenised_bleu", "chrf"]


@pytest.fixture
def score(command):
    """Run the command, check its lines, and return the object that `--json` prints."""

    def run(*arguments):
        result = command("score", *arguments, "--json")
        assert result.status == 0, result.err
        report, printed = result.err.splitlines(), json.loads(result.out)
        for name in MEASURES:
            found = printed["scores"][name]
            assert f"{found['label']} = {found['score']:.2f}  ({found['text']})" in report
            assert f"    {found['line']}" in report
            assert found["signature"] in found["line"]
            assert f"version:{sacrebleu.__version__}" in found["signature"]
        return printed

    return run


def of(printed, part="score"):
    return {name: found[part] for name, found in printed["scores"].items()}


@pytest.mark.parametrize(
    "options, ours",
    [
        ("--remove-bpe", ()),
        ("--remove-bpe --beam 2 --nbest 2", ()),
        ("", ("--remove-bpe", "none")),
    ],
)
def test_tokenised_bleu_is_that_of_fairseq_generate(training, generate, score, options, ours):
    output = generate("run/checkpoint_last.pt", options)
    printed = score(output, training / "test.de", *ours)
    theirs = float(re.search(r"BLEU4 = ([\d.]+),", output.read_text(encoding="utf-8"))[1])
    assert 1 < theirs < 99
    assert printed["scores"]["tokenised_bleu"]["score"] == pytest.approx(theirs, abs=0.01)
    assert printed["sentences"] == 24


def test_all_ways_of_joining_subwords_give_the_same_scores(training, generate, score):
    (training / "codes").write_text("#version: 0.2\nh u\n")
    ways = ["--remove-bpe", "--bpe subword_nmt --bpe-codes codes", ""]
    outputs = [generate("run/checkpoint_last.pt", options) for options in ways]
    by_option, by_decoder, by_us = (of(score(output, training / "test.de")) for output in outputs)
    assert by_option == by_decoder == by_us


def test_a_perfect_translation_has_full_scores_and_all_labels(score, reference):
    printed = score(reference, reference)
    assert of(printed) == pytest.approx(dict.fromkeys(MEASURES, 100))
    assert of(printed, "text") == {
        "tokenised_bleu": "Moses tokens of de",
        "compound_split_bleu": "Moses tokens of de, split at hyphens",
        "detokenised_bleu": "plain text, against the references as they are",
        "chrf": "plain text, against the references as they are",
    }
    version = sacrebleu.__version__
    assert of(printed, "signature") == {
        "tokenised_bleu": f"nrefs:1|case:mixed|eff:no|tok:none|smooth:none|version:{version}",
        "compound_split_bleu": f"nrefs:1|case:mixed|eff:no|tok:none|smooth:none|version:{version}",
        "detokenised_bleu": f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}",
        "chrf": f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}",
    }


def test_generated_output_is_sorted_joined_unescaped_and_detokenised(score, generated, reference, tmp_path):
    printed = score(generated, reference, "--output", tmp_path / "plain")
    assert (tmp_path / "plain").read_text(encoding="utf-8").splitlines() == TRANSLATIONS
    expected = sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES]).score
    assert printed["scores"]["detokenised_bleu"]["score"] == pytest.approx(expected)
    assert printed["scores"]["chrf"]["score"] == pytest.approx(sacrebleu.corpus_chrf(TRANSLATIONS, [REFERENCES]).score)
    assert printed["scores"]["tokenised_bleu"]["text"] == "the output's own tokens, against its T- lines"


def test_plain_text_scores_the_same_as_its_generated_output(score, generated, reference, tmp_path):
    plain = write(tmp_path / "plain", TRANSLATIONS)
    by_output, by_text = of(score(generated, reference)), of(score(plain, reference))
    assert by_text == pytest.approx(by_output)  # Moses gives the tokens of the T- lines
    tokens = re.findall(r"^D-\d\t-0\.[3457]\t(.*)", GENERATED, re.MULTILINE)
    tokenised = write(tmp_path / "tokenised", [tokens[i] for i in (1, 3, 0, 2)])
    options = ("--tokenized", "yes", "--remove-bpe", "subword_nmt")
    assert of(score(tokenised, reference, *options)) == pytest.approx(by_output)


def test_output_that_fairseq_detokenised_is_plain_text(score, reference, tmp_path):
    lines = []
    for number, (plain, target) in enumerate(zip(TRANSLATIONS, REFERENCES)):
        tokens = plain.replace(".", " .").replace(",", " ,")
        lines += [f"T-{number}\t{target}", f"H-{number}\t-0.1\t{tokens}", f"D-{number}\t-0.1\t{plain}"]
    output = write(tmp_path / "generated", lines)
    plain = write(tmp_path / "plain", TRANSLATIONS)
    assert of(score(output, reference)) == pytest.approx(of(score(plain, reference)))
    # With --tokenized yes, the T- and D- lines are split at spaces, as fairseq does.
    as_fairseq = score(output, reference, "--tokenized", "yes")["scores"]["tokenised_bleu"]
    bleu = sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES], tokenize="none", smooth_method="none", force=True)
    assert as_fairseq["score"] == pytest.approx(bleu.score)


def test_lowercase_ignores_case(score, reference, tmp_path):
    lower = write(tmp_path / "lower", [line.lower() for line in REFERENCES])
    assert all(value < 90 for value in of(score(lower, reference)).values())
    printed = score(lower, reference, "--lowercase")
    assert of(printed) == pytest.approx(dict.fromkeys(MEASURES, 100))
    assert all("case:lc" in signature for signature in of(printed, "signature").values())


def test_compounds_are_split_at_hyphens():
    assert split_compounds(["Rot-Kreuz-Platz - ja", "a - b", "x- y"]) == [
        "Rot ##AT##-##AT## Kreuz ##AT##-##AT## Platz - ja",
        "a - b",
        "x- y",
    ]


def test_romanian_is_scored_with_and_without_diacritics(command, tmp_path):
    marked = ["Țara își așază școala în vârful dealului.", "Şi ţăranii stau acasă în iarna asta."]
    plain = ["Tara isi asaza scoala in varful dealului.", "Si taranii stau acasa in iarna asta."]
    files = write(tmp_path / "plain", plain), write(tmp_path / "marked.ro", marked)
    printed = json.loads(command("score", *files, "--json").out)["scores"]
    assert list(printed) == [name + ending for name in MEASURES for ending in ("", "_without_diacritics")]
    for name in MEASURES:
        assert printed[name]["score"] < 60  # chrF changes least
        unmarked = printed[f"{name}_without_diacritics"]
        assert unmarked["score"] == pytest.approx(100)
        assert unmarked["label"] == f"{printed[name]['label']} without diacritics"
        assert unmarked["text"] == f"{printed[name]['text']}, diacritics removed from both"


def test_another_reference_replaces_the_targets_of_the_output(score, generated, tmp_path):
    other = write(tmp_path / "other.de", TRANSLATIONS)
    assert score(generated, other)["scores"]["tokenised_bleu"]["score"] < 90
    assert of(score(generated, other, "--other-reference")) == pytest.approx(dict.fromkeys(MEASURES, 100))


def test_several_references_are_used_together(score, tmp_path, reference, generated):
    first = write(tmp_path / "first.de", ["Ein Mann schläft auf der Bank.", *REFERENCES[1:]])
    second = write(tmp_path / "second", [REFERENCES[0], "Ein Zug hält hier.", *REFERENCES[2:]])
    printed = score(reference, first, second)
    assert of(printed) == pytest.approx(dict.fromkeys(MEASURES, 100))
    assert all("nrefs:2" in signature for signature in of(printed, "signature").values())
    tokenised = score(generated, reference, second)["scores"]["tokenised_bleu"]  # not its T- lines alone
    assert tokenised["text"] == "the output's own tokens, against Moses tokens of de"
    assert "nrefs:2" in tokenised["signature"]


def test_an_empty_line_is_no_reference(score, command, tmp_path):
    """As a reference of length 0 it would remove the brevity penalty."""
    lines = ["the cat sat on the mat today", "a small dog runs in the park"]
    hypothesis = write(tmp_path / "hyp", ["the cat sat on", "a small dog runs in the park"])
    references = write(tmp_path / "ref.en", lines), write(tmp_path / "ref2.en", ["", lines[1]])
    printed = score(hypothesis, *references)
    assert of(printed) == pytest.approx(of(score(hypothesis, references[0])))
    assert all("nrefs:var" in signature for signature in of(printed, "signature").values())
    notes = command("score", hypothesis, *references).err
    assert "the command sacrebleu would count it as a reference of length 0" in notes


@pytest.mark.parametrize(
    "line, kind",
    [
        ("Une idée déjà très française.", "characters that are not composed (NFC)"),
        ("Elle dit « non » et s’en va.", "typographic quotes"),
    ],
)
def test_sides_that_are_written_differently_are_noted_not_changed(command, tmp_path, line, kind):
    changed = unicodedata.normalize("NFD", line) if "idée" in line else line.translate(str.maketrans("«»’", '""\''))
    files = [write(tmp_path / name, [text]) for name, text in (("one.fr", line), ("other.fr", changed))]
    for pair in (files, files[::-1]):
        result = command("score", *pair, "--json")
        found = json.loads(result.out)["scores"]["detokenised_bleu"]["score"]
        assert kind in result.err and found < 80
        assert "perfect" not in command("score", pair[0], pair[0]).err


def test_pieces_of_tokenised_words_are_noted(command, tmp_path):
    output = ["T-0\t▁Er ▁sagt ▁: ▁&quot; ▁Niemand ▁. ▁&quot;", "H-0\t0\t▁Er ▁sagt ▁: ▁&quot; ▁Nie mand ▁. ▁&quot;"]
    pair = write(tmp_path / "out", output), write(tmp_path / "test.de", ['Er sagt: "Niemand."'])
    assert "give --tokenized yes" in command("score", *pair).err
    told = command("score", *pair, "--tokenized", "yes", "--json")
    assert "--tokenized yes" not in told.err
    assert json.loads(told.out)["scores"]["detokenised_bleu"]["score"] == pytest.approx(100)


@pytest.mark.parametrize(
    "options, line",
    [
        ({}, "Wir gewinnen heute 3 : 2 ."),  # plain text of these tokens gets other tokens
        ({"lower": True}, "Wir gewinnen heute 3 : 2 ."),
        ({"splits_hyphens": True, "drops_controls": True}, "Wir gewinnen."),
        ({"keeps_punctuation": True, "lower": True}, "Wir gewinnen."),
    ],
)
def test_a_perfect_translation_has_full_scores_whatever_the_tokens_of_the_data(score, tmp_path, options, line):
    lines = [
        'Anna fragt: „Wer kommt?“ Er sagt: "Niemand."',
        "Am Rot-Kreuz-Platz geht es gut. Dort hält die U-Bahn.",
        line,
    ]
    output = []
    for number, words in enumerate(map(TextPreparation("de", "moses", **options).words, lines)):
        output += [f"T-{number}\t{words.replace('Platz', '<<unk>>')}", f"H-{number}\t0\t{words}"]
    references = [write(tmp_path / "test.de", lines), write(tmp_path / "test.de1", lines[::-1])]
    printed = score(write(tmp_path / "out", output), *references, "--lowercase")["scores"]
    for name in ("tokenised_bleu", "compound_split_bleu"):
        assert printed[name]["score"] == pytest.approx(100) and "Moses tokens of de" in printed[name]["text"]


def test_chinese_is_compared_by_words(score, tmp_path):
    """Moses does not split Chinese: a sentence with one wrong word would have no word in common with its reference."""
    lines = ["我们今天在北京的学校里学习中文。", "他昨天买了三本新的英文书。"]
    output = write(tmp_path / "out", [lines[0].replace("北京", "上海"), lines[1]])
    references = [write(tmp_path / "test.zh", lines), write(tmp_path / "test.zh1", lines[::-1])]
    for given in (references[:1], references):
        scores = score(output, *given)["scores"]
        assert 70 < scores["tokenised_bleu"]["score"] < 95
        assert scores["tokenised_bleu"]["text"] == "jieba tokens of zh"
        assert "tok:zh" in scores["detokenised_bleu"]["signature"]


@pytest.mark.parametrize(
    "language, lines",
    [
        ("th", ["ไม่สามารถอ่านรายชื่อแหล่งแพกเกจได้", "เด็กสองคนกำลังเล่นอยู่ในสวน"]),
        ("mya_Mymr", ["မြန်မာနိုင်ငံ၏မြို့တော်ဖြစ်သည်။", "ကလေးများပန်းခြံထဲတွင်ကစားနေကြသည်။"]),
        ("jpn_Jpan", ["母は台所で夕食を作っている。", "二人の子供が庭で遊んでいる。"]),
    ],
)
def test_a_language_without_spaces_is_compared_by_characters(score, tmp_path, language, lines):
    """Between spaces a sentence with one wrong character has no word in common with its reference."""
    reference = write(tmp_path / "test", lines)
    almost = [line[:5] + line[6:] for line in lines]
    of_moses = [TextPreparation(language, "moses").words(line) for line in lines]
    generated = [f"{kind}{line}" for i, line in enumerate(of_moses) for kind in (f"T-{i}\t", f"H-{i}\t0\t")]
    needs_library = bleu_tokeniser(language) != "char"
    options = ("--lang", language, *(("--bleu-tokenizer", "char") if needs_library else ()))
    for hypothesis in (write(tmp_path / "out", almost), write(tmp_path / "generated", generated)):
        printed = score(hypothesis, reference, *options)["scores"]
        assert all(measure["score"] > 60 for measure in printed.values())
        assert printed["tokenised_bleu"]["text"] == "characters"
        assert "tok:char" in printed["detokenised_bleu"]["signature"]


class TestAgainst:
    @pytest.fixture
    def long_reference(self, tmp_path):
        return write(tmp_path / "long.de", [f"{i} {line}" for i in range(15) for line in REFERENCES])

    @pytest.fixture
    def worse(self, tmp_path, long_reference):
        lines = long_reference.read_text(encoding="utf-8").splitlines()
        return write(tmp_path / "worse", [" ".join(line.split()[: 3 + i % 4]) for i, line in enumerate(lines)])

    def test_the_difference_to_another_system_has_a_p(self, score, command, long_reference, worse, monkeypatch):
        monkeypatch.setenv("SACREBLEU_SEED", "77")
        alone = of(score(worse, long_reference))
        printed = score(long_reference, long_reference, "--against", worse, "--samples", 200, "--seed", 5)
        for name in MEASURES:
            against = printed["scores"][name]["against"]
            assert against["score"] == pytest.approx(alone[name])
            assert against["difference"] == pytest.approx(100 - alone[name])
            assert against["p"] == pytest.approx(1 / 201)
            assert (against["samples"], against["seed"]) == (200, 5)
        assert os.environ["SACREBLEU_SEED"] == "77"
        report = command("score", worse, long_reference, "--against", long_reference, "--samples", 50).out
        names = rf"\d+\.\d\d of {worse.name} - 100\.00 of {long_reference.name}"
        assert re.search(rf"{names} = -\d+\.\d\d, p ≤ 0\.02 \(paired bootstrap, 50 samples", report)

    def test_runs_are_named_and_a_small_difference_has_enough_digits(self):
        against = ScoreDifference(score=0.0031, difference=-0.0012, p=1 / 1001, samples=1000, seed=1)
        score = Score("bleu", "BLEU", "words", 0.0019, "", "", against)
        runs = [Path("runs", name, "evaluation/test/generate.out") for name in ("ours", "baseline")]
        assert "0.0019 of ours - 0.0031 of baseline = -0.0012, p ≤ 0.001 " in _described(score, *runs, digits=2)
        same = [Path(folder, "ours/evaluation/test/generate.out") for folder in ("runs", "older")]
        assert f" of {same[0]} - 0.0031 of {same[1]} = " in _described(score, *same, digits=2)

    def test_p_depends_only_on_the_seed(self, score, long_reference, worse, tmp_path):
        lines = worse.read_text(encoding="utf-8").splitlines()
        other = write(tmp_path / "other", [line + " Sand." if i % 2 else line[:-3] for i, line in enumerate(lines)])
        first, again, another = (
            [found["p"] for found in of(score(worse, long_reference, "--against", other, *options), "against").values()]
            for options in (("--seed", 1), ("--seed", 1), ("--seed", 2))
        )
        assert first == again != another

    def test_the_same_text_has_no_p(self, score, command, long_reference, worse):
        printed = score(worse, long_reference, "--against", worse, "--samples", 20)
        assert all(found["p"] is None and found["difference"] == 0 for found in of(printed, "against").values())
        report = command("score", worse, long_reference, "--against", worse, "--samples", 20).out
        assert report.count("= +0.00, nothing to test") == 4

    def test_equal_scores_of_different_texts_have_no_p(self, score, long_reference, tmp_path):
        lines = long_reference.read_text(encoding="utf-8").splitlines()
        first, second = (write(tmp_path / word, [word] * len(lines)) for word in ("nichts", "garnichts"))
        against = of(score(first, long_reference, "--against", second, "--samples", 20), "against")
        assert against["tokenised_bleu"]["p"] is None and against["tokenised_bleu"]["difference"] == 0
        assert against["chrf"]["p"] is not None and against["chrf"]["difference"] != 0

    def test_systems_with_different_targets_share_moses_tokens(self, score, generated, reference, tmp_path):
        text = re.sub(r"(?m)^T-.*", lambda line: line[0].replace("Ein ", "<<unk>> "), GENERATED)
        (tmp_path / "other").write_text(text, encoding="utf-8")
        printed = score(generated, reference, "--against", tmp_path / "other", "--samples", 20)
        assert printed["scores"]["tokenised_bleu"]["text"] == "the output's own tokens, against Moses tokens of de"
        printed = score(generated, reference, "--against", generated, "--samples", 20)
        assert printed["scores"]["tokenised_bleu"]["text"] == "the output's own tokens, against its T- lines"
