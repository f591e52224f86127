"""The page of an audit: its numbers on the page and as CSV."""

from __future__ import annotations

import csv
import html as markup
import io
import re
from urllib.parse import unquote

import numpy as np
import pytest

import mechdesign as md
from mechdesign.report import _audit_page

LINE = md.Domain.from_points([[0.0], [1.0], [3.0]], unit="km")
KM = md.distances.euclidean(LINE)


def csv_of(page: str, name: str) -> list[list[str]]:
    """Return the cells of the CSV file that a page contains."""
    [address] = re.findall(rf'href="data:text/csv;charset=utf-8,([^"]*)" download="{name}.csv"', page)
    return list(csv.reader(io.StringIO(unquote(markup.unescape(address)))))


def near(epsilon: float) -> np.ndarray:
    weights = np.exp(-epsilon / 2 * KM)
    return weights / weights.sum(axis=1, keepdims=True)


def test_an_audit_shows_epsilon_by_distance():
    found = md.audit(near(1.0), distance=KM, secrets=LINE)
    heads, *rows = csv_of(_audit_page.html(found), "by-distance")
    assert heads == ["distance (km)", "ordered pairs", "least ε in nats, rounded up"]
    for row in rows:
        [loss] = found.epsilon_by_distance([float(row[0])])
        assert int(row[1]) == loss.pairs > 0
        assert float(row[2]) == pytest.approx(loss.epsilon, rel=1e-6)
        assert float(row[2]) >= loss.epsilon
    assert float(rows[-1][2]) == pytest.approx(max(each.epsilon for each in found.epsilon_by_distance()), rel=1e-6)


def test_colours_begin_at_zero_if_all_secrets_need_almost_the_same_epsilon():
    town = md.Domain.grid(4, 3, 4.0, 3.0, unit="km")
    distance = md.distances.euclidean(town)
    made = md.design(md.Problem(md.Prior.uniform(12), distance, [md.MetricPrivacy(1, distance)], secrets=town))
    truncated = md.mechanisms.PlanarLaplace(1.0, town).density()
    for matrix, low in ((made.channel.matrix, 0.0), (truncated, None)):
        found = md.audit(matrix, distance, secrets=town)
        [image] = _audit_page.pairs_figure(found, found.worst_pairs(5)).axes[0].images
        assert image.norm.vmin == pytest.approx(found.exposure.min() if low is None else low)


def test_secrets_at_distance_0_with_different_rows_have_the_darkest_colour():
    town = md.Domain.grid(2, 2, 2.0, 2.0)
    distance = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]])
    for last, one in ((0.55, False), (0.5, True)):
        found = md.audit([[0.5, 0.5], [0.4, 0.6], [0.5, 0.5], [1 - last, last]], distance, secrets=town)
        pairs = found.worst_pairs(5)
        assert np.isinf(found.exposure).tolist() == [True, True, not one, not one]
        figure = _audit_page.pairs_figure(found, pairs)
        assert figure.axes[0].images[0].get_array().tolist() == [[pairs[0].epsilon] * 2, [pairs[0].epsilon] * 2]
        assert not figure.legends
        assert "The darkest colour also stands for secrets whose rows differ" in _audit_page.html(found)
    assert "darkest" not in _audit_page.html(md.audit(np.eye(4), md.distances.hamming(4), secrets=town))


def test_an_infinite_epsilon_is_inf_in_the_file():
    found = md.audit([[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]], distance=KM, secrets=LINE)
    page = _audit_page.html(found)
    assert csv_of(page, "by-distance")[-1][2] == "inf"
    assert ">∞</td>" in page


def test_audits_without_distances_between_places_have_no_such_figure():
    for options in (
        {"distance": KM},
        {"distance": md.distances.hamming(3), "secrets": LINE},
        {"distance": KM, "secrets": md.Domain.from_labels(["a", "b", "c"])},
        {"distance": [[0, 5, 1], [5, 0, 2], [1, 2, 0]], "secrets": LINE},
    ):
        assert "by-distance" not in _audit_page.html(md.audit(near(1.0), **options)), options
