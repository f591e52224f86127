import networkx as nx
import numpy as np
import pytest

import mechdesign as md
from mechdesign.synthesis._normal import normalise

LINE = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))


def problem(*requirements, n=4, cost=None):
    return md.Problem(np.full(n, 1 / n), np.ones((n, 2)) if cost is None else cost, requirements)


def test_the_least_exponent_wins_and_is_owned():
    form = normalise(
        problem(md.MetricPrivacy(1, LINE), md.ThresholdPrivacy("1/2", LINE, 1), md.GraphPrivacy(2, nx.path_graph(4)))
    )
    assert form.groups == 4
    np.testing.assert_array_equal(np.diag(form.exponents), np.inf)
    assert form.exponents[0, 1] == 0.5
    assert form.owner[0, 1] == 1
    assert form.exponents[0, 3] == 3.0
    assert form.owner[0, 3] == 0


def test_without_a_requirement_nothing_is_bounded():
    form = normalise(problem())
    assert np.isinf(form.exponents).all()
    assert (form.owner == -1).all()


def test_secrets_at_distance_zero_become_one():
    twins = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0.0]])
    form = normalise(problem(md.MetricPrivacy(1, twins), cost=np.arange(8.0).reshape(4, 2)))
    np.testing.assert_array_equal(form.group, [0, 0, 1, 2])
    np.testing.assert_array_equal(form.gather(np.arange(8.0).reshape(4, 2)), [[2, 4], [4, 5], [6, 7]])
    assert form.exponents[0, 1] == 1
    assert form.source[0, 1] in (0, 1)
    assert form.target[0, 1] == 2
    assert [tie[:3] for tie in form.ties] == [(1, 0, 0)]


def test_a_zero_in_one_direction_is_enough():
    with pytest.warns(md.errors.MetricWarning):
        one_way = md.MetricPrivacy(1, np.array([[0, 5.0], [0, 0]]))
    form = normalise(problem(one_way, n=2))
    np.testing.assert_array_equal(form.group, [0, 0])
    assert [tie[:3] for tie in form.ties] == [(1, 0, 0)]


def test_chains_of_ties_are_listed_from_the_leaves():
    chain = np.full((4, 4), np.inf)
    for a, b in ((0, 2), (2, 1), (1, 3)):
        chain[a, b] = chain[b, a] = 0
    np.fill_diagonal(chain, 0)
    with pytest.warns(md.errors.MetricWarning):
        form = normalise(problem(md.MetricPrivacy(1, chain)))
    assert form.groups == 1
    assert [tie[:2] for tie in form.ties] == [(3, 1), (1, 2), (2, 0)]


def test_floors_of_zero_are_dropped_and_others_weighted():
    form = normalise(problem(md.DistortionPrivacy(0, LINE), md.DistortionPrivacy(1, LINE)))
    assert [floor.requirement for floor in form.floors] == [1]
    np.testing.assert_allclose(form.floors[0].error, LINE / 4)
