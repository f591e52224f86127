"""The pictures of a page, and what its script says about them: the same as the channel."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_array_equal
from report_examples import city, domains, prior_of

from mechdesign.model._domain import Domain
from mechdesign.report._channel_figures import prior_picture
from mechdesign.report._design_page import html
from mechdesign.report._pages import panels
from mechdesign.report._scales import colour_classes, probability_scale
from mechdesign.report._style import on_page

KINDS = domains()


@pytest.fixture(scope="module")
def page() -> str:
    return html(*city(6, 5))


# --- shapes ------------------------------------------------------------------------------------------------------


def drawn(name: str, values: np.ndarray | None = None, domain: Domain | None = None) -> str:
    """Return the prior of a kind of domain as a page shows it."""
    domain = KINDS[name] if domain is None else domain
    n = 7 if domain is None else domain.size
    prior = prior_of(n) if values is None else values
    parts = {"prior": {"role": "img"}}
    return "".join(map(str, panels(lambda: prior_picture(prior, domain), "prior", parts)["drawn"]))


def cells_of(text: str, columns: int, rows: int) -> np.ndarray:
    """Read the colours of cells back from the paths of a picture."""
    found = np.full((rows, columns), -1)
    left, top, right, bottom = box_of(text)
    for step, path in re.findall(
        r'<path class="p(\d+)" d="([^"]*)"', re.findall(r'<g class="values">.*?</g>', text)[0]
    ):
        for x, y in re.findall(r"M([\d.]+) ([\d.]+)h", path):
            column, row = (float(x) - left) / (right - left) * columns, (float(y) - top) / (bottom - top) * rows
            found[rows - 1 - round(row), round(column)] = int(step)
    return found.ravel()


def box_of(text: str) -> tuple[float, float, float, float]:
    numbers = [float(value) for value in re.findall(r"[\d.]+", re.findall(r'class="box" d="([^"]*)"', text)[0])]
    return min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2])


def steps(values: np.ndarray) -> list[int]:
    """Return the class of the colour that each value has in a picture on a page."""
    with on_page():
        scale = probability_scale(values, "p")
    names = {colour: int(step[1:]) for colour, step in colour_classes().items() if step.startswith("p")}
    return [names[to_hex(colour)] for colour in scale.cmap(scale.norm(values))]


def test_cells_have_the_colours_of_their_values():
    values = prior_of(20)
    text = drawn("grid", values)
    assert_array_equal(cells_of(text, 5, 4), np.where(values == 0, -1, steps(values)))
    assert "fill:url(#prior-h" in text  # hatched
    assert re.findall(r"<text[^>]*>(\d+)</text>", re.findall(r'<g class="numbers".*?</g>', text)[0]) == [
        str(index) for index in range(20)
    ]
    assert "2 km" in text


def test_large_grids_have_no_numbers_and_geographic_ones_have_degrees():
    assert "numbers" not in drawn("", np.full(120, 1 / 120), Domain.grid(12, 10, 12.0, 10.0))
    text = drawn("geographic")
    assert "40.75°N" in text
    assert "74.00°W" in text


@pytest.mark.slow
def test_every_kind_of_domain_is_drawn():
    for name in KINDS:
        text = drawn(name)
        assert 'role="img"' in text, name
        assert not re.search("nan|inf", text), name


def test_headlines_are_text_of_the_page(page):
    assert "The best attack is off by" in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)
    assert not re.search(r"<svg[^>]*>(?:(?!</svg>).)*The best attack is off", page, re.DOTALL)
