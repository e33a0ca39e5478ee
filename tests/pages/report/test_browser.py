"""The report in a real browser: sentences, widths."""

import pytest

from fairseq_capsule_lab.cli import main
from tests.pages.accessibility import SCHEMES, needs_axe, serious_problems, shown_in
from tests.pages.report.runs import make_data, make_run

pytestmark = pytest.mark.browser
DRAWN = "document.readyState == 'complete' && document.querySelector('#cases article')"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    references = make_data(folder / "data", 60)
    runs = [
        make_run(folder / name, folder / "data", references, error, seed=number)
        for number, (name, error) in enumerate({"base_line & co": 0.3, "=best": 0.1, "c" * 60: 0.2}.items())
    ]
    words = ["report", *runs, "--data", folder / "data", "--out", folder / "out", "--samples", 20]
    assert main([str(word) for word in words]) == 0
    return (folder / "out/report.html").as_uri()


@pytest.fixture
def page(browser, report):
    from selenium.webdriver.support.ui import WebDriverWait

    for address, condition in (("about:blank", "location.href == 'about:blank'"), (report, DRAWN)):
        browser.get_log("browser")  # messages of the previous page
        browser.get(address)
        WebDriverWait(browser, 30, 0.05).until(lambda it: it.execute_script(f"return {condition}"))
    return browser


def all_of(page, selector):
    return page.find_elements("css selector", selector)


def test_sentences_are_sorted_and_more_can_be_shown(page):
    from selenium.webdriver.support.ui import Select

    def differences():
        return [float(heading.text.rpartition(" ")[2]) for heading in all_of(page, "#cases h3")]

    assert len(differences()) == 20 and all_of(page, "#cases mark")
    shown = [abs(value) for value in differences()]
    assert shown == sorted(shown, reverse=True)
    Select(all_of(page, "#order")[0]).select_by_value("first")
    assert all(value < 0 for value in differences()) and differences() == sorted(differences())
    Select(all_of(page, "#order")[0]).select_by_value("number")
    all_of(page, "#more")[0].click()
    assert len(all_of(page, "#cases article")) == 40
    group, count = (each.text for each in all_of(page, "#lengths tbody tr:first-child > *")[:2])
    Select(all_of(page, "#group")[0]).select_by_visible_text(group)
    assert all_of(page, "#found")[0].text.startswith(f"{count} of 60 sentences")
    all_of(page, "#containing")[0].send_keys("no such word")
    assert all_of(page, "#cases article") == [] and page.get_log("browser") == []


@pytest.mark.parametrize("width", [400, 2000])
def test_the_page_is_not_wider_than_the_window(page, report, width):
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@needs_axe
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_no_serious_accessibility_problem(page, scheme):
    with shown_in(page, scheme):
        assert serious_problems(page) == []
