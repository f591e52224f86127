"""The pictures of a page, and what its script says about them: the same as the channel."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from importlib import resources

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose, assert_array_equal
from py_mini_racer import MiniRacer
from report_examples import certificate, channel, city, data_of, domains, mixing, prior_of, record_maps

from mechdesign.measures import attack
from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.model._words import percent
from mechdesign.report._channel_figures import prior_picture
from mechdesign.report._design_page import html
from mechdesign.report._explorer import (
    beliefs,
    collect_explorer_data,
    decode_numbers,
    encode_numbers,
    name_of,
    panel_attributes,
    view,
)
from mechdesign.report._pages import panels
from mechdesign.report._scales import LEVELS, colour_classes, probability_scale
from mechdesign.report._style import on_page

KINDS = domains()


@pytest.fixture(scope="module")
def script():
    """Return the script of the page in an engine of its own, without a page."""

    engine = MiniRacer()
    engine.eval(resources.files("mechdesign.report").joinpath("templates", "report.js").read_text(encoding="utf-8"))
    return engine


@pytest.fixture(scope="module")
def page() -> str:
    return html(*city(6, 5))


# --- numbers -----------------------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.just(0.0), st.floats(2.0**-62, 1.0)), min_size=1, max_size=20))
def test_numbers_are_kept_to_three_digits(values):
    assert decode_numbers(encode_numbers(values)).tolist() == [float(f"{value:.3g}") for value in values]


def test_numbers_at_the_edges_of_a_power_of_ten():
    values = [0.9994, 0.9996, 0.09996, 1e-5, 9.996e-6, 2.0**-62, 1.0, 0.1]
    assert decode_numbers(encode_numbers(values)).tolist() == [float(f"{value:.3g}") for value in values]


def test_what_the_pointer_shows_is_the_channel(page, script):
    problem, made, _ = city(6, 5)
    data = data_of(page)
    codes = list(zlib.decompress(b64decode(data["channel"])))
    script.eval(f"var data = {json.dumps(data)}; var channel = decode(Uint8Array.from({codes}));")
    shown = json.loads(script.eval("JSON.stringify([...channel].map((value) => percent(value)))"))
    # The page keeps three digits, and shows two.
    assert shown == [percent(float(f"{value:.3g}")) for value in made.matrix.ravel()]
    prior = json.loads(script.eval('JSON.stringify(data.series.prior.values.map((v) => written(v, "%")))'))
    assert prior == [percent(value) for value in problem.prior]
    names = json.loads(script.eval("JSON.stringify([...data.prior.keys()].map((s) => named(data.secrets, s)))"))
    assert names == [name_of(problem.secrets, index) for index in range(30)]
    assert script.eval("place(data.secrets, 8)") == "2.5, 1.5 km"
    found = json.loads(script.eval("JSON.stringify([...believed(channel, data.prior, 30, 13)])"))
    assert_allclose(found, beliefs(made.matrix, problem.prior)[13], rtol=5e-3)


def test_the_script_writes_percentages_and_takes_colours_as_the_page_does(script):
    values = [0.0, 1.0, 0.99951, 0.9994, 0.995, 0.9949, 0.5, 0.0123456, 0.00351, 1e-5, 9.9e-6, 2e-8, 3.3e-19]
    assert [script.call("percent", value) for value in values] == [percent(value) for value in values]
    for shares in ([0.5, 0.3, 0.2, 0.01], [0.9, 1e-3, 1e-4, 1e-7, 2e-6]):
        scale = probability_scale(shares, "p")
        stated = {"levels": LEVELS, "log": scale.logarithmic, "low": scale.norm.vmin, "top": scale.norm.vmax}
        assert [script.call("level", stated, share) for share in shares] == steps(np.array(shares))


def test_the_script_finds_every_member_where_it_is_drawn(script):
    for name in ("grid", "geographic", "points", "numbers", "labels", "one column"):
        shown = view(KINDS[name], KINDS[name].size)
        script.eval(f"var view = {json.dumps(shown.data())};")
        for index, (x, y) in enumerate(np.round(shown.places, 1).tolist()):
            assert script.eval(f"memberAt(view, {x}, {y})") == index, name


def test_descriptions_of_maps_begin_with_their_title_if_there_is_one():
    for title in ("", "Error"):
        made = panel_attributes(np.array([1.0, 3.0]), None, "error", "secrets", "error", title, "km")
        assert made["aria-label"].startswith("Error: error" if title else "error, 2 values")


def test_arrow_keys_lead_to_neighbours(script):
    script.eval(f"var view = {json.dumps(view(KINDS['grid'], 20).data())};")
    steps = {"ArrowUp": 12, "ArrowDown": 2, "ArrowLeft": 6, "ArrowRight": 8}
    assert {key: script.eval(f'neighbour(view, 7, "{key}")') for key in steps} == steps
    # At the border they stay.
    assert script.eval('neighbour(view, 0, "ArrowLeft")') == script.eval('neighbour(view, 0, "ArrowDown")') == 0
    script.eval(f"var view = {json.dumps(view(KINDS['labels'], 7).data())};")
    assert [script.eval(f'neighbour(view, 3, "{key}")') for key in steps] == [4, 2, 2, 4]


# --- what an adversary believes ----------------------------------------------------------------------------------


def test_beliefs_are_those_of_bayes():
    rng = np.random.default_rng(3)
    matrix, prior = rng.dirichlet(np.ones(4), size=3), np.array([0.5, 0.5, 0.0])
    found = beliefs(matrix, prior)
    assert_allclose(found.sum(axis=1), 1)
    assert_array_equal(found[:, 2], 0)
    posterior = attack.bayes(matrix, prior, 1 - np.eye(3)).strategy
    assert_allclose(found, matrix @ posterior)


def test_beliefs_without_information_are_the_prior():
    prior = np.array([0.2, 0.3, 0.5])
    assert_allclose(beliefs(np.full((3, 2), 0.5), prior), np.tile(prior, (3, 1)))
    assert_allclose(beliefs(np.eye(3), prior), np.eye(3))


def test_a_large_channel_keeps_the_likeliest_secrets():
    grid = Domain.grid(30, 20, 30.0, 20.0)
    prior = prior_of(600)
    shown = collect_explorer_data(view(grid, 600), view(grid, 600), np.full((600, 600), 1 / 600), prior, 0, True)
    rows, whole = shown.rows()
    assert not whole
    assert 0 < len(rows) < 600
    assert prior[rows].min() >= np.delete(prior, rows).max()


# --- shapes ------------------------------------------------------------------------------------------------------


def drawn(name: str, values: np.ndarray | None = None, domain: Domain | None = None) -> str:
    """Return the prior of a kind of domain as a page shows it."""
    domain = KINDS[name] if domain is None else domain
    n = 7 if domain is None else domain.size
    prior = prior_of(n) if values is None else values
    parts = {"prior": panel_attributes(prior, domain, "prior", "secrets", "prior probability")}
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
def test_every_kind_of_domain_is_drawn_and_can_be_focused():
    for name in KINDS:
        text = drawn(name)
        assert 'tabindex="0"' in text, name
        assert 'role="img"' in text, name
        assert not re.search("nan|inf", text), name


@pytest.mark.parametrize("name", ["grid", "points", "numbers", "labels", "one column"])
def test_members_are_drawn_where_the_script_looks_for_them(name):
    shown = view(KINDS[name], KINDS[name].size)
    text = drawn(name, np.full(shown.size, 1 / shown.size))
    left, top, right, bottom = box_of(text)
    group = re.findall(r'<g class="values">.*?</g>', text)[0]
    found = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', group)] or [
        (float(x) + float(w) / 2, float(y) + float(h) / 2)
        for x, y, w, h in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)", group)
    ]
    places = sorted(shown.places.tolist(), key=lambda at: (at[0], at[1]))
    for (x, y), (px, py) in zip(sorted(found), places, strict=True):
        assert (x - left) / (right - left) * 1000 == pytest.approx(px, abs=1.5)
        if shown.form != "bars":
            assert (y - top) / (bottom - top) * shown.height == pytest.approx(py, abs=1.5)


def test_headlines_are_text_of_the_page(page):
    assert "The best attack is off by" in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)
    assert not re.search(r"<svg[^>]*>(?:(?!</svg>).)*The best attack is off", page, re.DOTALL)


@pytest.mark.slow
def test_answers_of_another_domain_have_no_secret_to_choose():
    secrets, observables = Domain.grid(3, 2, 3.0, 2.0), Domain.grid(2, 2, 3.0, 2.0)
    cost = distances.euclidean(secrets, observables)
    problem = Problem(prior_of(6), cost, [], secrets=secrets, observables=observables)
    made = channel(mixing(6, 4) + 0.01)
    page = html(problem, made, certificate(problem, made))
    assert page.count('data-side="answers"') == 6
    assert data_of(page)["answers"]["cells"] == [2, 2]
    # Each secret is a cross on the map of the other cells: a light one on a dark one.
    assert page.count('<g class="mark">') == 2 * 5 + 2


def test_maps_of_a_design_show_its_numbers_at_the_places_they_belong_to(monkeypatch):
    secrets = Domain.from_points([[0.0], [1.0], [3.0]], unit="km")
    pair = Domain.from_points([[0.5], [2.0]], ["west", "east"], unit="km")
    for others in (pair, secrets):
        problem = Problem(
            prior_of(3, False), distances.euclidean(secrets, others), [], secrets=secrets, observables=others
        )
        made = channel(mixing(3, others.size) + 0.01)
        maps = record_maps(monkeypatch, "mechdesign.report._design_page")
        data = data_of(html(problem, made, certificate(problem, made)))
        first, matrix = data["first"], decode_numbers(data["channel"]).reshape(-1, others.size)
        assert_allclose(matrix, made.matrix[data["rows"]], rtol=1e-2)
        assert_allclose(data["prior"], problem.prior, rtol=1e-4)
        given = beliefs(made.matrix, problem.prior)
        expected = {"prior": (secrets, problem.prior), "answers": (others, made.matrix[first])}
        expected |= {"beliefs": (secrets, given[first])}
        expected |= {f"row {index}": (others, row) for index, row in enumerate(made.matrix)}
        shown = {}
        for attributes in (each for parts in maps.values() for each in parts.values() if "data-shows" in each):
            name = attributes["data-shows"]
            view_of = data[attributes["data-side"]]
            places, values = expected.get(name, (secrets, None))
            assert view_of["centres"] == places.points.tolist(), name
            assert f"{places.size} values, the largest" in attributes["aria-label"], name
            if values is not None:
                assert attributes["aria-label"].endswith(f" at {places.labels[int(np.argmax(values))]}"), name
            shown[name] = attributes["data-hue"]
        assert shown == {**dict.fromkeys(expected, "p"), "error": "e"}
