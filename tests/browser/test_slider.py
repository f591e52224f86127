"""The slider on the landing page, in Chromium: by mouse, by keyboard, from a file, and without JavaScript."""

import json
from pathlib import Path

import pytest
from sites import is_within

pytestmark = pytest.mark.browser
STORED = json.loads((Path(__file__).parents[2] / "docs" / "results" / "slider.json").read_text(encoding="utf-8"))[
    "slider"
]
MOST_BYTES = 150_000


def shown(page):
    """Return the percentages of the map, of cells with at least 1 %."""
    return [int(text or 0) for text in page.locator("#slider svg text").all_text_contents()]


def expected(epsilon, floor, cell):
    design, row = STORED["designs"][epsilon][floor], [0] * len(STORED["prior"])
    for answer, share in zip(design["answers"], design["rows"][cell], strict=True):
        row[answer] = int(share / 10 + 0.5) if share >= 10 else 0
    return row


def facts(page):
    return page.locator("#slider dd").all_text_contents()


def test_the_map_is_that_of_the_stored_design(opened):
    page = opened("index.html")
    first = STORED["first"]
    assert shown(page) == expected(first["epsilon"], first["floor"], first["cell"])
    assert STORED["odds"][first["epsilon"]] in facts(page)
    assert STORED["designs"][first["epsilon"]][first["floor"]]["gap"] in facts(page)


def test_the_slider_changes_the_map_by_keyboard(opened):
    page = opened("index.html")
    first, picture = STORED["first"], page.locator("#slider svg")
    before = picture.screenshot()
    slider = page.get_by_role("slider")
    assert slider.get_attribute("id") == "slider-epsilon"
    slider.focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert shown(page) == expected(first["epsilon"] + 2, first["floor"], first["cell"])
    assert picture.screenshot() != before
    assert slider.get_attribute("aria-valuetext").startswith(f"{STORED['epsilons'][first['epsilon'] + 2]} per km")
    page.keyboard.press("Home")
    assert shown(page) == expected(0, first["floor"], first["cell"])
    page.keyboard.press("End")
    assert STORED["odds"][-1] in facts(page)
    # To the floors, and to the next one.
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert shown(page) == expected(len(STORED["odds"]) - 1, 1, first["cell"])
    assert f"{STORED['designs'][-1][1]['attack']} km" in facts(page)
    assert f"a floor of {STORED['floors'][1]} km" in page.locator("#slider [role=status]").inner_text()


def test_a_click_on_the_map_and_the_list_choose_the_true_cell(opened):
    page = opened("index.html")
    first = STORED["first"]
    page.locator("#slider svg g").nth(3).click()
    assert page.get_by_label("True cell", exact=True).input_value() == "3"
    assert shown(page) == expected(first["epsilon"], first["floor"], 3)
    page.get_by_label("True cell", exact=True).select_option("40")
    assert shown(page) == expected(first["epsilon"], first["floor"], 40)
    assert (
        page.locator("#slider svg").get_attribute("aria-label").startswith("Map of answers for the true cell column 1")
    )


def test_where_no_mechanism_exists_none_is_shown(opened):
    page = opened("index.html")
    page.get_by_role("radio", name=f"{STORED['floors'][-1]} km").check()
    assert set(shown(page)) == {0}
    assert "no mechanism exists" in page.locator("#slider .headline").inner_text()
    page.get_by_role("radio", name="none").check()
    assert max(shown(page)) > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_the_slider_fits_and_its_numbers_can_be_read(opened, scheme, width):
    page = opened("index.html", color_scheme=scheme, viewport={"width": width, "height": 900})
    box = page.locator("#slider").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for cell in range(0, 48, 5):
        page.get_by_label("True cell", exact=True).select_option(str(cell))
        assert min(page.evaluate(CONTRASTS)) >= 4.5


# The fill is drawn over the ground.
CONTRASTS = """() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const linear = (part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const groups = [...document.querySelectorAll("#slider svg g")];
  return groups.filter((group) => group.querySelector("text").textContent).map((group) => {
    const fill = (selector) => parts(getComputedStyle(group.querySelector(selector)).fill);
    const share = Number(group.querySelector(".answer").style.fillOpacity);
    const ground = fill(".ground");
    const below = fill(".answer").slice(0, 3).map((part, index) => share * part + (1 - share) * ground[index]);
    const [a, b] = [light(below), light(fill("text"))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
}"""


def test_without_scripts_the_table_is_there(opened):
    page = opened("index.html", java_script_enabled=False)
    assert page.locator("#slider").is_hidden()
    rows = page.locator(".slider-table table tbody tr")
    assert rows.count() == len(STORED["epsilons"])
    assert rows.first.is_visible()
    assert "none exists" in rows.first.inner_text()


def test_the_slider_works_from_a_file(opened, folder):
    page = opened((folder / "index.html").as_uri())
    first = STORED["first"]
    assert shown(page) == expected(first["epsilon"], first["floor"], first["cell"])


def test_script_and_data_are_small(folder):
    files = list((folder / "_static" / "slider").iterdir())
    assert {"slider.js", "designs.js", "slider.css"} <= {path.name for path in files}
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES


def test_a_request_to_another_host_would_be_found():
    site = "http://127.0.0.1:8000"
    for url in (f"{site}/index.html", "blob:http://127.0.0.1:8000/1", "data:,x", "file:///x"):
        assert is_within(url, site)
    for url in (
        "https://example.org/",
        "http://127.0.0.1:80000/",
        "http://127.0.0.1/",
        "http://localhost:8000/",
        "ws://x/",
    ):
        assert not is_within(url, site)
