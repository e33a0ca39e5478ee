"""A folder of pages: names, index, list of sentences."""

import json
import re
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure

from fairseq_capsule_lab.pages.described_models import InspectedModel
from fairseq_capsule_lab.pages.folder import summary_of, write_inspection, write_lists
from fairseq_capsule_lab.pages.page import page_html
from tests.pages.inspections import HOSTILE, make_inspection

PLAIN = {"arch": "capsnmt", "options": {}, "source": ("a", "b@@", "c", "</s>"), "target": ("d", "</s>")}


@pytest.fixture(autouse=True)
def drawings(monkeypatch):
    """Draw nothing, which takes most of the time."""
    monkeypatch.setattr("fairseq_capsule_lab.pages.inspected.plot_view", lambda *view: Figure())


@pytest.fixture(scope="module")
def inspection():
    return make_inspection(**PLAIN, reference="d e")


def pages(folder):
    return sorted(path.name for path in folder.glob("*.html") if path.name != "index.html")


def listed(folder):
    """Return the pages that the index links to, and those in the list of the pages."""
    index = re.findall(r'<th scope="row"[^>]*><a href="([^"]*)"', write_lists(folder).read_text(encoding="utf-8"))
    text = (folder / "sentences.js").read_text(encoding="utf-8")
    entries = json.loads(text.removeprefix("window.sentences = ").removesuffix(";\n"))
    assert index == [entry["file"] for entry in entries]
    return index


def test_added_pages_stay_and_are_listed_in_order(tmp_path, inspection):
    for number in (10, 9):
        write_inspection(tmp_path, replaced(inspection, number=number))
        assert listed(tmp_path)[-1] == "test-10.html"
    write_inspection(tmp_path, replaced(inspection, collection="line", number=9))
    assert listed(tmp_path) == ["line-9.html", "test-9.html", "test-10.html"]
    (tmp_path / "test-9.html").unlink()
    (tmp_path / "notes.html").write_text("<p>mine")
    assert listed(tmp_path) == ["line-9.html", "test-10.html"]


def test_the_same_inspection_replaces_its_page_and_others_get_new_pages(tmp_path, inspection):
    names = [write_inspection(tmp_path, inspection).name for _ in range(2)]
    assert names == ["test-1.html", "test-1.html"]
    other_model = InspectedModel("another", 1, (), "other.pt")
    others = [
        replaced(inspection, collection="text"),
        replaced(inspection, source=("x", "</s>")),
        from_elsewhere(inspection, model=other_model),
        from_elsewhere(inspection, against=other_model),
        from_elsewhere(inspection, beam=1),
        from_elsewhere(inspection, data="other"),
    ]
    written = [write_inspection(tmp_path, each).name for each in others]
    assert written == ["text-1.html", *(f"test-1-{number}.html" for number in range(2, 7))]
    assert [write_inspection(tmp_path, each).name for each in others] == written
    assert sorted(listed(tmp_path)) == pages(tmp_path)
    (tmp_path / "line-1.html").write_text("not a page of ours")
    assert write_inspection(tmp_path, replaced(inspection, collection="line")).name == "line-1-2.html"
    assert (tmp_path / "line-1.html").read_text() == "not a page of ours"


@pytest.mark.parametrize("collection", ["../up", ".hidden", HOSTILE])
def test_a_split_of_any_name_stays_in_the_folder(tmp_path, inspection, collection):
    page = write_inspection(tmp_path / "pages", replaced(inspection, collection=collection))
    assert page.parent == tmp_path / "pages" and not page.name.startswith(".")
    assert len(listed(tmp_path / "pages")) == 1 and [path.name for path in tmp_path.iterdir()] == ["pages"]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attributes):
        if tag != "wbr" or attributes:  # a name of a file may be broken at any number of places
            self.tags.append((tag, [name for name, _ in attributes]))

    def handle_data(self, data):
        self.text += data


def tags(text):
    parser = Tags()
    parser.feed(text)
    return parser


@pytest.mark.parametrize("text", [HOSTILE, "</script><!-- ]]>&amp;"])
def test_text_of_a_file_adds_no_markup(inspection, tmp_path_factory, text):
    """Pages and the index have the same elements and attributes as with plain text."""
    model = InspectedModel(text, 1, (text,), f"{text}/{text}.pt")
    hostile = from_elsewhere(
        replaced(inspection, source=(text, "</s>"), translation=text, reference=text, other_translation=text),
        model=model,
        against=model,
        data=text,
        date=text,
    )
    harmless = from_elsewhere(
        replaced(inspection, other_translation="a"), against=InspectedModel("a", 1, ("a",), "a"), data="a"
    )
    indexes, found = [], []
    for each in (hostile, harmless):
        folder = tmp_path_factory.mktemp("pages")
        page = page_html(each, summary=summary_of(each))
        (folder / "test-1.html").write_text(page, encoding="utf-8")
        found.append(tags(page).tags)
        indexes.append(tags(write_lists(folder).read_text(encoding="utf-8")))
    assert found[0] == found[1]
    assert indexes[0].tags == indexes[1].tags and text in indexes[0].text


def test_the_index_shows_translation_reference_scores_and_a_picture(tmp_path, inspection):
    write_inspection(tmp_path, inspection)
    write_inspection(tmp_path, replaced(inspection, number=2, reference=None))
    rows = re.findall("<tr>(.*?)</tr>", write_lists(tmp_path).read_text(encoding="utf-8"), re.S)[1:]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]
    assert cells[0][1:4] == ["<bdi>a bc</bdi>", "<bdi>d &lt;/s&gt;</bdi>", "<bdi>d e</bdi>"]
    score = inspection.score()
    assert cells[0][4:6] == [f"{score.bleu:.1f}", f"{score.chrf:.1f}"] and cells[1][4:6] == ["", ""]
    assert cells[0][0].startswith('<img src="data:image/png;base64,iVBOR') and "Capsules: words in" in cells[0][0]


def replaced(inspection, **changes):
    return type(inspection)(**{**vars(inspection), **changes})


def from_elsewhere(inspection, **changes):
    return replaced(inspection, origin=type(inspection.origin)(**{**vars(inspection.origin), **changes}))
