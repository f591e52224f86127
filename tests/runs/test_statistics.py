"""Means and profiles against closed forms."""

import math

import numpy as np
import pytest

from mechdesign.runs._profile import html
from mechdesign.runs._scores import compute_shifted_mean, performance_profile, scores


def row(solver: str, n: int, seconds: float, **others: object) -> dict[str, object]:
    plain = {"claimed": "optimal", "certified": "optimal", "rounded": "optimal", "ended": "done", "cost": 1.0}
    about = {"family": "grid", "n": n, "seed": 0, "solver": solver}
    times = {"build_s": 0.0, "solve_s": seconds, "certify_s": 0.0}
    judged = {"tight_epsilon": 0.6, "cost_returned": 1.0, "relative_gap": 0.0, "peak_mb": 100.0}
    return about | times | plain | judged | others


TIMEOUT = {"claimed": "timeout", "certified": "timeout", "rounded": "timeout", "ended": "time"}
ROWS = [
    row("auto", 4, 1.0),
    row("auto", 9, 3.0),
    row("other", 4, 2.0, certified="not-private", tight_epsilon=math.inf),
    row("other", 9, 10.0, **TIMEOUT, cost=None, relative_gap=None),
]


def test_shifted_geometric_mean():
    assert compute_shifted_mean([1.0, 3.0]) == pytest.approx(8**0.5 - 1)
    assert compute_shifted_mean([5.0]) == pytest.approx(5.0)
    assert math.isnan(compute_shifted_mean([]))
    assert compute_shifted_mean([2.0, 8.0], shift=0.0) == pytest.approx(4.0)


def test_scores_count_failures_at_the_limit_and_name_what_is_not_private():
    found = scores(ROWS, 10.0)
    assert list(found) == ["auto", "other"]
    other = found["other"]
    assert (other.runs, other.solved, other.claimed, other.not_private, other.wrong) == (2, 1, 1, 1, 0)
    assert other.mean == pytest.approx(2.0)
    assert other.censored_mean == pytest.approx((3 * 11) ** 0.5 - 1)


def test_scores_tell_apart_what_was_said_what_was_proved_and_what_was_solved():
    rows = [
        row("auto", 4, 1.0),
        row("auto", 9, 3.0, claimed="feasible", certified="feasible"),
        row("auto", 16, 5.0, claimed="feasible", certified="feasible", rounded="feasible"),
        row("auto", 25, 7.0, certified="feasible", rounded="feasible"),
        row("auto", 36, 9.0, certified="not-private", rounded="feasible"),
        row("auto", 49, 2.0, certified="timeout"),
        row("auto", 64, 10.0, **TIMEOUT),
    ]
    found = scores(rows, 10.0)["auto"]
    assert (found.runs, found.solved, found.claimed, found.not_private, found.wrong) == (7, 3, 4, 1, 1)
    assert found.mean == pytest.approx((2 * 4 * 3) ** (1 / 3) - 1)
    assert found.censored_mean == pytest.approx((2 * 4 * 3 * 11**4) ** (1 / 7) - 1)


def test_the_profile_is_that_of_dolan_and_more():
    profile = performance_profile(ROWS)
    np.testing.assert_allclose(profile["auto"], [1.0, 1.0])
    np.testing.assert_allclose(profile["other"], [2.0, math.inf])


def test_what_nobody_solved_is_left_out_of_the_profile():
    rows = [row("auto", 4, 1.0), row("auto", 9, 1.0, **TIMEOUT), row("other", 9, 1.0, **TIMEOUT)]
    assert {name: ratios.tolist() for name, ratios in performance_profile(rows).items()} == {"auto": [1.0]}


def test_the_page_says_who_is_fastest():
    every = "solvers solve all problems that they are given and that some solver solves."
    for rows, said in (
        (ROWS, f"<strong>auto is fastest most often:</strong> 1 of 2 {every}"),
        # The second problem is not given to the second solver, and none solves the third one.
        ([*ROWS[:3], row("auto", 16, 10.0, **TIMEOUT)], f"<strong>auto is fastest most often:</strong> 2 of 2 {every}"),
        (ROWS[3:], "<strong>Nothing was solved.</strong>"),
    ):
        assert said in html(rows, [["solver", "runs"], ["auto", 2]])
