"""The explorer of a report in Chromium, opened from a file: by keyboard, by touch, in the dark and printed."""

import numpy as np
import pytest

import mechdesign as md
from mechdesign.report._explorer import POLICY, explorer

pytestmark = pytest.mark.browser

PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Page</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; {policy}"></head><body>{figure}</body></html>"""


@pytest.fixture
def page(chromium, tmp_path):
    grid = md.Domain.grid(3, 2, 3.0, 2.0)
    matrix = np.full((6, 6), 0.1) + 0.4 * np.eye(6)
    figure = explorer(grid, grid, matrix, [0.1, 0.2, 0.3, 0.2, 0.1, 0.1])
    (tmp_path / "page.html").write_text(PAGE.format(policy=POLICY, figure=figure), encoding="utf-8")
    asked, errors = [], []
    context = chromium.new_context(has_touch=True, color_scheme="dark", viewport={"width": 400, "height": 800})
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto((tmp_path / "page.html").as_uri())
    yield page
    context.close()
    assert asked == [(tmp_path / "page.html").as_uri()]
    assert errors == []


def test_keys_and_taps_choose_and_the_tables_follow(page):
    select, canvas = page.locator("select"), page.locator("canvas").nth(1)
    assert select.input_value() == "2"
    select.press("ArrowDown")
    assert select.input_value() == "3"
    page.locator("summary").first.click()
    assert page.locator("tbody tr").first.inner_text().split("\t") == ["3 (0.5, 1.5)", "50%"]
    box = canvas.bounding_box()
    canvas.tap(position={"x": box["width"] - 4, "y": 4})
    assert select.input_value() == "5"
    said = "Secrets confused with this secret, 6 values. Most: 2 (2.5, 0.5): 25%; 5 (2.5, 1.5): 21%; 1 (1.5, 0.5): 18%"
    assert canvas.get_attribute("aria-label") == said


def test_each_picture_is_drawn_to_scale_with_full_colour_for_the_largest(page):
    for place in range(2):
        colours = (
            page.locator("canvas")
            .nth(place)
            .evaluate(
                "(canvas) => [0, 1, 2, 3, 4, 5].map((cell) => [...canvas.getContext('2d').getImageData("
                "500 / 3 + (cell % 3) * 1000 / 3, cell < 3 ? 500 : 167, 1, 1).data])"
            )
        )
        assert colours[2] == [43, 16, 101, 255]
        assert max(alpha for *_, alpha in [*colours[:2], *colours[3:]]) < 200
