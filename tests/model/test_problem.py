from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.errors import InfeasibleError, InputError
from mechdesign.model._problem import largest_distortion

LINE = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
PRIOR = [0.5, 0.25, 0.25]


@each_row(
    ("change", "path"),
    [
        ({"prior": [0.5, 0.25, 0.2]}, "prior"),
        ({"prior": [0.5, 0.75, -0.25]}, "prior"),
        ({"prior": [0.5, 0.5, np.nan]}, "prior"),
        ({"prior": [0.5, 0.5]}, "cost"),
        ({"cost": -LINE}, "cost"),
        ({"cost": LINE + np.nan}, "cost"),
        ({"cost": LINE + np.inf}, "cost"),
        ({"cost": LINE[0]}, "cost"),
        ({"cost": np.zeros((3, 0))}, "cost"),
        ({"objective": "best"}, "objective"),
        ({"requirements": [md.GraphPrivacy(1, nx.path_graph(4))]}, r"requirements\[0\]"),
        ({"requirements": [md.DistortionPrivacy(1, np.ones((3, 4)))]}, r"requirements\[0\]"),
        ({"requirements": ["metric"]}, r"requirements\[0\]"),
        ({"requirements": md.MetricPrivacy(1, LINE)}, "requirements"),
        ({"secrets": md.Domain.from_labels(["a", "b"])}, "secrets"),
        ({"observables": md.Domain.from_labels(["a", "b"])}, "observables"),
        ({"facts": {"seconds": 1}}, "facts: has an unknown key"),
        ({"facts": ["within"]}, "facts"),
    ],
)
def test_bad_input_is_named(change, path):
    good = {"prior": PRIOR, "cost": LINE, "requirements": [md.MetricPrivacy(1, LINE)]}
    md.Problem(**good)
    with pytest.raises(InputError, match=path):
        md.Problem(**{**good, **change})


def test_a_floor_above_what_the_prior_allows_names_the_maximum():
    # Releasing nothing leaves 0.25·1 + 0.25·2 = 0.75 for the estimate 0, and 0.5·1 + 0.25·1 = 0.75 for 1.
    assert largest_distortion(PRIOR, LINE) == Fraction(3, 4)
    md.Problem(PRIOR, LINE, [md.DistortionPrivacy("0.75", LINE)])
    with pytest.raises(InfeasibleError, match=r"requirements\[1\].minimum.* 0.75"):
        md.Problem(PRIOR, LINE, [md.DistortionPrivacy(0.1, LINE), md.DistortionPrivacy("0.75000000000000000001", LINE)])


def test_largest_distortion_is_exact_for_the_stored_numbers():
    prior = np.array([0.1, 0.9])
    error = np.array([[0, 0.3], [0.7, 0]])
    assert largest_distortion(prior, error) == min(Fraction(0.9) * Fraction(0.3), Fraction(0.1) * Fraction(0.7))


def test_values_are_frozen_copies():
    cost = LINE.copy()
    problem = md.Problem(PRIOR, cost, [])
    cost[0, 0] = 9
    assert problem.cost[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        problem.cost[0, 0] = 1


def test_a_prior_value_is_accepted():
    assert md.Problem(md.Prior.uniform(3), LINE, []).prior[0] == pytest.approx(1 / 3)
