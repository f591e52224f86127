"""Lazy rows end at the requested gap, even if some rows are still violated."""

from __future__ import annotations

import numpy as np
import pytest

import mechdesign as md


def scattered(n: int) -> md.Problem:
    rng = np.random.default_rng(n)
    distance = md.distances.euclidean(4 * rng.random((n, 2)))
    return md.Problem(rng.dirichlet(np.ones(n)), distance, [md.MetricPrivacy("1", distance)])


@pytest.mark.parametrize("n", [12, 16])
def test_a_loose_gap_needs_no_more_rounds_and_is_reached(n: int) -> None:
    problem = scattered(n)
    loose, tight = (
        md.design(problem, solver="highs-ipx", rows="lazy", tolerance=tolerance) for tolerance in (0.1, 1e-6)
    )
    assert loose.certificate.relative_gap <= 0.1
    assert tight.certificate.relative_gap <= 1e-6
    assert (loose.summary.rounds or 0) < (tight.summary.rounds or 0)
    assert loose.certificate.lower_bound <= tight.certificate.expected_cost
