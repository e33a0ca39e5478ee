"""Segments of test sets of WMT and NIST: which sentence belongs to which, whatever the place in the files."""

import gzip
import re

import pytest

from capsule_routing.errors import UserError
from fairseq_capsule_lab.corpora.nist import _read_evaluation
from fairseq_capsule_lab.corpora.texts import COMPRESSED, append_good_pairs, append_training_pairs, parallel_lines

SOURCES = {("news 1", "1"): "Hund", ("news 1", "2"): "Katze", ("news 2", "1"): "Maus & Co"}
TARGETS = {("news 1", "1"): "dog", ("news 1", "2"): "cat", ("news 2", "1"): "mouse & co"}
PAIRS = [(SOURCES[key], TARGETS[key]) for key in SOURCES]


def documents(texts, start="docid"):
    """Return the documents of texts by document and number."""
    made = {}
    for (document, number), line in texts.items():
        line = line.replace("&", "&amp;")
        made[document] = made.get(document, "") + f'<seg id="{number}">{line}</seg>\n'
    return [f'<doc sysid="ref" {start}="{name}">\n<p>\n{segments}</p>\n</doc>\n' for name, segments in made.items()]


def sgm(kind, texts, turned=False):
    inner = documents(texts)
    return f'<{kind}set setid="s" srclang="any">\n{"".join(inner[::-1] if turned else inner)}</{kind}set>\n'


def xml(references=("A",), root="dataset"):
    """Return a file of WMT21 or later: source, references and the output of a system in each document."""
    made = ""
    for name in ("news 1", "news 2"):
        texts = [("src", 'lang="de"', SOURCES)]
        texts += [("ref", f'lang="en" translator="{reference}"', TARGETS) for reference in references]
        texts.append(("hyp", 'lang="en" system="Best"', SOURCES))
        made += f'<doc origlang="de" id="{name}">\n'
        for tag, attributes, lines in texts:
            mark = attributes[-2] if tag == "ref" and len(references) > 1 else ""
            segments = [
                f'<seg id="{number}">{line.replace("&", "&amp;")}{mark}</seg>'
                for (document, number), line in lines.items()
                if document == name
            ]
            made += f"<{tag} {attributes}><p>\n" + "\n".join(segments) + f"\n</p></{tag}>\n"
        made += "</doc>\n"
    return f"<?xml version='1.0' encoding='utf-8'?>\n<{root} id=\"newstest\">\n{made}</{root}>\n"


def pairs(*paths, **options):
    return [(first.decode(), second.decode()) for _, (first, second) in parallel_lines(paths, **options)]


def write(folder, name, content):
    path = folder / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith("z") else content.encode())
    return path


@pytest.mark.parametrize("names", [("a.sgm", "b.sgm"), ("a.SGM", "b.txt"), ("a.sgm.gz", "b.gz"), ("a", "b.SGML")])
def test_segments_are_paired_by_document_and_number(tmp_path, names):
    source = write(tmp_path, names[0], sgm("src", SOURCES))
    assert pairs(source, write(tmp_path, names[1], sgm("ref", TARGETS, turned=True))) == PAIRS


@pytest.mark.parametrize("name", ["a.sgm", "a.SGM", "a.Xml.gz"])
def test_a_name_says_that_a_file_is_markup_where_its_start_does_not(tmp_path, name):
    source = write(tmp_path, name, f"<!-- made by hand -->\n{sgm('src', SOURCES)}")
    assert pairs(source, write(tmp_path, "b.sgm", sgm("ref", TARGETS))) == PAIRS


@pytest.mark.parametrize("root", ["dataset", "collection"])
def test_one_file_of_wmt21_has_both_sides(tmp_path, root):
    path = write(tmp_path, "newstest2021.de-en.all.xml", xml(root=root))
    assert pairs(path, path, languages=("de", "en")) == PAIRS
    with pytest.raises(UserError, match="in the place of this side is de: exchange --source and --target"):
        pairs(path, path, languages=("en", "de"))


def test_one_of_several_references_is_chosen(tmp_path):
    path = write(tmp_path, "newstest2021.de-en.all.xml", xml(references=("A", "B")))
    with pytest.raises(UserError, match="all.xml: it has the references A, B: choose one by --reference"):
        pairs(path, path)
    assert pairs(path, path, reference="B") == [(source, f"{target}B") for source, target in PAIRS]


def test_a_translator_for_each_document_is_one_reference(tmp_path):
    target = sgm("ref", TARGETS).replace("ref", "other", 2).replace("otherset", "refset")
    assert pairs(write(tmp_path, "a.sgm", sgm("src", SOURCES)), write(tmp_path, "b.sgm", target)) == PAIRS


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda text: text.replace('"2">cat', '"3">cat'), "b.sgm: it has no segment 2 of document news 1, but "),
        (lambda text: text.replace('"2">cat', '"1">cat'), "b.sgm, segment 1 of document news 1: it is there twice: "),
        (lambda text: text.replace('<seg id="2">cat</seg>', ""), "b.sgm: it has no segment 2 of document news 1, but "),
        (
            lambda text: text + sgm("ref", {("news 3", "1"): "bird"}),
            "a.sgm: it has no segment 1 of document news 3, bu",
        ),
        (lambda text: re.sub("<.?doc.*>", "", text), "b.sgm: a <seg> outside of any <doc>: "),
        (lambda text: "<!DOCTYPE html>\n<html><p>dog</p></html>", "b.sgm: markup without <seg>; give "),
    ],
)
def test_segments_without_a_partner_or_twice_are_named(tmp_path, change, wanted):
    paths = write(tmp_path, "a.sgm", sgm("src", SOURCES)), write(tmp_path, "b.sgm", change(sgm("ref", TARGETS)))
    with pytest.raises(UserError, match=re.escape(wanted)):
        pairs(*paths)


def test_a_tag_at_the_start_of_a_sentence_is_text(tmp_path):
    for lines in (
        ["<b>one</b>", "<2de> two", "<document> three"],
        ["<doc>", "two", "</doc>"],
        ["<doc>", "<2de> two", "three"],
        ["<html> is a tag", "<p>", "<body>"],
    ):
        source = write(tmp_path, "a", "".join(f"{line}\n" for line in lines))
        assert pairs(source, write(tmp_path, "b", "x\ny\nz\n")) == [*zip(lines, "xyz")]


@pytest.mark.parametrize("take", [append_good_pairs, lambda paths, outputs: append_training_pairs(paths, outputs, 7)])
def test_equal_sides_are_refused(tmp_path, take):
    outputs = [tmp_path / "train.en", tmp_path / "train.de"]
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text("".join(f"{n} is equal\n" for n in range(4)) + "".join(f"{path.name} {n}\n" for n in range(4)))
    if take is append_good_pairs:
        take(paths, outputs)  # half of them
    paths[1].write_bytes(paths[0].read_bytes())
    with pytest.raises(UserError, match=r"a and .*b are equal in \d of \d lines: give a text and its translation"):
        take(paths, outputs)


@pytest.mark.parametrize("magic", COMPRESSED)
def test_a_text_that_another_program_compressed_is_named(tmp_path, magic):
    (tmp_path / "text.en").write_bytes(magic + b"...")
    with pytest.raises(UserError, match=f"text.en: compressed by {COMPRESSED[magic]}: decompress it"):
        pairs(tmp_path / "text.en", tmp_path / "text.en")


def test_documents_of_nist_may_have_spaces_in_their_names(tmp_path):
    source = write(tmp_path, "mt03.xml", f"<mteval>{sgm('src', SOURCES)}</mteval>")
    references = [sgm("ref", TARGETS, turned=True).replace('"ref"', f'"E{n}"') for n in range(4)]
    target = write(tmp_path, "mt03-ref.xml", f"<mteval>{''.join(references)}</mteval>")
    assert list(_read_evaluation(source, target)) == [list(SOURCES.values()), *[list(TARGETS.values())] * 4]
