"""The report of a sweep: a whole page, values where the pointer rests, and a picture that says what the rows say."""

from __future__ import annotations

import re
from html.parser import HTMLParser

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


def test_the_same_rows_give_the_same_page_even_before_the_first():
    asked = sweep('"privacy.0.epsilon" = [1, 2]')
    columns = [*asked.values, *COLUMNS]
    assert html(asked, rows(asked), columns) == html(asked, rows(asked), columns)
    assert "0 of 2 designs are done." in html(asked, [], columns)


LAYOUTS = (
    ({"cost.power": [1, 2], "privacy.1.minimum": [1, 2]}, "product", ("privacy.1.minimum", "cost.power", ())),
    ({"a.minimum": [1, 2], "privacy.0.epsilon": [1]}, "product", ("privacy.0.epsilon", "a.minimum", ())),
    ({"a.x": ["u", "v"], "b.x": [1, 2], "c.x": [1, 2, 3]}, "product", ("b.x", "c.x", ("a.x",))),
    ({"a.x": ["u", "v"]}, "product", ("a.x", None, ())),
    ({"a.x": [1, 2], "b.x": [3, 4]}, "zip", ("a.x", None, ())),
    ({"a.x": [1, 2], "b.x": [3]}, "product", ("a.x", None, ())),
)


def test_keys_have_their_places():
    for values, mode, chosen in LAYOUTS:
        found = choose_layout(values, mode)
        assert (found.first, found.panels, found.lines) == chosen, values
        assert found.joined == (mode == "product")


def test_truth_values_are_no_numbers_of_an_axis():
    layouts = [
        choose_layout({"privacy.0.name": ["a", "b", "c"], "prior.flag": flags}, "product")
        for flags in ([False, True], ["no", "yes"], [0, 1])
    ]
    assert layouts[0] == layouts[1]
    assert layouts[2] != layouts[1]


def test_pictures_are_drawn_of_any_keys():
    for lists in (
        '"privacy.0.epsilon" = [0.1, 1, 10, 100]',
        '"solver.name" = ["auto", "highs"]\n"cost.power" = [1, 2]',
        '"privacy.0.epsilon" = [1]',
    ):
        asked = sweep(lists)
        layout = choose_layout(asked.values, asked.mode)
        figure = sweep_picture(rows(asked), layout, "km")
        panels = len(asked.values.get(layout.panels, [1]))
        assert sum(axes.get_visible() for axes in figure.axes) == panels, lists
        assert "left out" not in figure.get_suptitle()
        assert "km" in figure.get_suptitle()


def test_panels_beyond_the_most_are_left_out(monkeypatch):
    monkeypatch.setattr("mechdesign.runs._sweep_page._MOST_PANELS", 2)
    asked = sweep('"privacy.0.epsilon" = [1, 2]\n"cost.power" = [1, 2, 3]\n"cost.scale" = [1, 2]')
    figure = sweep_picture(rows(asked), choose_layout(asked.values, asked.mode), "km")
    assert sum(axes.get_visible() for axes in figure.axes) == 2
    assert "left out" in figure.get_suptitle()


def test_rows_without_a_cost_are_drawn_too():
    asked = sweep('"privacy.0.epsilon" = [1, 2]')
    figure = sweep_picture(rows(asked, fails=[0, 1]), choose_layout(asked.values, "product"))
    assert figure.get_suptitle() == "No design has a cost"
