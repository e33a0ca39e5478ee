"""The pages of `serve`, over real HTTP."""

import html
import re
import urllib.error
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
    """Send the form, or ask for the page of an address."""

    def ask(path="", **fields):
        body = urlencode(fields).encode() if fields else None
        with urllib.request.urlopen(address + path, body, timeout=60) as answer:
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


def test_the_frame_shows_the_chosen_sentence_by_two_models(ask, translator):
    page = ask(text="a b\nc d e", beam=4)
    links = [html.unescape(link) for link in texts(page, '<a href="', '"')]
    assert links == [f"?text={translator.number}&sentence={place}#inside" for place in (1, 2)]
    (frame,) = texts(ask(links[1].removesuffix("#inside")), '<iframe.*? src="', '"')
    assert frame == f"inside?text={translator.number}&sentence=2"
    page = ask(frame)
    assert "c d e" in texts(page, '<bdi id="source">', "</bdi>") and page.count("Checkpoint:") == 2
    assert texts(page, "<dt>beam</dt> <dd>", "</dd>") == ["4"]


def test_a_text_that_no_address_could_carry_is_translated(ask):
    """25,000 letters of Cyrillic, 150,000 characters of an address. A line of them is too long for the model."""
    page = ask(text="ж " * 12_500 + "\na b", beam=1)
    assert "sentence 1 has 12501 subwords, more than the model" in html.unescape(page)
    page = ask(text="ж" * 25_000 + "\na b", beam=1)
    assert texts(page, "<h2><bdi>", "</bdi>")[1] == "a b"
    assert max(len(link) for link in texts(page, '(?:src|href)="', '"')) < 100


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"text": "a b", "beam": "x"}, "beam must be a positive whole number, not 'x'"),
        ({"text": "a b", "beam": "0"}, "beam must be a positive whole number, not '0'"),
        ({"text": "a" * (server.LONGEST + 1)}, "the text has 100,001 characters, more than 100,000; shorten it"),
    ],
)
def test_a_wrong_form_is_answered_with_a_message_and_its_text(ask, fields, message, capfd):
    page = ask(**fields)
    assert message in html.unescape(page) and "A text has at most 100,000 characters." in page
    assert texts(page, "<textarea[^>]*>\n", "</textarea>") == [fields["text"][: server.LONGEST]]
    assert capfd.readouterr().err == ""


def test_a_form_larger_than_any_text_is_refused(ask, monkeypatch):
    monkeypatch.setattr(server, "MOST_BYTES", 10)
    with pytest.raises(urllib.error.HTTPError, match="413") as answer:
        ask(text="a b c d e f")
    assert "A text has at most 100,000 characters." in answer.value.read().decode()


@pytest.mark.parametrize(
    "address, message",
    [
        ("?text=a+b", "text must be a positive whole number, not 'a b'"),
        ("?text=999999", "text 999999 is not kept any more; translate it again"),
        ("?text={}&sentence=2", "sentence 2: the text has 1; choose one of them"),
        ("?text={}&sentence=x", "sentence must be a positive whole number, not 'x'"),
    ],
)
def test_a_wrong_address_is_answered_with_a_message(ask, translator, address, message, capfd):
    ask(text="a b", beam=1)
    address = address.format(translator.number)
    assert message in html.unescape(ask(address))
    with pytest.raises(urllib.error.HTTPError, match="404") as answer:
        ask(f"inside{address}")
    assert message in html.unescape(answer.value.read().decode())
    assert capfd.readouterr().err == ""


def test_the_oldest_texts_are_forgotten(translator, monkeypatch):
    monkeypatch.setattr(server, "KEPT", 2)
    monkeypatch.setattr(translator, "requests", {})
    first, *others = [translator.keep({"text": text}) for text in "abc"]
    assert list(translator.requests) == others and first not in others


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
