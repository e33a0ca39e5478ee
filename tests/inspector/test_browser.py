"""The page in a real browser, without a window and without a network."""

import shutil
from urllib.parse import urlencode

import numpy as np
import pytest

from fairseq_capsule.inspector.page import page_name, write_index, write_page
from tests.inspector.inspections import SOURCE, make_inspection, source_of

LONG = tuple(f"word{number}" for number in range(100))


@pytest.fixture(scope="session")
def browser():
    """Chromium as Debian has it; both programs are looked for here, nothing is downloaded."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: pip install -e '.[dev]'")
    from selenium.webdriver.chrome.service import Service

    program, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not program or not driver:
        pytest.skip("no browser; `make test-browser` installs one and runs these tests")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1600,1200"):
        options.add_argument("--" + argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=Service(driver))
    yield opened
    opened.quit()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Pages of several models, as `inspect` would write them, with their arrays."""
    folder = tmp_path_factory.mktemp("pages")
    inspections = {
        1: make_inspection(against="capsule_transformer"),
        2: make_inspection("capsnmt", {}, number=2),
        3: make_inspection("gdr_lstm", {}, source=("a", "b", "c", "</s>"), target=("d", "</s>"), number=3),
        4: make_inspection(source=(*LONG, "</s>"), target=(*LONG, "</s>"), number=4),
        5: make_inspection(options={"encoder_layers": 1}, against="gdr_transformer_base", number=5),
    }
    sources = [source_of(inspection) for inspection in inspections.values()]
    for number, inspection in inspections.items():
        (folder / page_name(number)).write_bytes(write_page(inspection, sources))
        inspection.save(folder / f"{number}.npz")
    (folder / "index.html").write_bytes(write_index(sources))
    return folder


class Page:
    """One page, with what a reader does there."""

    def __init__(self, browser, folder, number, **choices):
        self.browser = browser
        with np.load(folder / f"{number}.npz") as archive:
            self.arrays = {name: archive[name] for name in archive.files}
        browser.get("about:blank")
        self.at(f"{(folder / page_name(number)).as_uri()}#{urlencode(choices)}")

    def at(self, address):
        self.browser.get(address)
        self.opened_in = self.wait("return document.body?.dataset.drawn && performance.now()")  # milliseconds

    def wait(self, script, *arguments):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.browser, 30, 0.02).until(lambda browser: browser.execute_script(script, *arguments))

    def find(self, selector):
        return self.browser.find_element("css selector", selector)

    def count(self, selector):
        return len(self.browser.find_elements("css selector", selector))

    def changing(self, act):
        """Do something after which the page draws itself anew."""
        drawn = self.browser.execute_script("return document.body.dataset.drawn")
        act()
        self.wait(f"return document.body.dataset.drawn != '{drawn}'")

    def choose(self, selector, value):
        from selenium.webdriver.support.ui import Select

        self.changing(lambda: Select(self.find(selector)).select_by_value(value))

    def press(self, *keys, at="body"):
        self.find(at).send_keys(*keys)

    def value(self, selector):
        return self.find(selector).get_attribute("value")

    def pixels(self):
        script = "return [...document.querySelectorAll('canvas')].map((canvas) => canvas.toDataURL())"
        return self.browser.execute_script(script)

    def hover(self, array, row, column):
        """Move the pointer onto a cell; the lines that are shown."""
        from selenium.webdriver import ActionChains

        # Where the cells begin, the page knows: it is asked for the first cell's place by the keyboard.
        canvas = self.find(f"canvas[data-array='{array}']")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", canvas)
        # Scrolling may have brought another picture under the pointer, which then takes the mark.
        left, top, width, height = self.wait(
            "arguments[0].blur(); arguments[0].focus();"
            "const style = arguments[0].parentElement.querySelector('.cursor')?.style;"
            "return style && ['left', 'top', 'width', 'height'].map((side) => parseFloat(style[side]))",
            canvas,
        )
        size = canvas.size
        x = left + (column + 0.5) * width - size["width"] / 2
        y = top + (row + 0.5) * height - size["height"] / 2
        ActionChains(self.browser).move_to_element_with_offset(canvas, round(x), round(y)).perform()
        return self.lines()

    def lines(self):
        return self.find("#readout").get_property("textContent").split("\n")

    def quiet(self):
        """Neither an error nor anything fetched."""
        assert self.browser.get_log("browser") == []
        fetched = self.browser.execute_script(
            "return performance.getEntriesByType('resource').map((each) => each.name)"
        )
        assert fetched == []


def is_number(text, expected):
    """Whether a text is that number, rounded to as many decimals as it has."""
    shown = text.rsplit(": ", 1)[1]
    decimals = len(shown.partition(".")[2])
    return abs(float(shown) - expected) <= 0.5001 * 10.0**-decimals


@pytest.fixture
def opened(browser, folder):
    pages = []

    def open_page(number, **choices):
        pages.append(Page(browser, folder, number, **choices))
        return pages[-1]

    yield open_page
    for page in pages[-1:]:
        page.quiet()


VIEWS = {
    1: {
        "encoder_attention": 8,
        "decoder_attention": 6,
        "cross_attention": 2,
        "global_representation": 4,
        "past_future": 3,
    },
    2: {"capsules": 1},
    3: {"cross_attention": 1, "past_future": 3},
}


@pytest.mark.parametrize("number", VIEWS)
def test_every_view_opens_and_is_another_picture(opened, number):
    page = opened(number)
    offered = [option.get_attribute("value") for option in page.find("#view").find_elements("tag name", "option")]
    assert offered == list(VIEWS[number])
    seen = []
    for view, pictures in VIEWS[number].items():
        if view != page.value("#view"):
            page.choose("#view", view)
        assert page.count("canvas") == pictures and page.pixels() not in seen
        seen.append(page.pixels())


@pytest.mark.parametrize(
    "number, view, control, changed",
    [
        (1, "encoder_attention", "layer", 8),
        (1, "encoder_attention", "head", 8),
        (1, "global_representation", "layer", 2),
        (1, "global_representation", "iteration", 1),
        (2, "capsules", "iteration", 1),
    ],
)
def test_a_choice_changes_the_pictures_and_stays_in_the_address(opened, number, view, control, changed):
    page = opened(number, view=view)
    before = page.pixels()
    chosen = "2" if page.value(f"#choice-{control}") == "1" else "1"
    page.choose(f"#choice-{control}", chosen)
    after = page.pixels()
    assert sum(old != new for old, new in zip(before, after)) == changed
    address = page.browser.current_url
    assert f"{control}={chosen}" in address
    page.browser.get("about:blank")
    page.at(address)
    assert page.pixels() == after and page.value(f"#choice-{control}") == chosen


def test_numbers_under_the_pointer_are_those_of_the_archive(opened):
    page = opened(1, view="encoder_attention", layer=1, head=3)
    lines = page.hover("encoder_attention", 4, 2)
    assert lines[0].replace("\u2068", "").replace("\u2069", "") == f"{SOURCE[4]} → {SOURCE[2]}"
    names = ["attention_before", "attention", "vertical", "horizontal"]
    assert len(lines) == 1 + 2 * len(names)
    for name, own, other in zip(names, lines[1::2], lines[2::2]):
        assert is_number(own, page.arrays[f"encoder_{name}"][0, 2, 4, 2]), own
        assert is_number(other, page.arrays[f"against.encoder_{name}"][0, 2, 4, 2]), other
    page.choose("#view", "past_future")
    lines = page.hover("assignment", 3, 5)
    for content, line in enumerate(lines[1:]):
        assert is_number(line, page.arrays["assignment"][3, 5, content]), line
    page.choose("#view", "global_representation")
    assert is_number(page.hover("global_gate_mean", 2, 0)[1], page.arrays["global_gate_mean"][2])
    assert is_number(page.hover("global_gate", 1, 7)[1], page.arrays["global_gate"][1, 7])
    coupling = page.arrays["global_coupling"]  # the layer is still the one that was chosen
    assert is_number(page.hover("global_coupling", 6, 1)[1], coupling[0, -1, 6, 1])


@pytest.mark.parametrize("number", VIEWS)
def test_all_numbers_of_the_page_are_those_of_the_archive(opened, number):
    page = opened(number)
    names = page.browser.execute_script("return Object.keys(page.arrays)")
    assert set(names) == {name for name in page.arrays if f"{name}.axes" in page.arrays}
    for name in names:
        if page.arrays[name].dtype.kind == "U":
            continue
        script = f"numbers('{name}').then((found) => arguments[0]([page.arrays['{name}'].decimals, [...found]]))"
        decimals, found = page.browser.execute_async_script(script)
        expected = page.arrays[name].ravel()
        np.testing.assert_allclose(found, expected, atol=0.501 * 10.0**-decimals, err_msg=name)


def test_whole_words(opened):
    page = opened(1, view="cross_attention", head=2)
    apart = page.pixels()
    page.changing(lambda: page.press("w"))
    assert page.find("#joined").is_selected() and page.pixels() != apart
    # Row 2 is "ge@@ teilt", column 4 "sub@@ wo@@ rd": a mean over those that attend, a sum over the attended.
    lines = page.hover("cross_attention", 2, 4)
    assert "geteilt" in lines[0] and "subword" in lines[0]
    assert is_number(lines[1], page.arrays["cross_attention"][-1, 1, 2:4, 4:7].sum() / 2)
    page.choose("#view", "past_future")
    shares = page.arrays["assignment"][2:4, 4:7, 0].mean()
    assert is_number(page.hover("assignment", 2, 4)[1], shares)


@pytest.mark.parametrize(
    "labels, joined",
    [
        (["▁He", "▁say", "s", ".", "</s>"], ["He", "says.", "</s>"]),
        (["<unk>:▁x", "<unk>:y", "▁", "a", "<unk>", "</s>"], ["<unk>:x<unk>:y", "a", "<unk>", "</s>"]),
        (["a@@", "b@@", "c", "d", "</s>"], ["abc", "d", "</s>"]),
    ],
)
def test_words_of_either_kind_of_subwords(opened, labels, joined):
    script = "return words(arguments[0]).map((group) => word(arguments[0], group))"
    assert opened(1).browser.execute_script(script, labels) == joined


def test_stepping_through_a_translation(opened):
    page = opened(1, view="past_future")
    assert page.find("[aria-current]").text == "مرحبا"
    top = [page.find("#future-words li").text]
    for step in (2, 3):
        page.changing(lambda: page.press("s"))
        assert f"step={step}" in page.browser.current_url
        marked = page.browser.find_elements("css selector", ".step")
        assert len(marked) == 3
        first = page.find("#past-words li").text
        assert first.split()[0] == page.arrays["past_words"][step - 1, 0]
        assert is_number("p: " + first.split()[1], page.arrays["past_probabilities"][step - 1, 0])
        top.append(page.find("#future-words li").text)
    told = page.browser.find_elements("css selector", "#stepping .word[title]")[5].get_attribute("title")
    for content, part in enumerate(told.split(", ")):
        assert is_number(part.replace(" ", ": "), page.arrays["assignment"][2, 5, content])
    page.changing(lambda: page.browser.find_elements("css selector", "#stepping button")[4].click())
    assert page.find("[aria-current]").text == "</s>" and page.value("#step") == "5"


def test_what_only_the_other_model_separates_can_be_stepped_through(opened):
    page = opened(5, view="past_future", step=2)
    assert page.count("canvas") == 3 and page.count("#stepping .word i") == 3 * len(SOURCE)
    assert page.find("#past-words li").text.split()[0] == page.arrays["against.past_words"][1, 0]


def test_of_a_deeper_model_the_other_shows_a_layer_that_both_have(opened):
    page = opened(5, view="encoder_attention")
    assert page.value("#choice-layer") == "1" and page.count("canvas[data-array=encoder_attention]") == 1


def test_everything_by_the_keyboard(opened):
    from selenium.webdriver.common.keys import Keys

    page = opened(1)
    for key, control, value in (("h", "choice-head", "2"), ("h", "choice-head", "3"), ("H", "choice-head", "2")):
        page.changing(lambda key=key: page.press(key))
        assert page.value(f"#{control}") == value
    page.changing(lambda: page.press("L"))
    assert page.value("#choice-layer") == "1"
    # From the controls on, Tab comes to the first picture; arrows move in it.
    for _ in range(20):
        page.browser.switch_to.active_element.send_keys(Keys.TAB)
        if page.browser.switch_to.active_element.tag_name == "canvas":
            break
    page.browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert is_number(page.lines()[1], page.arrays["encoder_attention_before"][0, 1, 1, 2])
    page.changing(lambda: page.press("v"))
    assert page.value("#view") == "decoder_attention"


def test_light_and_dark(opened):
    page = opened(1)
    background = "return getComputedStyle(document.body).backgroundColor"
    white, dark = "rgb(255, 255, 255)", "rgb(22, 24, 27)"
    command = page.browser.execute_cdp_cmd
    for scheme, expected in (("dark", dark), ("light", white)):
        command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        assert page.wait(f"{background} == '{expected}'")
    page.changing(lambda: page.press("t"))
    assert page.wait(f"{background} == '{dark}'") and "theme=dark" in page.browser.current_url


def test_text_of_any_kind_is_text(opened):
    page = opened(1, words="whole")
    assert page.find("#source").get_property("textContent") == "<b>bold</b> </script> שלום 你好 subword &amp;"
    assert page.count("b") == 0 and page.browser.title.startswith("1: <b>bold</b> </script>")
    page.browser.get(page.browser.current_url.split("1.html")[0] + "index.html")
    entries = [entry.text for entry in page.browser.find_elements("css selector", "li")]
    assert entries[0] == "1 <b>bold</b> </script> שלום 你好 subword &amp;" and len(entries) == 5


def test_going_to_another_sentence_keeps_what_is_chosen(opened):
    page = opened(1, view="cross_attention", head=3, words="whole")
    page.press("n")
    page.wait("return location.pathname.endsWith('2.html') && document.body?.dataset.drawn")
    page.find("#sentence").send_keys("4")
    page.wait("return location.pathname.endsWith('4.html') && document.body?.dataset.drawn")
    assert page.value("#choice-head") == "3" and page.value("#view") == "cross_attention"


@pytest.mark.parametrize("number, words", [(3, 4), (4, 101)])
def test_short_and_long_sentences_are_readable(opened, number, words):
    page = opened(number, view="cross_attention")
    columns, width, font = page.browser.execute_script(
        "const canvas = document.querySelector('canvas');"
        "const context = canvas.getContext('2d');"
        "canvas.focus();"
        "const cursor = canvas.parentElement.querySelector('.cursor');"
        "return [page.arrays.cross_attention.shape.at(-1), parseFloat(cursor.style.width), parseFloat(context.font)]"
    )
    assert columns == words and width >= 12 and font >= 11


@pytest.mark.slow
def test_a_page_of_a_hundred_words_opens_in_two_seconds(opened):
    """Until it has drawn its pictures; the best of three, since the machine may be busy."""
    assert min(opened(4).opened_in for _ in range(3)) < 2000
