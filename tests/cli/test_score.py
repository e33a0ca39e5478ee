"""`fairseq-capsule score`: the same BLEU as fairseq's, labels and signatures, the paired bootstrap, what is refused."""

import json
import os
import re

import pytest
import sacrebleu

from fairseq_capsule.evaluation.scoring import _agrees, split_compounds

MEASURES = ["tokenised_bleu", "compound_split_bleu", "detokenised_bleu", "chrf"]

REFERENCES = [
    'Er fragt: "Gut & schön?", und geht.',
    "Die U-Bahn fährt am Rot-Kreuz-Platz vorbei.",
    "Ein Hund läuft über die grüne Wiese.",
    "Zwei Kinder spielen mit einem roten Ball im Sand.",
]

# As fairseq-generate prints it: batches in the order of length, several hypotheses, log lines and all.
GENERATED = """\
2024-01-01 00:00:00 | INFO | fairseq_cli.generate | loading model(s) from checkpoint_best.pt
S-2\tA dog runs across the green meadow .
T-2\tEin Hund läuft über die grüne Wiese .
H-2\t-0.3\tEin Hund läuft über die gr@@ üne Wiese .
D-2\t-0.3\tEin Hund läuft über die gr@@ üne Wiese .
P-2\t-0.3 -0.3
H-2\t-0.9\tEine Katze schläft .
D-2\t-0.9\tEine Katze schläft .
S-0\tHe asks : &quot; Good &amp; nice ? &quot; , and goes .
T-0\tEr fragt : &quot; Gut &amp; schön ? &quot; , und geht .
H-0\t-0.5\tEr fragt : &quot; Gut &amp; schön ? &quot; , und geht .
D-0\t-0.5\tEr fragt : &quot; Gut &amp; schön ? &quot; , und geht .
S-3\tTwo children play with a red ball in the sand .
T-3\tZwei Kinder spielen mit einem roten Ball im Sand .
H-3\t-0.7\tZwei Kinder spielen mit dem roten Ball .
D-3\t-0.7\tZwei Kinder spielen mit dem roten Ball .
S-1\tThe underground passes Rot-Kreuz-Platz .
T-1\tDie U-Bahn fährt am Rot-Kreuz-Platz vorbei .
H-1\t-0.4\tDie U-Bahn fährt am Rot-Kreuz-Platz .
D-1\t-0.4\tDie U-Bahn fährt am Rot-Kreuz-Platz .
Generate test with beam=5: BLEU4 = 75.00, 90.0/80.0/70.0/60.0 (BP=1.000, ratio=1.000, syslen=1, reflen=1)
"""
TRANSLATIONS = [
    'Er fragt: "Gut & schön?", und geht.',
    "Die U-Bahn fährt am Rot-Kreuz-Platz.",
    "Ein Hund läuft über die grüne Wiese.",
    "Zwei Kinder spielen mit dem roten Ball.",
]


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def reference(tmp_path):
    return write(tmp_path / "reference.de", REFERENCES)


@pytest.fixture
def generated(tmp_path):
    (tmp_path / "generated").write_text(GENERATED, encoding="utf-8")
    return tmp_path / "generated"


@pytest.fixture
def score(command):
    """The object that `--json` prints, after a look at the lines before it."""

    def run(*arguments):
        result = command("score", *arguments, "--json")
        assert result.status == 0, result.err
        *report, last = result.out.splitlines()
        printed = json.loads(last)
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
def test_tokenised_bleu_is_what_fairseq_generate_counts(training, generate, score, options, ours):
    output = generate("run/checkpoint_last.pt", options)
    printed = score(output, training / "test.de", *ours)
    theirs = float(re.search(r"BLEU4 = ([\d.]+),", output.read_text(encoding="utf-8"))[1])
    assert 1 < theirs < 99
    assert printed["scores"]["tokenised_bleu"]["score"] == pytest.approx(theirs, abs=0.01)
    assert printed["sentences"] == 24


def test_fairseq_s_ways_to_join_subwords_score_alike(training, generate, score):
    (training / "codes").write_text("#version: 0.2\nh u\n")
    ways = ["--remove-bpe", "--bpe subword_nmt --bpe-codes codes", ""]
    outputs = [generate("run/checkpoint_last.pt", options) for options in ways]
    by_option, by_decoder, by_us = (of(score(output, training / "test.de")) for output in outputs)
    assert by_option == by_decoder == by_us


def test_a_perfect_translation_and_its_labels(score, reference):
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


def test_plain_text_scores_like_the_output_it_was_made_from(score, generated, reference, tmp_path):
    plain = write(tmp_path / "plain", TRANSLATIONS)
    by_output, by_text = of(score(generated, reference)), of(score(plain, reference))
    assert by_text == pytest.approx(by_output)  # Moses gives the T- lines' tokens back
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
    # unless told otherwise: fairseq counts the T- and D- lines split at spaces
    as_fairseq = score(output, reference, "--tokenized", "yes")["scores"]["tokenised_bleu"]
    bleu = sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES], tokenize="none", smooth_method="none", force=True)
    assert as_fairseq["score"] == pytest.approx(bleu.score)


def test_lowercase(score, reference, tmp_path):
    lower = write(tmp_path / "lower", [line.lower() for line in REFERENCES])
    assert all(value < 90 for value in of(score(lower, reference)).values())
    printed = score(lower, reference, "--lowercase")
    assert of(printed) == pytest.approx(dict.fromkeys(MEASURES, 100))
    assert all("case:lc" in signature for signature in of(printed, "signature").values())


def test_compounds():
    assert split_compounds(["Rot-Kreuz-Platz - ja", "a - b", "x- y"]) == [
        "Rot ##AT##-##AT## Kreuz ##AT##-##AT## Platz - ja",
        "a - b",
        "x- y",
    ]


def test_romanian_with_and_without_diacritics(command, tmp_path):
    marked = ["Țara își așază școala în vârful dealului.", "Şi ţăranii stau acasă în iarna asta."]
    plain = ["Tara isi asaza scoala in varful dealului.", "Si taranii stau acasa in iarna asta."]
    files = write(tmp_path / "plain", plain), write(tmp_path / "marked.ro", marked)
    printed = json.loads(command("score", *files, "--json").out.splitlines()[-1])["scores"]
    assert list(printed) == [name + ending for name in MEASURES for ending in ("", "_without_diacritics")]
    for name in MEASURES:
        assert printed[name]["score"] < 60  # chrF forgives most
        unmarked = printed[f"{name}_without_diacritics"]
        assert unmarked["score"] == pytest.approx(100)
        assert unmarked["label"] == f"{printed[name]['label']} without diacritics"
        assert unmarked["text"] == f"{printed[name]['text']}, diacritics removed from both"


def test_several_references(score, tmp_path, reference):
    first = write(tmp_path / "first.de", ["Ein Mann schläft auf der Bank.", *REFERENCES[1:]])
    second = write(tmp_path / "second", [REFERENCES[0], "Ein Zug hält hier.", *REFERENCES[2:]])
    printed = score(reference, first, second)
    assert of(printed) == pytest.approx(dict.fromkeys(MEASURES, 100))
    assert all("nrefs:2" in signature for signature in of(printed, "signature").values())


class TestAgainst:
    @pytest.fixture
    def long_reference(self, tmp_path):
        return write(tmp_path / "long.de", [f"{i} {line}" for i in range(15) for line in REFERENCES])

    @pytest.fixture
    def worse(self, tmp_path, long_reference):
        lines = long_reference.read_text(encoding="utf-8").splitlines()
        return write(tmp_path / "worse", [" ".join(line.split()[: 3 + i % 4]) for i, line in enumerate(lines)])

    def test_difference_and_p(self, score, command, long_reference, worse, monkeypatch):
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
        assert re.search(rf"- 100\.00 of {long_reference} = -\d+\.\d\d, p = 0\.0196 \(paired bootstrap, 50", report)

    def test_p_depends_on_the_seed_alone(self, score, long_reference, worse, tmp_path):
        lines = worse.read_text(encoding="utf-8").splitlines()
        other = write(tmp_path / "other", [line + " Sand." if i % 2 else line[:-3] for i, line in enumerate(lines)])
        first, again, another = (
            [found["p"] for found in of(score(worse, long_reference, "--against", other, *options), "against").values()]
            for options in (("--seed", 1), ("--seed", 1), ("--seed", 2))
        )
        assert first == again != another

    def test_the_same_text(self, score, command, long_reference, worse):
        printed = score(worse, long_reference, "--against", worse, "--samples", 20)
        assert all(found["p"] is None and found["difference"] == 0 for found in of(printed, "against").values())
        report = command("score", worse, long_reference, "--against", worse, "--samples", 20).out
        assert report.count("= +0.00, nothing to test") == 4

    def test_two_texts_as_bad_as_each_other(self, score, long_reference, tmp_path):
        lines = long_reference.read_text(encoding="utf-8").splitlines()
        first, second = (write(tmp_path / word, [word] * len(lines)) for word in ("nichts", "garnichts"))
        against = of(score(first, long_reference, "--against", second, "--samples", 20), "against")
        assert against["tokenised_bleu"]["p"] is None and against["tokenised_bleu"]["difference"] == 0
        assert against["chrf"]["p"] is not None and against["chrf"]["difference"] != 0

    def test_systems_with_different_targets_share_moses_tokens(self, score, generated, reference, tmp_path):
        text = re.sub(r"(?m)^T-.*", lambda line: line[0].replace("Ein ", "<<unk>> "), GENERATED)
        (tmp_path / "other").write_text(text, encoding="utf-8")
        printed = score(generated, reference, "--against", tmp_path / "other", "--samples", 20)
        assert printed["scores"]["tokenised_bleu"]["text"] == "Moses tokens of de"
        printed = score(generated, reference, "--against", generated, "--samples", 20)
        assert printed["scores"]["tokenised_bleu"]["text"] == "the output's own tokens, against its T- lines"


class TestDoubts:
    def test_lower_cased_translations(self, command, reference, tmp_path):
        lower = write(tmp_path / "lower", [line.lower() for line in REFERENCES])
        assert "--lowercase compares without case" in command("score", lower, reference).err
        assert command("score", lower, reference, "--lowercase").err == ""

    def test_none(self, command, generated, reference):
        assert command("score", generated, reference).err == ""


class TestOtherReferences:
    @pytest.fixture
    def other(self, tmp_path):
        return write(tmp_path / "other.de", ["Etwas ganz anderes.", "Noch etwas.", "Und mehr.", "Schluss."])

    def test_another_text_s_reference(self, command, refused, generated, other):
        assert refused("score", generated, other).startswith(f"{other}: 4 of the 4 T- lines of {generated} differ")
        assert command("score", generated, other, "--other-reference").status == 0

    def test_the_right_reference_in_another_order(self, refused, generated, tmp_path):
        path = write(tmp_path / "order.de", REFERENCES[1:] + REFERENCES[:1])
        assert "--other-reference" in refused("score", generated, path)

    def test_of_plain_text_nothing_is_known(self, command, reference, other):
        assert command("score", reference, other).status == 0

    def test_one_of_several_is_enough(self, command, generated, reference, other):
        assert command("score", generated, other, reference).status == 0

    def test_the_other_system_s_too(self, refused, generated, reference, tmp_path):
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
    def test_what_preparing_does_is_no_difference(self, target, reference):
        assert _agrees(target, reference)

    @pytest.mark.parametrize("target, reference", [("ein <<unk>> haus", "Haus ein"), ("ein haus", "ein Haus steht")])
    def test_what_is_a_difference(self, target, reference):
        assert not _agrees(target, reference)


class TestRefusals:
    def test_unequal_counts(self, refused, generated, reference, tmp_path):
        short = write(tmp_path / "short", REFERENCES[:3])
        assert refused("score", generated, short).startswith(f"{short}: 3 sentences, {generated} has 4")
        assert refused("score", reference, reference, "--against", short).startswith(f"{short}: 3 sentences")
        assert refused("score", reference, reference, short).startswith(f"{short}: 3 sentences")

    def test_empty(self, refused, reference, tmp_path):
        empty = write(tmp_path / "empty", [])
        assert refused("score", empty, reference).startswith(f"{empty}: empty")
        assert refused("score", reference, empty).startswith(f"{empty}: empty")

    def test_no_file(self, refused, reference, tmp_path):
        assert refused("score", tmp_path / "no", reference) == f"{tmp_path / 'no'}: No such file or directory"
        assert refused("score", tmp_path, reference) == f"{tmp_path}: a folder; name a file"

    def test_encoding(self, refused, reference, tmp_path):
        latin = tmp_path / "latin"
        latin.write_bytes("\n".join(REFERENCES).encode("latin-1"))
        assert refused("score", latin, reference).startswith(f"{latin}, line 1: not UTF-8")

    @pytest.mark.parametrize(
        "pattern, replacement, problem",
        [
            (r"(?m)^[STHD]-1\t.*\n", "", ": 1 of 4 sentences missing (S-1)"),
            (r"(?m)^[HD]-[13]\t.*\n", "", ": 2 of 4 sentences missing (H-1, H-3)"),
            (r"(?m)^T-3\t.*\n", "", ": 1 of 4 sentences missing (T-3)"),
            (r"(?m)^S-3\t", "S-2\t", ", line 13: S-2 stands there twice"),
            (r"(?m)^D-1\t.*\n", "D-1\t-0.\n", ", line 20: cut short behind the score -0."),
        ],
    )
    def test_damaged_output(self, refused, generated, reference, pattern, replacement, problem):
        generated.write_text(re.sub(pattern, replacement, GENERATED), encoding="utf-8")
        line = refused("score", generated, reference)
        assert line.startswith(f"{generated}{problem}")

    def test_language(self, command, reference, capsys):
        with pytest.raises(SystemExit):
            command("score", reference, reference, "--lang", "german")
        assert "--lang: 'german' is no language code of two letters" in capsys.readouterr().err

    def test_no_language(self, refused, reference, tmp_path):
        nameless = write(tmp_path / "reference", REFERENCES)
        assert refused("score", reference, nameless).startswith(f"--lang is missing, and {nameless} does not end with")

    def test_a_full_disk(self, refused, generated, reference):
        assert refused("score", generated, reference, "--output", "/dev/full").startswith("/dev/full: not written")
