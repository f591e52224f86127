"""Solvers stop at the requested gap, and loose gaps save iterations."""

import math

import numpy as np
import pytest

import mechdesign as md
from mechdesign.synthesis._normal import LARGEST_ROW_EXPONENT, VACUOUS


def problem(k, floor=False):
    domain = md.Domain.grid(k, k, float(k), float(k))
    d = md.distances.euclidean(domain)
    weights = np.arange(k * k) % 4 + 1.0
    requirements = [md.MetricPrivacy(0.6, d)]
    if floor:
        requirements.append(md.DistortionPrivacy("1.1", d))
    return md.Problem(weights / weights.sum(), 1 - np.eye(k * k) if floor else d, requirements)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "rows", "k"), [("highs-ipx", "lazy", 5), ("highs-pdlp", "all", 4), ("cvxpy", "all", 3)]
)
def test_row_solvers_get_no_tighter_tolerance_than_needed(solver, rows, k):
    loose, tight = (md.design(problem(k), solver=solver, tolerance=gap, rows=rows) for gap in (1e-2, 1e-7))
    assert loose.certificate.relative_gap <= 1e-2
    assert tight.certificate.relative_gap <= 1e-7
    assert loose.summary.iterations < tight.summary.iterations


def test_decomposition_ends_at_the_requested_gap():
    d = md.distances.euclidean(md.Domain.grid(6, 1, 6.0, 1.0))
    cost = np.where(np.equal.outer(np.arange(6) // 3, np.arange(6) // 3), d, np.inf)
    graph = md.GraphPrivacy(1, md.graphs.from_edges(6, [(0, 1), (1, 2), (3, 4), (4, 5)]))
    prior = [0.3, 0.2, 0.1, 0.1, 0.1, 0.2]
    asked = md.Problem(prior, cost, [graph, md.DistortionPrivacy("0.4", d)])
    loose, tight = (md.design(asked, tolerance=gap) for gap in (1e-1, 1e-9))
    assert loose.certificate.relative_gap <= 1e-1
    assert tight.certificate.relative_gap <= 1e-9
    assert loose.summary.rounds <= tight.summary.rounds


def test_the_limits_on_exponents_follow_from_the_bits_of_a_channel():
    assert math.isclose(math.exp(VACUOUS), 2.0**62)
    assert LARGEST_ROW_EXPONENT == 40.0
    assert 2.0**57 < math.exp(LARGEST_ROW_EXPONENT) <= 2.0**58
