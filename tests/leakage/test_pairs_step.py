"""T(B) of one step, pair by pair: exact rays, linear-fractional programs, closed forms, and what must hold of it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sparse
from pairs_oracle import exact_leakage, leakage_by_rays

import mechdesign as md
from mechdesign.errors import InputError, SolverError
from mechdesign.leakage import LossFunction, OpenChain, _transport, cao2019
from mechdesign.leakage._bounds import close
from mechdesign.leakage._transport import Rows, enclose, step
from mechdesign.solve._contract import Answer, Options, Status
from mechdesign.solve._fractional import FractionalProgram, solve_fractional
from mechdesign.solve._linear import LinearProgram

INF = math.inf
LAZY = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
LINE = np.abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)


def random_step(rng: np.random.Generator, n: int, nats: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a stochastic matrix, a third of them with zeros, and one-way bounds up to a number of nats, closed."""
    P = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 3.0])), n)
    if rng.random() < 1 / 3:
        P[rng.random((n, n)) < 0.4] = 0
    P[P.sum(axis=1) == 0, 0] = 1
    bounds = rng.random((n, n)) * nats
    np.fill_diagonal(bounds, 0)
    return P / P.sum(axis=1, keepdims=True), close(bounds)


def ends(P: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    upper, lower = step(Rows(P), bounds)
    finite = np.isfinite(upper)
    assert (np.isfinite(lower) == finite).all()
    gap = upper[finite] - lower[finite]
    assert (gap >= 0).all()
    assert (gap <= 1e-9 * np.maximum(upper[finite], 1)).all()
    return upper, lower


@pytest.mark.parametrize("seed", range(4))
def test_encloses_the_exact_value_at_extreme_rays(seed: int) -> None:
    """Rational gains stand for e^B; B is rounded to nearest, so T moves by some units in the last place."""
    rng = np.random.default_rng(seed)
    n = 3 + seed % 2
    weights = rng.integers(0, 6, (n, n))
    weights[:, 0] += 1
    P = [[Fraction(int(each), int(row.sum())) for each in row] for row in weights]
    gains = [[Fraction(1) if i == j else Fraction(int(rng.integers(4, 60)), 4) for j in range(n)] for i in range(n)]
    for k, i, j in itertools.product(range(n), repeat=3):
        gains[i][j] = min(gains[i][j], gains[i][k] * gains[k][j])
    exact = exact_leakage(P, gains)
    bounds = np.array([[math.log(each) for each in row] for row in gains])
    upper, lower = ends(np.array([[float(each) for each in row] for row in P]), bounds)
    for s, t in itertools.permutations(range(n), 2):
        truth = math.log(exact[s][t])
        assert lower[s, t] - 1e-14 <= truth <= upper[s, t] + 1e-14, (s, t)
        assert upper[s, t] - truth <= 1e-12


@pytest.mark.parametrize("nats", [1e-6, 1.0, 12.0, 80.0, 700.0])
def test_rays_of_any_number_of_nats(nats: float) -> None:
    rng = np.random.default_rng(7)
    for _ in range(3):
        P, bounds = random_step(rng, 4, nats)
        P = np.maximum(P, 1e-3)
        P /= P.sum(axis=1, keepdims=True)
        upper, lower = ends(P, bounds)
        truth = leakage_by_rays(P, bounds)
        size = 1 + bounds.max()
        assert (lower <= truth + 1e-13 * size).all()
        assert (truth <= upper + 1e-13 * size).all()


def test_where_a_solver_with_its_own_scaling_was_wrong() -> None:
    """At 9 nats a step HiGHS said −0.6931 for pair (2, 1); its dual said 0.6929 for the pair (1, 0)."""
    upper, lower = ends(LAZY, 9 * LINE)
    assert upper[2, 1] == pytest.approx(math.log(3), abs=1e-3)
    assert upper[2, 1] == pytest.approx(leakage_by_rays(LAZY, 9 * LINE)[2, 1], abs=1e-12)
    assert lower[1, 0] > 0.6930


def fraction(P: np.ndarray, s: int, t: int, bounds: np.ndarray) -> float:
    """Return T(B)(s, t) by a linear-fractional program over the whole cone, as Cao et al. (2019) do for one ε."""
    n = len(P)
    pairs = list(itertools.permutations(range(n), 2))
    matrix = np.zeros((len(pairs), n))
    for row, (j, k) in enumerate(pairs):
        matrix[row, j], matrix[row, k] = 1.0, -math.exp(bounds[j, k])
    below, above = np.full(len(pairs), -INF), np.zeros(len(pairs))
    program = FractionalProgram(P[s], P[t], sparse.csr_array(matrix), below, above, np.full(n, 1e-9), np.ones(n))
    return math.log(solve_fractional(program, "charnes-cooper", "highs", Options(feasibility=1e-10)).value)


def test_equals_the_linear_fractional_program() -> None:
    rng = np.random.default_rng(3)
    for nats in (0.1, 1.0, 3.0, 10.0):
        P, bounds = random_step(rng, 3, nats)
        upper, _ = ends(P, bounds)
        for s, t in itertools.permutations(range(3), 2):
            assert upper[s, t] == pytest.approx(fraction(P, s, t, bounds), abs=2e-6), (nats, s, t)


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 5.0, 10.0])
def test_one_bound_for_all_pairs_is_algorithm_1_of_each_pair(alpha: float) -> None:
    rng = np.random.default_rng(11)
    P, _ = random_step(rng, 4, 1.0)
    bounds = alpha * (1 - np.eye(4))
    loss = LossFunction(P)
    found = loss.pairs(bounds)
    A = math.expm1(alpha)
    sets = list(itertools.product((0.0, 1.0), repeat=4))
    for s, t in itertools.permutations(range(4), 2):
        truth = max(math.log((P[s] @ each * A + 1) / (P[t] @ each * A + 1)) for each in sets)
        assert found[s, t] == pytest.approx(truth, abs=1e-12)
        assert found[s, t] == pytest.approx(md.leakage.fractional(P[s], P[t], alpha), abs=1e-6)
    assert found.max() == pytest.approx(cao2019.algorithm1(P, alpha), abs=1e-12)
    assert loss(alpha) <= found.max() * (1 + 1e-15)


def test_monotone_subadditive_and_unchanged_by_renaming() -> None:
    rng = np.random.default_rng(5)
    for nats in (0.5, 5.0, 50.0):
        P, bounds = random_step(rng, 5, nats)
        upper, lower = ends(P, bounds)
        more, _ = ends(P, close(bounds * rng.uniform(1, 2, bounds.shape)))
        assert (lower <= more).all(), "monotone"
        for r in range(5):
            assert (lower <= upper[:, [r]] + upper[[r]]).all(), "subadditive"
        order = rng.permutation(5)
        renamed, _ = ends(P[order][:, order], bounds[order][:, order])
        assert np.allclose(renamed, upper[order][:, order], rtol=1e-9, atol=1e-11, equal_nan=True), "renamed"


def test_closing_changes_nothing_and_sparse_matrices_are_as_dense_ones() -> None:
    loose = np.array([[0, 1, 9.0], [1, 0, 1], [INF, 1, 0]])
    found = LossFunction(LAZY).pairs(loose)
    assert (found == LossFunction(LAZY).pairs(close(loose))).all()
    assert (found == LossFunction(sparse.csr_array(LAZY)).pairs(loose)).all()


def test_exact_where_no_sum_is_needed() -> None:
    bounds = np.array([[0, 0.1, 0.3], [0.2, 0, 0.25], [INF, INF, 0]])
    unit = np.eye(3)[[1, 2, 0]]
    assert (LossFunction(np.eye(3)).pairs(bounds) == bounds).all(), "staying passes everything on"
    assert (LossFunction(unit).pairs(bounds) == bounds[[1, 2, 0]][:, [1, 2, 0]]).all(), "a cycle renames"
    assert (LossFunction(LAZY[[0, 0, 0]]).pairs(bounds) == 0).all(), "equal rows pass nothing on"
    assert (LossFunction([[1.0]]).pairs([[0]]) == 0).all(), "one state"
    assert (LossFunction(LAZY).pairs(np.zeros((3, 3))) == 0).all(), "nothing was known"


def test_infinite_bounds_pass_only_where_a_state_has_no_bound() -> None:
    apart = np.array([[0, INF, INF], [INF, 0, 1], [INF, 1, 0]])
    found = LossFunction([[0.5, 0.5, 0], [0.25, 0.75, 0], [0, 0, 1]]).pairs(apart)
    assert np.isinf(found).tolist() == [[False, False, True], [False, False, True], [False, False, False]]
    # Of the two blocks x_0 and x_1, either may vanish: 0.5/0.25 and 0.75/0.5.
    assert found[0, 1] == pytest.approx(math.log(2), abs=1e-12)
    assert found[1, 0] == pytest.approx(math.log(1.5), abs=1e-12)


def test_any_row_is_worst_as_a_unit_row() -> None:
    rng = np.random.default_rng(2)
    P, bounds = random_step(rng, 4, 3.0)
    P[[1, 3]] = 0
    found = LossFunction(OpenChain(P)).pairs(bounds)
    worst = np.zeros((4, 4))
    for first, second in itertools.product(range(4), repeat=2):
        P[1], P[3] = np.eye(4)[first], np.eye(4)[second]
        worst = np.maximum(worst, step(Rows(P), bounds)[0])
    assert np.allclose(found, worst, rtol=1e-9, atol=1e-11)
    assert found[1, 3] == found[3, 1] == bounds.max()
    for _ in range(20):
        P[1], P[3] = rng.dirichlet(np.full(4, 0.3), 2)
        assert (step(Rows(P), bounds)[1] <= found).all()


def test_rows_are_divided_by_their_sums() -> None:
    off = LAZY * np.array([[1 + 9e-10], [1], [1 - 9e-10]])
    assert LossFunction(off).pairs(LINE) == pytest.approx(LossFunction(LAZY).pairs(LINE), abs=1e-13)
    assert step(Rows(off), LINE)[0] == pytest.approx(step(Rows(LAZY), LINE)[0], abs=1e-13)


def test_tiny_probabilities_and_tiny_bounds() -> None:
    P = np.array([[1 - 1e-12, 1e-12, 0], [1e-300, 1, 0], [0.5, 0.5 - 1e-16, 1e-16]])
    for bounds in (LINE, 700 * LINE / 2, 1e-300 * LINE, 1e-9 * LINE):
        upper, _ = ends(P, bounds)
        assert (upper <= bounds.max()).all()
    upper, _ = ends(P, 700 * LINE / 2)
    # All of x at state 0, e^350 times that at state 1: ln (e^350 + 1e-12)/(1e-300 e^350 + 1), at most 350.
    assert upper[0, 1] == pytest.approx(350, abs=1e-9)


@pytest.mark.parametrize("nats", [1e6, 1e17, 1e299])
def test_bounds_of_any_size_cost_no_accuracy(nats: float) -> None:
    """The largest ratios are those of single entries, since all other terms are below e^−500000 of them."""
    upper, lower = ends(LAZY, nats * LINE)
    truth = np.log([[1, 3, 6], [2, 1, 2], [6, 3, 1]])
    assert (lower <= truth).all()
    assert upper == pytest.approx(truth, abs=1e-11)
    limit = md.leakage.supremum(nats * LINE, LAZY)
    assert limit.bounds == pytest.approx(nats * LINE + truth, rel=1e-14)
    assert (limit.lower <= limit.bounds).all()


Numbers = np.ndarray | None


def lying(x: Numbers, dual: Numbers, right: bool = True):
    """Return a registry of solvers that answer any program with given numbers, repeated to the size if `right`."""

    class Liar:
        def load(self):
            def solve(program: LinearProgram, options: Options, start: object = None) -> Answer:
                numbers = [
                    None if each is None else np.resize(each, size if right else size + 1)
                    for each, size in ((x, program.columns), (dual, program.rows))
                ]
                return Answer(Status.OPTIMAL, *numbers, 0, "optimal", "liar")

            return solve

    return lambda name: Liar()


LIES: dict[str, tuple[Numbers, Numbers, bool]] = {
    "nothing": (None, None, True),
    "zeros": (np.zeros(1), np.zeros(1), True),
    "not numbers": (np.array([np.nan]), np.array([np.nan]), True),
    "infinite": (np.array([INF]), np.array([INF, -INF]), True),
    "huge": (np.array([1e308]), np.array([1e308, -1e308]), True),
    "tiny": (np.array([5e-324]), np.array([5e-324, -5e-324]), True),
    "another size": (np.ones(1), np.ones(1), False),
    "random": (np.random.default_rng(0).normal(size=97), np.random.default_rng(1).normal(size=89), True),
}


@pytest.mark.parametrize("lie", LIES)
def test_no_number_of_a_solver_is_believed(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a solver says, both ends hold; if they are apart, the error names the pair."""
    rng = np.random.default_rng(4)
    P, bounds = random_step(rng, 4, 8.0)
    upper, lower = ends(P, bounds)
    monkeypatch.setattr(_transport, "find", lying(*LIES[lie]))
    with pytest.raises(SolverError, match="the leakage of states 0 and 1 lies between"):
        enclose(Rows(P), np.array([0, 2]), np.array([1, 3]), bounds)
    monkeypatch.setattr(_transport, "_GAP", INF)
    above, below = step(Rows(P), bounds)
    assert (above >= lower).all()
    assert (below <= upper).all()
    assert (below <= above).all()


def test_a_function_without_its_matrix_has_no_pairs() -> None:
    loss = LossFunction.from_lines(3, "0" * 64, list(LossFunction(LAZY).lines))
    with pytest.raises(InputError, match=r"^loss: was made from lines, without its matrix.*LossFunction\(P\)"):
        loss.pairs(LINE)
    with pytest.raises(InputError, match=r"^bounds: has another number of states; found 2; must be 3"):
        LossFunction(LAZY).pairs([[0, 1], [1, 0]])
