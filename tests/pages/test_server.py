"""The pages of `serve`, over real HTTP."""

import html
import re
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest

from fairseq_capsule_lab.pages import server
from tests.pages.inspections import HOSTILE
from tests.pages.served import make_translator, serving


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return make_translator(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def ask(translator):
    """Ask for a page with fields."""

    def ask(path="", **fields):
        with urllib.request.urlopen(f"{address}{path}?{urlencode(fields)}", timeout=60) as answer:
            return answer.read().decode()

    with serving(translator) as address:
        yield ask


def texts(page, start, end):
    return [html.unescape(text) for text in re.findall(f"{start}(.*?){end}", page, re.DOTALL)]


def test_every_line_is_translated_by_every_model(ask, translator):
    page = ask(text="a b\r\n\r\n c d \r\n", beam=2)
    assert texts(page, "<h2><bdi>", "</bdi>") == ["a b", "c d"]
    expected = [hub.translate(line, beam=2) for line in ("a b", "c d") for hub in translator.hubs]
    assert texts(page, '<bdi class="best">', "</bdi>") == expected
    lists = [texts(each, "<li><bdi>", "</bdi>") for each in texts(page, "<ol>", "</ol>")]
    assert [each[0] for each in lists] == expected and {len(each) for each in lists} == {2}


def test_the_frame_shows_the_chosen_sentence_by_two_models(ask):
    page = ask(text="a b\nc d e", sentence=2, beam=4)
    (frame,) = texts(page, '<iframe.*? src="', '"')
    assert frame == "inside?text=c+d+e&beam=4"
    page = ask("inside", text="c d e")
    assert "c d e" in texts(page, '<bdi id="source">', "</bdi>") and page.count("Checkpoint:") == 2


def test_the_text_adds_no_markup(ask):
    page = ask(text=f"a {HOSTILE}</textarea>")
    assert "<img" not in page and page.count("</textarea>") == 1
    assert texts(page, "<h2><bdi>", "</bdi>") == [f"a {HOSTILE}</textarea>"]


def test_a_sentence_that_is_too_long_is_named(ask):
    page = ask(text="a b\n" + "a " * 2000)
    assert "sentence 2 has 2001 subwords, more than the model" in html.unescape(page)
    assert "<iframe" not in page


def test_requests_are_translated_one_at_a_time(ask, monkeypatch):
    inside, generate = [], server.generate

    def watched(*arguments):
        inside.append(1)
        assert len(inside) == 1
        found = generate(*arguments)
        inside.pop()
        return found

    monkeypatch.setattr(server, "generate", watched)
    with ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(lambda number: ask(text="a b c"[: 1 + 2 * (number % 3)]), range(8)))
    assert all("what was routed" in page for page in pages)
