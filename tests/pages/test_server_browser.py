"""The page with the text box in a real browser."""

import pytest

from tests.pages.accessibility import SCHEMES, needs_axe, serious_problems, shown_in
from tests.pages.served import make_translator, serving

pytestmark = pytest.mark.browser
TEXT = "a b <img src=x onerror=alert(1)> c"
DRAWN = "document.querySelector('#inside')?.contentDocument?.body?.dataset.drawn"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with serving(make_translator(tmp_path_factory.mktemp("served"))) as address:
        yield address


@pytest.fixture
def page(browser, address):
    from selenium.webdriver.support.ui import WebDriverWait

    def wait(condition):
        WebDriverWait(browser, 60, 0.05).until(lambda there: there.execute_script(f"return {condition}"))

    browser.get("about:blank")
    wait("location.href == 'about:blank'")
    browser.get_log("browser")
    browser.get(address)
    wait("document.readyState == 'complete' && document.querySelector('#text')")
    browser.wait = wait
    return browser


def find(browser, selector):
    return browser.find_element("css selector", selector)


def translate(page, text):
    from selenium.webdriver.common.keys import Keys

    find(page, "#text").send_keys(text, Keys.CONTROL, Keys.ENTER)
    page.wait(DRAWN)


def test_typed_text_is_translated_and_inspected(page):
    translate(page, f"{TEXT}\nd e")
    assert len(page.find_elements("css selector", ".card")) == 2
    inside = "document.querySelector('#inside').contentDocument"
    assert "onerror" in page.execute_script(f"return {inside}.querySelector('#source').textContent")
    assert page.execute_script(f"return {inside}.querySelectorAll('canvas').length") > 0
    assert page.execute_script(f"return document.images.length + {inside}.querySelectorAll('img').length") == 0
    page.wait(f"document.querySelector('#inside').clientHeight >= {inside}.documentElement.scrollHeight")
    assert page.execute_script("return location.search").startswith("?text=")
    page.find_elements("css selector", ".card > a")[1].click()
    page.wait(f"{DRAWN} && {inside}.querySelector('#source').textContent == 'd e'")
    page.refresh()  # no question whether to send the form again
    page.wait(f"{DRAWN} && {inside}.querySelector('#source').textContent == 'd e'")
    assert page.get_log("browser") == []


def test_a_long_text_is_sent_and_a_longer_one_cut(page):
    """25,000 letters of Cyrillic had an address of 150,000 characters, which the server refused."""
    limit = int(find(page, "#text").get_attribute("maxlength"))
    assert f"{limit:,} characters" in find(page, "form").text
    page.execute_script("document.querySelector('#text').value = 'ж'.repeat(25000) + '\\na b'")
    find(page, "form button").click()
    page.wait(DRAWN)
    headings = page.execute_script("return [...document.querySelectorAll('.card h2')].map((each) => each.textContent)")
    assert headings == ["ж" * 25_000, "a b"]
    assert page.execute_script("return document.querySelector('#text').value.length") == 25_004
    assert page.get_log("browser") == []


def test_a_wrong_beam_is_a_message_beside_the_text(page):
    page.execute_script("document.querySelector('form').noValidate = true")
    page.execute_script("document.querySelector('[name=beam]').type = 'text'")
    find(page, "[name=beam]").send_keys("x")
    find(page, "#text").send_keys("a b")
    find(page, "form button").click()
    page.wait("document.querySelector('.wrong')?.textContent")
    assert find(page, ".wrong").text == "beam must be a positive whole number, not '3x'"
    assert find(page, "#text").get_attribute("value") == "a b"


@needs_axe
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_no_serious_accessibility_problem(page, scheme):
    with shown_in(page, scheme):
        assert serious_problems(page) == [], "form"
        translate(page, "a b")
        assert serious_problems(page) == [], "translations"
