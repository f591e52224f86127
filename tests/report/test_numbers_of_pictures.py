"""Pictures of comparisons and audits: what they say, and their numbers on the page and as CSV."""

from __future__ import annotations

import csv
import html as markup
import io
import math
import re
from urllib.parse import unquote

import numpy as np
import pytest
from report_examples import certificate, channel, data_of, leave_out, record_maps

import mechdesign as md
from mechdesign.report import _audit_page, _compare_page
from mechdesign.report._compare_figure import DesignPoint, PrivacyAxis, _find_headline, compare_picture
from mechdesign.report._compare_page import attack_design
from mechdesign.report._distance_figure import losses_picture

LINE = md.Domain.from_points([[0.0], [1.0], [3.0]], unit="km")
KM = md.distances.euclidean(LINE)
SMALL, LARGE = PrivacyAxis("ε", larger=False), PrivacyAxis("error", larger=True)


@pytest.fixture
def blank(monkeypatch):
    """Leave pictures of answers and errors blank."""
    monkeypatch.setattr("mechdesign.report._compare_page.panels", leave_out)


def csv_of(page: str, name: str) -> list[list[str]]:
    """Return the cells of the CSV file that a page contains."""
    [address] = re.findall(rf'href="data:text/csv;charset=utf-8,([^"]*)" download="{name}.csv"', page)
    return list(csv.reader(io.StringIO(unquote(markup.unescape(address)))))


def near(epsilon: float) -> np.ndarray:
    weights = np.exp(-epsilon / 2 * KM)
    return weights / weights.sum(axis=1, keepdims=True)


def compared(name: str, epsilon: float, **options):
    settings = {"requirements": [md.MetricPrivacy("2", KM)], "objective": "expected", "cost": KM, "observables": LINE}
    settings |= options
    problem = md.Problem(
        md.Prior.uniform(3), settings["cost"], settings["requirements"], objective=settings["objective"],
        secrets=LINE, observables=settings["observables"],
    )  # fmt: skip
    made = channel(near(epsilon)[:, : problem.cost.shape[1]])
    return attack_design(name, problem, made, certificate(problem, made))


def point(name: str, privacy: float, cost: float) -> DesignPoint:
    return DesignPoint(name, privacy, cost, cost / 2)


def test_the_headline_names_a_design_that_is_worse_in_both():
    none = "No design costs less than another and is more private"
    for axis, others, said in (
        (SMALL, [("b", 2, 1)], none),
        (SMALL, [("b", 2, 3)], "a costs less than b, and is more private"),
        (LARGE, [("b", 2, 1)], "b costs less than a, and is more private"),
        (LARGE, [("b", 2, 3)], none),
        (SMALL, [("b", 1, 3)], none),
        (SMALL, [("b", 1 + 1e-9, 2 + 1e-9)], none),
        (SMALL, [("b", 2, 3), ("c", 3, 4)], "2 of 3 designs cost more than another design, and are less private"),
        (SMALL, [("b", 0, 0)], "b costs less than a, and is more private"),
    ):
        points = [point("a", 1, 2), *(point(*each) for each in others)]
        assert _find_headline(points, axis) == said, others


def test_lines_go_down_to_visible_lower_bounds():
    axes = compare_picture([DesignPoint("a", 1, 2, 1), DesignPoint("b", 2, 2, 1.9999)], SMALL, "cost").axes[0]
    lines = [list(line.get_ydata()) for line in axes.lines if len(line.get_ydata()) == 2]
    assert lines == [[1, 2]]
    assert axes.get_xlabel().endswith("(smaller is more private)")


def test_a_comparison_shows_costs_against_the_common_requirement():
    low, high = compared("low", 0.5), compared("high", 1.5)
    page = _compare_page.html([low, high])
    heads, *rows = csv_of(page, "costs")
    assert heads[:2] == ["design", "metric privacy, ε per km (Euclidean distance)"]
    assert [row[0] for row in rows] == ["low", "high"]
    for row, one in zip(rows, (low, high), strict=True):
        proved = one.certificate
        assert float(row[1]) >= proved.requirements[0].realised
        assert float(row[2]) >= proved.cost >= proved.lower_bound >= float(row[3])
        assert f"<td>{row[1]}</td>" in page.replace(f' data-head="{heads[1]}"', "")
    assert 'aria-label="Cost against privacy. No design costs less' in page
    assert "design: low\n" in page


@pytest.mark.usefixtures("blank")
def test_equal_or_missing_requirements_leave_the_error_of_the_best_attack():
    free = compared("free", 1.5, requirements=[])
    for other in (compared("low", 0.5), compared("low", 0.5, requirements=[])):
        heads, *rows = csv_of(_compare_page.html([other, free]), "costs")
        assert heads[1] == "expected error of the best attack (km)"
        assert float(rows[0][1]) == pytest.approx(other.errors["optimal"], rel=1e-6)


@pytest.mark.usefixtures("blank")
def test_costs_in_other_units_are_not_drawn_together():
    low = compared("low", 0.5)
    for other in (compared("worst", 1.5, objective="worst"), compared("squared", 1.5, cost=KM**2)):
        page = _compare_page.html([low, other])
        assert "Cost against privacy" not in page
        assert "text/csv" not in page


def test_maps_of_a_comparison_show_the_numbers_of_their_design_at_its_own_places(monkeypatch):
    pair = md.Domain.from_points([[0.5], [2.0]], ["west", "east"], unit="km")
    elsewhere = compared("elsewhere", 0.5, cost=md.distances.euclidean(LINE, pair), observables=pair)
    designs = [elsewhere, compared("here", 1.5)]
    maps = record_maps(monkeypatch, "mechdesign.report._compare_page")
    data = data_of(_compare_page.html(designs))
    assert sorted(maps) == ["answers", "errors"]
    [first] = [int(one.problem.prior.argmax()) for one in designs[:1]]
    for name, parts in maps.items():
        for one, attributes in zip(designs, parts.values(), strict=True):
            places, values, unit = {
                "answers": (one.problem.observables, one.channel.matrix[first], "%"),
                "errors": (one.problem.secrets, one.per_secret, "km"),
            }[name]
            series, view = data["series"][attributes["data-shows"]], data["views"][attributes["data-side"]]
            assert series["values"] == pytest.approx(values, rel=1e-4), (name, one.name)
            assert (series["unit"], view["size"]) == (unit, len(values)), (name, one.name)
            assert (view["centres"], view["unit"]) == (places.points.tolist(), "km"), (name, one.name)
            assert f"{len(values)} values, the largest" in attributes["aria-label"]
            assert attributes["aria-label"].endswith(f" at {places.labels[int(values.argmax())]}")
            assert attributes["data-hue"] == ("p" if unit == "%" else "e")


@pytest.mark.usefixtures("blank")
def test_names_do_not_become_formulas():
    page = _compare_page.html([compared('=1+1"<b>', 0.5), compared("high", 1.5)])
    assert csv_of(page, "costs")[1][0] == "'=1+1\"<b>"


def test_an_audit_shows_epsilon_by_distance():
    found = md.audit(near(1.0), distance=KM, secrets=LINE)
    heads, *rows = csv_of(_audit_page.page(found), "by-distance")
    assert heads == ["distance (km)", "ordered pairs", "least ε in nats, rounded up"]
    for row in rows:
        [loss] = found.epsilon_by_distance([float(row[0])])
        assert int(row[1]) == loss.pairs > 0
        assert float(row[2]) == pytest.approx(loss.epsilon, rel=1e-6)
        assert float(row[2]) >= loss.epsilon
    assert float(rows[-1][2]) == pytest.approx(max(each.epsilon for each in found.epsilon_by_distance()), rel=1e-6)


def test_an_infinite_epsilon_is_inf_in_the_file():
    found = md.audit([[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]], distance=KM, secrets=LINE)
    page = _audit_page.page(found)
    assert csv_of(page, "by-distance")[-1][2] == "inf"
    assert ">∞</td>" in page
    assert "No finite ε holds at any distance" in page


def test_epsilon_that_is_finite_only_nearby():
    found = md.audit([[0.5, 0.5, 0], [0.4, 0.6, 0], [0, 0.5, 0.5]], distance=KM, secrets=LINE)
    losses = [each for each in found.epsilon_by_distance() if each.pairs]
    assert not math.isinf(losses[0].epsilon)
    said = losses_picture(losses, "km").get_suptitle().replace("\n", " ")
    assert said == "Secrets up to 1.2 km apart need ε = 0.2232; no finite ε holds up to 2.1 km"


def test_audits_without_distances_between_places_have_no_such_figure():
    for options in (
        {"distance": KM},
        {"distance": md.distances.hamming(3), "secrets": LINE},
        {"distance": KM, "secrets": md.Domain.from_labels(["a", "b", "c"])},
        {"distance": [[0, 5, 1], [5, 0, 2], [1, 2, 0]], "secrets": LINE},
    ):
        assert "by-distance" not in _audit_page.page(md.audit(near(1.0), **options)), options
