"""The page with the text box in a real browser."""

import pytest

from tests.pages.accessibility import SCHEMES, needs_axe, serious_problems, shown_in
from tests.pages.server.conftest import serving
from tests.pages.test_browser import browser  # noqa: F401  a fixture

pytestmark = pytest.mark.browser


@pytest.fixture
def wait(browser):  # noqa: F811
    from selenium.webdriver.support.ui import WebDriverWait

    def wait(script, *arguments):
        return WebDriverWait(browser, 30, 0.05).until(lambda there: there.execute_script(script, *arguments))

    return wait


@pytest.fixture
def opened(browser, wait):  # noqa: F811
    """Open the page of a server, and wait until it has loaded the description of the model."""

    def opened(server):
        browser.get("about:blank")
        wait("return location.href == 'about:blank'")
        browser.get_log("browser")
        browser.get(f"http://{server.host}/")
        wait("return document.querySelector('#beam')?.value")
        return browser

    return opened


@pytest.fixture
def page(opened, server):
    return opened(server)


def find(browser, selector):  # noqa: F811
    return browser.find_element("css selector", selector)


def test_typed_text_is_translated_and_inspected(page, wait, server):
    from selenium.webdriver.common.keys import Keys

    assert "gdr_transformer_tiny" in find(page, "#systems").text
    find(page, "#text").send_keys("a b <img src=x onerror=alert(1)> c", Keys.ENTER)
    wait("return document.querySelectorAll('.system').length == 2")
    found = server.translate("a b <img src=x onerror=alert(1)> c").json
    for shown, system in zip(page.find_elements("css selector", ".system"), found["systems"]):
        cells = [cell.text for cell in shown.find_elements("css selector", "tbody td:nth-child(2)")]
        assert cells == [each["translation"] for each in system["hypotheses"]]
    wait("return document.querySelector('#page')?.contentDocument?.body?.dataset.drawn")
    inside = "return document.querySelector('#page').contentDocument"
    assert "onerror" in page.execute_script(f"{inside}.querySelector('#source').textContent")
    assert page.execute_script(f"{inside}.querySelectorAll('canvas').length") > 0
    assert (
        page.execute_script(f"return document.images.length + {inside[7:]}.querySelectorAll('img[src=x]').length") == 0
    )
    # the address of the page restores it
    page.execute_script("window.before = true")
    page.refresh()
    wait("return !window.before && document.querySelectorAll('.system').length == 2")
    assert find(page, "#text").get_attribute("value") == "a b <img src=x onerror=alert(1)> c"


def test_a_refusal_is_shown_and_the_next_sentence_is_translated(page, wait):
    find(page, "#text").send_keys("a " * 40)
    find(page, "button").click()
    wait("return document.querySelector('#status.wrong')")
    assert "more than 30; type a shorter one" in find(page, "#status").text
    page.execute_script("document.querySelector('#text').value = 'a b'")
    find(page, "button").click()
    wait("return document.querySelectorAll('.system').length == 2")
    assert find(page, "#status").text == ""


def test_the_page_says_that_the_server_has_ended(browser, opened, translator, wait):  # noqa: F811
    with serving(translator) as own:
        opened(own)
    find(browser, "#text").send_keys("a")
    find(browser, "button").click()
    wait("return document.querySelector('#status.wrong')")


@pytest.mark.parametrize("width", [400, 1200, 2000])
def test_the_page_is_not_wider_than_the_window(page, wait, width):
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        find(page, "#text").send_keys("a b c d e")
        find(page, "button").click()
        wait("return document.querySelector('#page')?.contentDocument?.body?.dataset.drawn")
        assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_frame_shows_the_whole_page_without_a_scroll_bar(page, wait):
    find(page, "#text").send_keys("a b c d e")
    find(page, "button").click()
    wait(
        "const frame = document.querySelector('#page'), inside = frame?.contentDocument?.documentElement;"
        "return inside?.querySelector('body')?.dataset.drawn && frame.clientHeight >= inside.scrollHeight"
    )


@needs_axe
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_no_serious_accessibility_problem(page, wait, scheme):
    with shown_in(page, scheme):
        assert serious_problems(page) == [], "form"
        find(page, "#text").send_keys("a " * 40)
        find(page, "button").click()
        wait("return document.querySelector('#status.wrong')")
        assert serious_problems(page) == [], "error"
        page.execute_script("document.querySelector('#text').value = 'a b'")
        find(page, "button").click()
        wait("return document.querySelector('#page')?.contentDocument?.body?.dataset.drawn")
        assert serious_problems(page) == [], "answer"
        page.switch_to.frame(find(page, "#page"))
        try:
            assert serious_problems(page) == [], "page in the frame"
        finally:
            page.switch_to.default_content()


def test_added_scripts_do_not_run(page, wait):
    """The policy forbids scripts that are added to the page or to its frame."""
    find(page, "#text").send_keys("a b")
    find(page, "button").click()
    wait("return document.querySelector('#page')?.contentDocument?.body?.dataset.drawn")
    for document in ("document", "document.querySelector('#page').contentDocument"):
        page.execute_script(
            f"const it = {document}; const bad = it.createElement('script'); bad.textContent = 'window.bad = 1';"
            "it.body.append(bad)"
        )
    assert page.execute_script("return [window.bad, document.querySelector('#page').contentWindow.bad]") == [None, None]


def test_no_page_violates_its_policy(page, wait):
    find(page, "#text").send_keys("a b")
    find(page, "button").click()
    wait("return document.querySelector('#page')?.contentDocument?.body?.dataset.drawn")
    assert page.get_log("browser") == []
