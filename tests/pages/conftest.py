"""The browser of several tests."""

import shutil

import pytest

from tests.libraries import library


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium and its driver, if they are installed. Nothing is downloaded."""
    webdriver = library("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    program, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not program or not driver:
        pytest.skip("no browser; `make test-browser` installs one and runs these tests")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1600,1200"):
        options.add_argument("--" + argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # A page changes its address. By default the driver treats such a change as a new page and sometimes waits for
    # minutes. The tests themselves wait for what the page shows.
    options.page_load_strategy = "none"
    opened = webdriver.Chrome(options=options, service=Service(driver))
    yield opened
    opened.quit()
