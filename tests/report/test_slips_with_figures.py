"""Figures say what is wrong with what they are to show."""

import pytest

import mechdesign as md
from mechdesign.errors import InputError

CITY = md.Domain.grid(2, 1, 2.0, 1.0)
APART = md.distances.euclidean(CITY)


def test_edges_are_a_graph_or_pairs_of_secrets():
    assert md.figures.graph(CITY, md.graphs.line(2)).axes
    assert md.figures.graph(CITY, [(0, 1)]).axes
    with pytest.raises(InputError, match=r"edges\[0\]: joins an unknown node; found \(1, 2\)"):
        md.figures.graph(CITY, [(1, 2)])


def test_a_true_trace_is_as_long_as_the_released_one():
    with pytest.raises(InputError, match="truth: has another number of steps; found 3; must be 2"):
        md.figures.trace(CITY, [0, 1], [0, 1, 1])


def test_answers_are_shown_for_a_secret_at_least():
    made = md.design(md.Problem([0.5, 0.5], APART, [md.MetricPrivacy(1, APART)], secrets=CITY, observables=CITY))
    with pytest.raises(InputError, match="count: is too small; found 0"):
        md.figures.answers(made, 0)
    with pytest.raises(InputError, match=r"channel: is a design; .*design\.channel"):
        md.attack.optimal(made, [0.5, 0.5], APART)
