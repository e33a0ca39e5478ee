"""The page in a real browser without a window and without a network."""

import shutil
from urllib.parse import urlencode

import numpy as np
import pytest

from fairseq_capsule_lab.pages.folder import summary_of, write_lists
from fairseq_capsule_lab.pages.page import page_html
from tests.pages.accessibility import SCHEMES, needs_axe, serious_problems
from tests.pages.inspections import SOURCE, make_inspection

pytestmark = pytest.mark.browser
LONG = tuple(f"word{number}" for number in range(100))
# The dimension of a base model.
WIDE = {"encoder_embed_dim": 512, "decoder_embed_dim": 512}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Pages of several models with their arrays, as `inspect` writes them."""
    folder = tmp_path_factory.mktemp("pages")
    inspections = {
        1: make_inspection(against="capsule_transformer", reference="ge teilt"),
        2: make_inspection("capsnmt", {}, number=2),
        3: make_inspection("gdr_lstm", {}, source=("a", "b", "c", "</s>"), target=("d", "</s>"), number=3),
        4: make_inspection(source=(*LONG, "</s>"), target=(*LONG, "</s>"), number=4),
        5: make_inspection(options={"encoder_layers": 1}, against="gdr_transformer_base", number=5),
        6: make_inspection("gret_transformer_base", WIDE, reference="ge teilt . </s>", number=6),
        7: make_inspection("gdr_transformer_base", {"past_future": "attn", "guided_heads": "bow"}, number=7),
        8: make_inspection(source=("▁He", "▁say", "s", "</s>"), target=("▁犬", "が", "いる", "。", "</s>"), number=8),
    }
    for number, inspection in inspections.items():
        page = page_html(inspection, summary=summary_of(inspection))
        (folder / f"test-{number}.html").write_text(page, encoding="utf-8")
        inspection.save(folder / f"test-{number}.npz")
    write_lists(folder)
    return folder


LARGE = "canvas[data-array]"
# The place and the size of the first cell of a picture: a diagonal hits some cell, whose neighbours lead to the first.
FIRST_CELL = """
const [canvas] = arguments;
const box = canvas.getBoundingClientRect();
const cell = (x, y) => {
  canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y }));
  return canvas.parentElement.querySelector(".cursor");
};
let place = 0;
while (!cell(place, place)) place += 2;
const [width, height] = [cell(place, place).offsetWidth, cell(place, place).offsetHeight];
let [x, y] = [place, place];
while (cell(x - width, y)) x -= width;
while (cell(x, y - height)) y -= height;
const { left, top } = cell(x, y).style;
return [parseFloat(left), parseFloat(top), width, height];
"""


class Page:
    """A page, with the actions of a reader."""

    def __init__(self, browser, folder, number, **choices):
        self.browser, self.folder = browser, folder
        with np.load(folder / f"test-{number}.npz") as archive:
            self.arrays = {name: archive[name] for name in archive.files}
        self.at(f"{(folder / f'test-{number}.html').as_uri()}#{urlencode(choices)}")

    def at(self, address, ready="document.body?.dataset.drawn"):
        self.browser.get("about:blank")
        self.wait("return location.href == 'about:blank'")
        self.browser.get(address)
        self.opened_in = self.wait(f"return {ready} && performance.now()")  # milliseconds

    def open_index(self):
        ready = "document.body?.classList.contains('index') && document.readyState == 'complete'"
        self.at((self.folder / "index.html").as_uri(), ready)

    def wait(self, script, *arguments):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.browser, 30, 0.02).until(lambda browser: browser.execute_script(script, *arguments))

    def find(self, selector):
        return self.browser.find_element("css selector", selector)

    def count(self, selector):
        return len(self.browser.find_elements("css selector", selector))

    def changing(self, act):
        """Do something, and wait until the page has been drawn again."""
        drawn = self.browser.execute_script("return document.body.dataset.drawn")
        act()
        self.wait(f"return document.body.dataset.drawn != '{drawn}'")

    def choose(self, selector, value):
        from selenium.webdriver.support.ui import Select

        self.changing(lambda: Select(self.find(selector)).select_by_value(value))

    def click(self, selector):
        self.changing(self.find(selector).click)

    def value(self, selector):
        return self.find(selector).get_attribute("value")

    def pixels(self):
        script = f"return [...document.querySelectorAll('{LARGE}')].map((canvas) => canvas.toDataURL())"
        return self.browser.execute_script(script)

    def hover(self, array, row, column):
        """Move the pointer to a cell, and return the lines that are shown."""
        from selenium.webdriver import ActionChains

        canvas = self.find(f"canvas[data-array='{array}']")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", canvas)
        left, top, width, height = self.browser.execute_script(FIRST_CELL, canvas)
        size = canvas.size
        x = left + (column + 0.5) * width - size["width"] / 2
        y = top + (row + 0.5) * height - size["height"] / 2
        ActionChains(self.browser).move_to_element_with_offset(canvas, round(x), round(y)).perform()
        return self.lines()

    def lines(self):
        return self.find("#readout").get_property("textContent").split("\n")

    def quiet(self):
        """Check that the browser logged no error and loaded only the list of sentences."""
        assert self.browser.get_log("browser") == []
        fetched = self.browser.execute_script(
            "return performance.getEntriesByType('resource').map((each) => each.name)"
        )
        assert [name for name in fetched if not name.startswith("file://") or "/sentences.js" not in name] == []


def is_number(text, expected):
    """Return whether a text ends with that number, rounded to its decimals."""
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
        "encoder_attention": 12,
        "decoder_attention": 9,
        "global_representation": 4,
        "past_future": 3,
        "cross_attention": 3,
    },
    2: {"capsules": 1},
    3: {"past_future": 3, "cross_attention": 1},
    7: {"past_future_attention": 2, "encoder_attention": 1, "decoder_attention": 1, "cross_attention": 1},
}


@pytest.mark.parametrize("number", VIEWS)
def test_every_view_opens_with_a_different_picture(opened, number):
    page = opened(number)
    offered = [option.get_attribute("value") for option in page.find("#view").find_elements("tag name", "option")]
    assert offered == list(VIEWS[number])
    seen = []
    for view, pictures in VIEWS[number].items():
        if view != page.value("#view"):
            page.choose("#view", view)
        assert page.count(LARGE) == pictures and page.pixels() not in seen
        seen.append(page.pixels())


@pytest.mark.parametrize(
    "number, view, control, changed",
    [
        (1, "encoder_attention", "layer", 12),
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
    page.at(address)
    assert page.pixels() == after and page.value(f"#choice-{control}") == chosen


def test_numbers_under_the_pointer_are_those_of_the_archive(opened):
    page = opened(1, view="encoder_attention", layer=1, head=3, words="parts")
    lines = page.hover("encoder_attention", 4, 2)
    assert lines[0].replace("\u2068", "").replace("\u2069", "") == f"{SOURCE[4]} → {SOURCE[2]}"
    names = ["attention_before", "attention", "vertical", "horizontal"]
    assert len(lines) == 2 + 3 * len(names)
    for name, own, other, difference in zip(names, lines[1::3], lines[2::3], lines[3::3]):
        both = [page.arrays[f"{model}encoder_{name}"][0, :, 4, 2] for model in ("", "against.")]
        assert is_number(own, both[0][2]) and is_number(other, both[1][2]), (own, other)
        assert abs(float(difference.rsplit(": ", 1)[1]) - (both[0].mean() - both[1].mean())) < 0.003, difference
    shares = page.arrays["encoder_attention"][0, 2, 4]
    entropy = -(shares * np.log(shares)).sum() / np.log(len(shares))
    assert lines[-1].startswith("entropy of the row: ") and abs(float(lines[-1].split()[-1]) - entropy) < 0.01
    page.choose("#view", "past_future")
    lines = page.hover("assignment", 3, 5)
    for content, line in enumerate(lines[1:4]):
        assert is_number(line, page.arrays["assignment"][3, 5, content]), line
    page.choose("#view", "global_representation")
    assert is_number(page.hover("global_gate_mean", 2, 0)[1], page.arrays["global_gate_mean"][2])
    assert is_number(page.hover("global_gate", 1, 7)[1], page.arrays["global_gate"][1, 7])
    coupling = page.arrays["global_coupling"]  # the chosen layer has not changed
    assert is_number(page.hover("global_coupling", 6, 1)[1], coupling[0, -1, 6, 1])


def test_all_numbers_of_the_page_are_those_of_the_archive(opened):
    page = opened(1)
    names = page.browser.execute_script("return Object.keys(page.arrays)")
    assert set(names) == {name for name in page.arrays if f"{name}.axes" in page.arrays}
    for name in names:
        if page.arrays[name].dtype.kind == "U":
            continue
        script = f"numbers('{name}').then((found) => arguments[0]([page.arrays['{name}'].decimals, [...found]]))"
        decimals, found = page.browser.execute_async_script(script)
        expected = page.arrays[name].ravel()
        np.testing.assert_allclose(found, expected, atol=0.501 * 10.0**-decimals, err_msg=name)


def test_subwords_can_be_joined_to_words(opened):
    page = opened(1, view="cross_attention", head=2, words="parts")
    apart = page.pixels()
    page.click("#joined")
    assert page.find("#joined").is_selected() and page.pixels() != apart and "words" not in page.browser.current_url
    # Row 2 is "ge@@ teilt", column 4 is "sub@@ wo@@ rd". The value is the mean over rows of the sum over columns.
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
def test_words_of_both_kinds_of_subwords_are_joined(opened, labels, joined):
    script = "return words(arguments[0]).map((group) => word(arguments[0], group))"
    assert opened(1).browser.execute_script(script, labels) == joined


def test_a_text_without_spaces_is_not_joined_to_one_word(opened):
    page = opened(8, view="cross_attention")
    assert not page.find("#joined").is_selected()
    apart = page.pixels()
    page.click("#joined")
    assert page.find("#joined").is_selected() and page.pixels() != apart
    assert "words=whole" in page.browser.current_url
    page.click("#joined")
    assert page.pixels() == apart and "words" not in page.browser.current_url
    script = "return arguments[0].map(isOneWord)"
    labels = [["▁犬", "が", "いる", "。", "</s>"], ["▁He", "▁say", "s", "</s>"], ["▁ja", "</s>"], ["犬", "が", "</s>"]]
    assert page.browser.execute_script(script, labels) == [True, False, False, False]


def test_a_reader_can_step_through_a_translation(opened):
    from selenium.webdriver.common.keys import Keys

    page = opened(1, view="past_future", words="parts")
    assert page.find("[aria-current]").text == "مرحبا"
    top = [page.find("#future-words li").text]
    for step in (2, 3):
        page.changing(lambda: page.find("#step").send_keys(Keys.ARROW_RIGHT))
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


def test_parts_of_only_the_second_model_can_be_stepped_through(opened):
    page = opened(5, view="past_future", step=2, words="parts")
    assert page.count(LARGE) == 3 and page.count("#stepping .word i") == 3 * len(SOURCE)
    assert page.find("#past-words li").text.split()[0] == page.arrays["against.past_words"][1, 0]


def test_the_page_has_the_theme_of_the_system_unless_the_reader_chooses_one(opened, wide_as):
    page = opened(1)
    has_paper = "return getComputedStyle(document.body).backgroundColor == arguments[0]"
    papers = {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 27)"}
    for system in ("dark", "light"):
        wide_as(1200, system)
        assert page.wait(has_paper, papers[system])
    page.click("#theme")
    assert page.wait(has_paper, papers["dark"]) and "theme=dark" in page.browser.current_url
    wide_as(1200, "dark")
    page.browser.execute_script("location.hash = 'theme=light'")
    assert page.wait(has_paper, papers["light"])


def test_choices_are_kept_when_the_sentence_changes(opened):
    from selenium.webdriver.support.ui import Select

    page = opened(1, view="cross_attention", head=3, words="parts")
    Select(page.find("#sentence")).select_by_value("test-4.html")
    page.wait("return location.pathname.endsWith('test-4.html') && document.body?.dataset.drawn")
    assert page.value("#choice-head") == "3" and page.value("#view") == "cross_attention"


@pytest.mark.parametrize(
    "number, view, axis, labels", [(1, "encoder_attention", "head", 4), (2, "capsules", "iteration", 3)]
)
def test_all_heads_are_shown_and_a_click_enlarges_one(opened, number, view, axis, labels):
    page = opened(number, view=view)
    figures = page.count(".small")
    assert figures == (8 if number == 1 else 1) and page.count(".multiple") == figures * labels
    before = page.pixels()
    chosen = page.find(".multiple:not([aria-pressed=true])")
    name = chosen.get_attribute("aria-label")
    page.changing(chosen.click)
    assert page.find(".multiple[aria-pressed=true]").get_attribute("aria-label") == name
    assert f"{axis}={page.value(f'#choice-{axis}')}" in page.browser.current_url and page.pixels() != before
    focused = page.browser.switch_to.active_element.get_attribute("aria-label")
    assert focused == name  # the keyboard continues from there


def mean_entropy(text):
    return float(text.removeprefix("Entropy of the rows, mean: ").removesuffix("."))


def test_the_entropy_of_heads_and_of_parts_is_shown(opened):
    page = opened(1, view="encoder_attention", layer=2, words="parts")
    shares = page.arrays["encoder_attention"][1]
    expected = (-(shares * np.log(shares)).sum(-1) / np.log(shares.shape[-1])).mean(-1)
    heads = page.browser.find_elements("css selector", ".multiple")[8:12]
    for head, (button, value) in enumerate(zip(heads, expected), start=1):
        assert button.get_attribute("aria-label") == f"attention, head {head}"
        assert abs(float(button.find_element("css selector", "small").text) - value) < 0.01
    page.choose("#view", "past_future")
    parts = page.arrays["assignment"]
    cells = -(parts * np.log(parts)).sum(-1) / np.log(3)
    assert abs(mean_entropy(page.find(".entropy").text) - cells.mean()) < 0.01
    page.choose("#view", "decoder_attention")
    page.choose("#choice-layer", "1")
    read = page.arrays["decoder_attention"][0, 0]
    rows = [-(row[:n] * np.log(row[:n])).sum() / np.log(n) for n, row in enumerate(read[1:], start=2)]
    figure = page.find(f"{LARGE}[data-array=decoder_attention]").find_element("xpath", "ancestor::figure")
    assert abs(mean_entropy(figure.find_element("css selector", ".entropy").text) - np.mean(rows)) < 0.01


def test_words_are_the_steps_and_the_page_plays_them(opened):
    from selenium.webdriver.common.keys import Keys

    page = opened(1, view="past_future", step=4)
    assert page.find("#step").get_attribute("max") == "4" and page.find("#step-number").text == "3 of 4"
    assert page.find("[aria-current]").text == "geteilt"
    page.find("#play").send_keys(Keys.ENTER)
    page.wait("return document.getElementById('play').textContent == 'pause'")
    page.wait("return document.getElementById('step-number').textContent == '4 of 4'")
    page.wait("return document.getElementById('play').textContent == 'play'")
    widths = page.browser.execute_script(
        "return [...document.querySelectorAll('#stepping .shares')].map((each) => each.getBoundingClientRect().width)"
    )
    assert len(set(widths)) == 1 and len(widths) == 7
    assert "row of this step" in page.find("#stepping").text


@pytest.fixture
def wide_as(browser):
    """Set the width of the page in pixels. A headless window cannot be narrower than 500 pixels."""

    def set_width(width, scheme="light"):
        metrics = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)

    yield set_width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("width", [400, 2000])
def test_pages_of_any_width_scroll_in_one_direction_only(opened, wide_as, width):
    wide_as(width)
    for number, view in ((1, "encoder_attention"), (1, "past_future"), (4, "encoder_attention"), (6, None)):
        page = opened(number, **({"view": view} if view else {}))
        assert page.browser.execute_script("return document.documentElement.scrollWidth") <= width, (number, view)
    gate = "document.querySelector('canvas[data-array=global_gate]').parentElement"
    needed, space, cells = page.browser.execute_script(
        f"return [{gate}.scrollWidth, {gate}.clientWidth, page.arrays.global_gate.shape.at(-1)]"
    )
    assert needed <= space and cells == 512
    page.open_index()
    assert page.browser.execute_script("return document.documentElement.scrollWidth") <= width


@needs_axe
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_no_serious_accessibility_problem(opened, wide_as, scheme):
    wide_as(1200, scheme)
    for number, view in ((1, "encoder_attention"), (1, "past_future"), (6, None), (2, None), (0, "index")):
        page = opened(number or 1, **({"view": view} if view else {}))
        if view == "index":
            page.open_index()
        else:
            page.find("details.numbers summary").click()
        assert serious_problems(page.browser) == [], (number, view)


def test_the_index_is_sorted_and_filtered(opened):
    page = opened(1)
    page.open_index()

    def names():
        rows = page.browser.find_elements("css selector", "tbody tr")
        return [row.find_element("css selector", "a").text.removeprefix("test ") for row in rows if row.is_displayed()]

    assert names() == list("12345678")
    headings = {each.text: each for each in page.browser.find_elements("css selector", "thead button")}
    headings["chrF"].click()
    scored = [
        each.get_attribute("data-value") for each in page.browser.find_elements("css selector", "td:nth-child(7)")
    ]
    assert scored[:2] == sorted(scored[:2], key=float) and scored[2:] == [""] * 6
    headings["chrF"].click()
    orders = [each.get_attribute("aria-sort") for each in page.browser.find_elements("css selector", "thead th")]
    assert orders == ["none"] * 5 + ["descending"] + ["none"] * 2
    headings["sentence"].click()
    headings["sentence"].click()
    assert names() == list("87654321")
    page.find("#filter").send_keys("gret test")
    assert names() == ["6"] and page.find("#count").text == "1 of 8"


def test_a_page_outside_its_folder_has_no_navigation(browser, folder, tmp_path):
    shutil.copy(folder / "test-2.html", tmp_path / "alone.html")
    page = Page(browser, folder, 2)
    page.at((tmp_path / "alone.html").as_uri())
    assert page.count("#navigation") == 0 and page.count(LARGE) == 1
    browser.get_log("browser")  # drop the message that the list is missing
