from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from leakage_brute import best_of, close, subset_points

from mechdesign import leakage
from mechdesign.leakage._correlations import Candidates, Varying
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._recursion import User, windows

# The formulas hold for any two matrices, also for those that no chain has.
pytestmark = pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "leakage.json").read_text())
STRONG = [[0.8, 0.2], [0.0, 1.0]]
MILD = [[0.8, 0.2], [0.2, 0.8]]
OTHER = [[0.8, 0.2], [0.1, 0.9]]
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]


def matrix(rows: list[list[str]] | None) -> np.ndarray | None:
    return None if rows is None else np.array([[float(Fraction(value)) for value in row] for row in rows])


def test_reference_series() -> None:
    assert REFERENCE["series"]
    for entry in REFERENCE["series"]:
        epsilons = [float(value) for value in entry["eps"]]
        before, after = matrix(entry["PB"]), matrix(entry["PF"])
        for name, values in (
            ("BPL", leakage.backward(epsilons, before)),
            ("FPL", leakage.forward(epsilons, after)),
            ("TPL", leakage.temporal(epsilons, before, after)),
        ):
            row = f"{entry['name']} {name}"
            assert all(close(value, float(truth)) for value, truth in zip(values, entry[name], strict=True)), row


def test_no_correlation_leaks_the_budget() -> None:
    epsilons = [0.1, 0.7, 0.3]
    assert leakage.temporal(epsilons).tolist() == epsilons
    assert leakage.backward(epsilons, None).tolist() == epsilons


def test_identity_adds_everything_up() -> None:
    epsilons = [0.5, 0.25, 0.125]
    assert leakage.backward(epsilons, IDENTITY).tolist() == [0.5, 0.75, 0.875]
    assert leakage.temporal(epsilons, IDENTITY, IDENTITY).tolist() == [0.875] * 3


@settings(max_examples=30)
@given(st.lists(st.floats(0, 3), min_size=1, max_size=12))
def test_forward_is_backward_in_reverse(epsilons: list[float]) -> None:
    np.testing.assert_array_equal(leakage.forward(epsilons, MILD), leakage.backward(epsilons[::-1], MILD)[::-1])


@settings(max_examples=30)
@given(st.lists(st.floats(0, 3), min_size=1, max_size=12))
def test_leakage_is_between_the_budget_and_the_sum(epsilons: list[float]) -> None:
    total = leakage.temporal(epsilons, STRONG, MILD)
    assert (total >= np.array(epsilons) * (1 - 1e-15)).all()
    assert (total <= math.fsum(epsilons) * (1 + 1e-14) + 1e-320).all()


def test_varying_matrices() -> None:
    epsilons = [0.3, 0.4, 0.5]
    L, M = LossFunction(STRONG), LossFunction(MILD)
    for found, expected in (
        (leakage.backward(epsilons, Varying([STRONG, MILD])), [0.3, L(0.3) + 0.4, M(L(0.3) + 0.4) + 0.5]),
        (leakage.forward(epsilons, Varying([L, M])), [L(M(0.5) + 0.4) + 0.3, M(0.5) + 0.4, 0.5]),
        (leakage.backward(epsilons, Varying([None, MILD])), [0.3, 0.4, M(0.4) + 0.5]),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        assert (found >= expected).all()
    same = Varying([STRONG] * 2)
    assert leakage.backward(epsilons, same).tolist() == leakage.backward(epsilons, STRONG).tolist()


def test_candidates_are_the_worst_of_each() -> None:
    epsilons = np.full(6, 0.4)
    options = [MILD, None, Varying([STRONG] * 5)]
    each = [leakage.backward(epsilons, option) for option in options]
    np.testing.assert_array_equal(leakage.backward(epsilons, Candidates(options)), np.max(each, axis=0))


def test_users_by_equation_10() -> None:
    epsilons = np.full(5, 0.3)
    population = [User(STRONG, None, name="a"), User(None, STRONG), User(MILD, MILD, epsilons=np.full(5, 0.1))]
    found = leakage.users(epsilons, population)
    assert found.of_user.shape == (3, 5)
    np.testing.assert_array_equal(found.of_user[0], leakage.backward(epsilons, STRONG))
    np.testing.assert_array_equal(found.of_user[2], leakage.temporal(np.full(5, 0.1), MILD, MILD))
    np.testing.assert_array_equal(found.overall, found.of_user.max(axis=0))
    assert found.worst.tolist() == [1, 1, 0, 0, 0]
    # Equation (11) would add the maxima of different users.
    overstated = leakage.backward(epsilons, STRONG) + leakage.forward(epsilons, STRONG) - epsilons
    assert (found.overall[1:-1] < overstated[1:-1]).all()


def test_infinite_horizon() -> None:
    total = leakage.supremum(0.1, MILD, OTHER)
    assert total == LossFunction(MILD).supremum(0.1) + LossFunction(OTHER).supremum(0.1) - 0.1
    assert leakage.supremum(0.1) == 0.1
    assert leakage.supremum(0.3, STRONG) == math.inf
    assert leakage.supremum(0.1, Candidates([MILD, OTHER])) == max(leakage.supremum(0.1, P) for P in (MILD, OTHER))
    long = leakage.temporal(np.full(400, 0.1), MILD, OTHER)
    assert long.max() == pytest.approx(total, rel=1e-12)


def test_every_window_is_the_definition() -> None:
    """All windows of random budgets under random chains, from 60 digits of the loss over subsets of columns."""
    rng = np.random.default_rng(8)
    for releases, n in ((1, 2), (2, 3), (4, 2), (6, 3)):
        epsilons = rng.uniform(0.05, 0.9, releases).tolist()
        before, after = (rng.dirichlet(np.full(n, 0.7), n) for _ in range(2))
        carried = []
        for budgets, points in ((epsilons, subset_points(before)), (epsilons[::-1], subset_points(after))):
            amounts = [0.0]
            for epsilon in budgets[:-1]:
                amounts.append(best_of(points, amounts[-1] + epsilon))
            carried.append(amounts)
        earlier, later = carried[0], carried[1][::-1]
        largest = {}
        for start, stop in itertools.combinations_with_replacement(range(releases), 2):
            truth = earlier[start] + sum(epsilons[start : stop + 1]) + later[stop]
            assert leakage.window(epsilons, start, stop, before, after) == pytest.approx(truth, rel=1e-12)
            largest.setdefault(stop - start + 1, []).append(truth)
        for width, truths in largest.items():
            assert windows(epsilons, width, before, after) == pytest.approx(truths, rel=1e-12)


def test_truth_stays_below_the_recursion() -> None:
    """Leakage computed from its definition, over all outputs of binary mechanisms, against the recursion."""
    P, epsilon = np.array([[0.0, 1.0], [0.8, 0.2]]), 0.5
    bound = leakage.backward(np.full(6, epsilon), P)[-1]
    high = math.exp(epsilon)
    truth = 0.0
    for outputs in np.ndindex(*(2,) * 6):
        # Likelihood of outputs 0..t given the state at t, one bit randomised at ratio e^ε.
        given_state = np.where(np.arange(2) == outputs[0], high, 1.0)
        for output in outputs[1:]:
            given_state = (P @ given_state) * np.where(np.arange(2) == output, high, 1.0)
        truth = max(truth, abs(math.log(given_state[0] / given_state[1])))
    assert truth == pytest.approx(1.81, abs=0.005)
    assert bound == pytest.approx(2.27, abs=0.005)
