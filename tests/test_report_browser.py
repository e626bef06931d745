"""The page in a real browser: headless Chromium, driven by Selenium."""

import shutil
from pathlib import Path

import pytest
from report_samples import HOSTILE, make_report

from nearfield.report import render_page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
selenium = pytest.importorskip("selenium", reason="Selenium is not installed: pip install '.[dev]'")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="no browser: install chromium and chromium-driver to test the page in one",
)

TEN = tuple(f"class {letter}" for letter in "ABCDEFGHIJ")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def open_page(browser, tmp_path):
    def open_report(report, width=1400):
        path = Path(tmp_path) / "report.html"
        path.write_text(render_page(report), encoding="utf-8")
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.get(path.as_uri())
        return browser

    yield open_report
    assert browser.get_log("browser") == []  # no error, and nothing that was refused


def find(browser, selector):
    return browser.find_element("css selector", selector)


def find_all(browser, selector):
    return browser.find_elements("css selector", selector)


def column(browser, number):
    rows = f"#samples tbody tr:not([hidden]) td:nth-child({number})"
    return [cell.text for cell in find_all(browser, rows)]


def press(browser, *keys):
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def test_hovering_shows_the_sample_and_clicking_its_neighbours(open_page):
    from selenium.webdriver.common.action_chains import ActionChains

    report = make_report()
    browser = open_page(report)
    point = find(browser, "#p0")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", point)
    ActionChains(browser).move_to_element(point).perform()
    tip = find(browser, "#tip")
    assert tip.is_displayed()
    top = max(report.probabilities[0])
    assert "s1 (a)" in tip.text
    assert f"{top:.3f}" in tip.text
    point.click()
    detail = find(browser, "#detail").text
    assert "Training samples behind the prediction" in detail
    assert "s2 b, +0.90" in detail
    assert "s4 a, \u22120.20" in detail
    assert len(find_all(browser, "#map .links path")) == 4
    find(browser, "#detail ol button").click()
    assert find(browser, "#detail h3").text == "s2"


def test_the_map_can_be_coloured_by_uncertainty(open_page):
    browser = open_page(make_report())
    fill = "return getComputedStyle(document.getElementById('p0')).fill"
    by_class = browser.execute_script(fill)
    find(browser, "input[value=by-uncertainty]").click()
    assert browser.execute_script(fill) != by_class
    assert find(browser, "p[data-shade=by-uncertainty]").is_displayed()


def test_tables_sort_and_filter(open_page):
    browser = open_page(make_report())
    probability = find(browser, "#samples th:nth-child(4) button")
    for order in (1, -1):
        probability.click()
        values = [float(text) for text in column(browser, 4)]
        assert values == sorted(values)[::order]
    find(browser, "#samples th:nth-child(1) button").click()
    assert column(browser, 1)[:3] == ["s1", "s2", "s3"]  # by number, not by letter
    box = find(browser, "#filter-text")
    box.send_keys("s29")
    assert column(browser, 1) == ["s29"]
    assert find(browser, "#filter-count").text == "1 of 30 shown"
    box.clear()
    press(browser, " ")
    box.clear()
    find(browser, "#filter-kind option[value=wrong]").click()
    assert len(column(browser, 1)) == 4


def test_the_page_works_by_the_keyboard(open_page):
    from selenium.webdriver.common.keys import Keys

    browser = open_page(make_report(has_spectra=True))
    browser.execute_script("document.getElementById('map').focus()")
    press(browser, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert find(browser, "#detail h3").text == "s2"
    assert find(browser, "#spectrum-name").text == "In black: s2."
    assert len(find_all(browser, "#spectra .selected polyline")) == 1
    press(browser, Keys.ENTER, Keys.ENTER)
    assert find(browser, "#detail h3").text == "s3"
    browser.execute_script("document.querySelector('#samples th button').focus()")
    press(browser, Keys.ENTER)
    assert find(browser, "#samples th").get_attribute("aria-sort") == "ascending"


@pytest.mark.parametrize("width", [500, 1400])
@pytest.mark.parametrize("classes", [("a", "b"), TEN, HOSTILE], ids=["two", "ten", "hostile"])
def test_nothing_is_cut_off(open_page, classes, width):
    names = [f"{HOSTILE[i % 5]}{i}" for i in range(40)] if classes is HOSTILE else None
    browser = open_page(make_report(classes, 40, has_spectra=True, names=names), width)
    browser.execute_script("document.querySelector('button.sample').click()")
    outside = browser.execute_script(
        """
        const width = document.documentElement.clientWidth;
        const scrolls = (e) => e.closest('.scroll') && !e.classList.contains('scroll');
        return Array.from(document.querySelectorAll('body *'))
          .filter((e) => !scrolls(e) && e.getClientRects().length)
          .filter((e) => e.getBoundingClientRect().right > width + 1 ||
                         e.getBoundingClientRect().left < -1)
          .map((e) => e.outerHTML.slice(0, 80));
        """
    )
    assert outside == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return window.broken") is None
    texts_outside = browser.execute_script(
        """
        return Array.from(document.querySelectorAll('section svg[role] text')).filter((t) => {
          const box = t.getBoundingClientRect();
          const svg = t.closest('svg').getBoundingClientRect();
          return box.left < svg.left - 1 || box.right > svg.right + 1 ||
                 box.top < svg.top - 1 || box.bottom > svg.bottom + 1;
        }).map((t) => t.textContent);
        """
    )
    assert texts_outside == []
