"""The report of a sweep: a whole page, values where the pointer rests, and a picture that says what the rows say."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from sweep_examples import sweep

from mechdesign.runs._store import Row, State
from mechdesign.runs._sweep_page import choose_layout, html, sweep_picture

COLUMNS = ["status", "cost", "lower_bound", "relative_gap", "tight_epsilon", "channel"]


def rows(asked, fails=(), unit="km"):
    made = []
    for number, point in enumerate(asked.points()):
        values = {key: float(value) if not isinstance(value, str) else value for key, value in point.items()}
        state = State.FAILED if number in fails else State.DONE
        if number not in fails:
            values |= {"cost": 3 - number / 10, "lower_bound": 2.5 - number / 10, "relative_gap": 0.1}
            values |= {"tight_epsilon": 0.1, "channel": f"channels/{number}"}
        else:
            values["message"] = "InfeasibleError: <b>no</b> channel"
        made.append(Row(f"{number:x}".ljust(64, "0"), state, {**values, "status": state}, {"unit": unit}))
    return made


class Titles(HTMLParser):
    """Collects the titles inside pictures, and checks that all elements are closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.titles = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["title"] and "svg" in self.open:
            self.titles.append(data)


def test_every_design_has_its_values_where_the_pointer_rests():
    asked = sweep('"privacy.0.epsilon" = [0.2, 0.5, 1]\n"cost.power" = [1, 2]')
    page = html(asked, rows(asked, fails=[4]), [*asked.values, *COLUMNS])
    titles = Titles(page).titles
    # Each point is in the picture for wide screens, and in that for narrow ones.
    assert len(titles) == 12
    assert any("privacy.0.epsilon = 0.5" in title and "cost 2.8, at least 2.3" in title for title in titles)
    assert sum("failed" in title for title in titles) == 2
    assert "<b>no</b>" not in page
    assert "5 of 6 designs are done." in page
    assert "cost (km)" in page
    assert "default-src 'none'" in page
    assert not re.search(r"https?:", page)


def test_a_sweep_that_has_not_begun_has_a_report():
    asked = sweep()
    assert "0 of 8 designs are done." in html(asked, [], [*asked.values, *COLUMNS])


def test_the_same_rows_give_the_same_page():
    asked = sweep()
    assert html(asked, rows(asked), [*asked.values, *COLUMNS]) == html(asked, rows(asked), [*asked.values, *COLUMNS])


@pytest.mark.parametrize(
    ("values", "mode", "chosen"),
    [
        ({"cost.power": [1, 2], "privacy.1.minimum": [1, 2]}, "product", ("privacy.1.minimum", "cost.power", ())),
        ({"a.minimum": [1, 2], "privacy.0.epsilon": [1]}, "product", ("privacy.0.epsilon", "a.minimum", ())),
        ({"a.x": ["u", "v"], "b.x": [1, 2], "c.x": [1, 2, 3]}, "product", ("b.x", "c.x", ("a.x",))),
        ({"a.x": ["u", "v"]}, "product", ("a.x", None, ())),
        ({"a.x": [1, 2], "b.x": [3, 4]}, "zip", ("a.x", None, ())),
        ({"a.x": [1, 2], "b.x": [3]}, "product", ("a.x", None, ())),
    ],
)  # fmt: skip
def test_keys_have_their_places(values, mode, chosen):
    found = choose_layout(values, mode)
    assert (found.first, found.panels, found.lines) == chosen
    assert found.joined == (mode == "product")


@pytest.mark.parametrize(
    "lists",
    [
        '"privacy.0.epsilon" = [0.1, 1, 10, 100]',
        '"solver.name" = ["auto", "highs"]\n"cost.power" = [1, 2]',
        '"solver.name" = ["auto", "highs"]',
        '"privacy.0.epsilon" = [1]',
        '"privacy.0.epsilon" = [1, 2]\n"cost.power" = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]',
        '"privacy.0.epsilon" = [1, 2]\n"cost.power" = [1, 2, 3]\n"cost.scale" = [1, 2, 3, 4, 5, 6, 7, 8]',
    ],
)
def test_pictures_are_drawn_of_any_keys(lists):
    asked = sweep(lists)
    made = rows(asked)
    chosen = choose_layout(asked.values, asked.mode)
    figure = sweep_picture(made, chosen, "km")
    finding = figure.get_suptitle()
    shown = min(12, len(asked.values.get(chosen.panels, [1])))
    assert sum(axes.get_visible() for axes in figure.axes) == shown
    assert ("left out" in finding) == (len(asked.values.get(chosen.panels, [1])) > 12)
    assert "km" in finding


def test_rows_without_a_cost_are_drawn_too():
    asked = sweep('"privacy.0.epsilon" = [1, 2]')
    figure = sweep_picture(rows(asked, fails=[0, 1]), choose_layout(asked.values, "product"))
    assert figure.get_suptitle() == "No design has a cost"
