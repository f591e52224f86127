"""A design whose bracket is wide warns, whatever stopped it; a narrow one does not."""

from __future__ import annotations

import warnings

import pytest

import mechdesign as md
from mechdesign.errors import BracketWarning

DOMAIN = md.Domain.grid(columns=5, rows=4, width=5.0, height=4.0)
DISTANCE = md.distances.euclidean(DOMAIN)
PROBLEM = md.Problem(
    md.Prior.uniform(20), DISTANCE, [md.MetricPrivacy("0.8", DISTANCE)], secrets=DOMAIN, observables=DOMAIN
)
STOPS = {
    "a time limit": {"time_limit": 1e-6},
    "a time limit of the block method": {"solver": "block", "time_limit": 1e-6},
    "a limit of iterations": {"solver": "highs-simplex", "options": {"simplex_iteration_limit": 5}},
    "a limit of another package": {"solver": "cvxpy", "options": {"max_iter": 1}},
    "near pairs": {"rows": "near"},
}


def test_what_leaves_a_wide_bracket_is_said() -> None:
    for name, asked in STOPS.items():
        with pytest.warns(BracketWarning) as heard:
            made = md.design(PROBLEM, **asked)
        assert made.certificate.relative_gap > 0.02, name
        assert f"{made.certificate.lower_bound:.6g}" in str(heard[0].message), name
        assert len(heard) == 1, name


def test_a_narrow_bracket_and_a_wide_tolerance_are_silent() -> None:
    for asked in ({}, {"rows": "near", "tolerance": 0.05}, {"solver": "highs-simplex", "rows": "reduced"}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            md.design(PROBLEM, **asked)


def test_traces_and_audits_pass_the_warning_on() -> None:
    settings = md.SolveSettings(time_limit=1e-6)
    trace = md.traces.Trace(
        DOMAIN, md.graphs.neighbours8(DOMAIN), 1, md.MarkovChain.from_counts([[1] * 20] * 20), md.Prior.uniform(20),
        mechanism="lp", settings=settings, rng=1,
    )  # fmt: skip
    with pytest.warns(BracketWarning):
        trace.step(3)
