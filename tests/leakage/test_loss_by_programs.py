"""The loss function by linear-fractional programs: proved brackets, against exact rationals and the closed forms."""

from __future__ import annotations

import itertools
import json
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from test_loss import AWKWARD, square

import mechdesign as md
from mechdesign.base._arrays import Floats
from mechdesign.errors import SolverError
from mechdesign.leakage import LossFunction, _loss_by_programs, cao2019, loss_by_programs
from mechdesign.solve import Answer, LinearProgram, Options, Solver, Status, register

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "leakage.json").read_text())
METHODS = ("charnes-cooper", "dinkelbach")
ALPHAS = [0.0, 1e-6, 0.1, 1.0, 5.0, 10.0, 20.0]


def random_rows(n: int, seed: int) -> Floats:
    weights = np.random.default_rng(seed).random((n, n))
    return weights / weights.sum(axis=1, keepdims=True)


def exact_loss(P: Floats, alpha: float) -> float:
    """Return the maximum over the vertices of the box, in 60 digits: every prefix of the columns by falling q_j/d_j."""
    with localcontext() as context:
        context.prec = 60
        factor = Fraction(Decimal(alpha).exp())
        best = Fraction(1)
        for q, d in itertools.permutations(P.tolist(), 2):
            columns = [(Fraction(a), Fraction(b)) for a, b in zip(q, d, strict=True)]
            columns.sort(key=lambda column: (column[1] == 0, column[0] / (column[1] or 1)), reverse=True)
            above, below = (sum(column[side] for column in columns) for side in (0, 1))
            for a, b in columns:
                above, below = above + (factor - 1) * a, below + (factor - 1) * b
                best = max(best, above / below)
        return float((Decimal(best.numerator) / Decimal(best.denominator)).ln())


def assert_brackets(P: Floats, alphas: list[float], method: Any) -> None:
    result = loss_by_programs(P, alphas, method)
    for alpha, lower, upper in zip(alphas, result.values, result.upper, strict=True):
        truth = exact_loss(P, alpha)
        # One unit in the last place of the truth, which is rounded to a float itself.
        assert lower <= truth + 2e-16 * max(truth, 1), alpha
        assert upper >= truth - 2e-16 * max(truth, 1), alpha
        assert upper - lower <= 3e-13, alpha


@pytest.mark.parametrize("method", METHODS)
def test_brackets_contain_the_exact_maximum(method: Any) -> None:
    for name in ("near-tied ratios", "tiny entries", "ties of sums", "disjoint supports", "one state"):
        assert_brackets(AWKWARD[name], [0.0, 1e-6, 1.0, 20.0], method)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_brackets_of_all_awkward_matrices(method: Any) -> None:
    for P in AWKWARD.values():
        assert_brackets(P, ALPHAS, method)


def test_reference_values() -> None:
    assert REFERENCE["loss_function"]
    for entry in REFERENCE["loss_function"]:
        known = [(float(a), float(L)) for a, L in zip(entry["alphas"], entry["L"], strict=True) if float(a) <= 20][::3]
        result = loss_by_programs(square(entry["P"]), [alpha for alpha, _ in known])
        assert np.abs(result.values - [L for _, L in known]).max() <= 1e-13, entry["name"]


@pytest.mark.parametrize("method", METHODS)
def test_programs_for_all_pairs_agree_with_algorithms_1_3_and_5(method: Any) -> None:
    assert_agreement(random_rows(4, 1), [0.1, 5.0], method, "highs-simplex")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_programs_for_all_pairs_of_larger_matrices(method: Any) -> None:
    for seed, solver in itertools.product(range(2), ("highs-simplex", "highs-ipx")):
        assert_agreement(random_rows(8, seed), [0.1, 1.0, 5.0, 10.0], method, solver)


def assert_agreement(P: Floats, alphas: list[float], method: Any, solver: str) -> None:
    result = loss_by_programs(P, alphas, method, solver, prune=False)
    function = cao2019.algorithm4(P, 10.0)
    routes = [
        cao2019.algorithm1(P, alphas),
        cao2019.algorithm3(P, alphas),
        cao2019.algorithm5(P, alphas, function),
        LossFunction(P, cache=False)(alphas),
    ]
    for route in routes:
        assert np.abs(result.values - route).max() <= 1e-13
    assert (result.programs >= len(P) * (len(P) - 1)).all()
    assert not result.left_out.any()


def test_pruning_proves_most_pairs_with_the_same_result() -> None:
    n, P = 6, random_rows(6, 3)
    every, few = (loss_by_programs(P, [0.1, 5.0], prune=prune) for prune in (False, True))
    assert np.abs(every.values - few.values).max() <= 1e-13
    assert (few.left_out >= n * (n - 1) - n).all()
    assert (few.left_out + few.programs == n * (n - 1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["cvxpy", "scipy"])
def test_other_solvers_give_the_same(solver: str) -> None:
    P = random_rows(6, 3)
    assert loss_by_programs(P, 5.0, solver=solver).values == pytest.approx(loss_by_programs(P, 5.0).values, abs=1e-13)


def test_the_point_attains_the_value() -> None:
    P, alphas = random_rows(9, 4), np.array([0.1, 2.0, 20.0])
    result = loss_by_programs(P, alphas)
    for alpha, value, (q, d), x in zip(alphas, result.values, result.pairs, result.x, strict=True):
        assert x.shape == (9,)
        assert (np.exp(-alpha / 2) <= x).all()
        assert (x <= np.exp(alpha / 2)).all()
        assert np.log((P[q] @ x) / (P[d] @ x)) == pytest.approx(value, abs=1e-13)
    assert not result.values.flags.writeable


def test_points_lie_in_the_box_for_tiny_alpha() -> None:
    for alpha in (0.0, 1e-300, 1e-16, 4e-15, 1e-14):
        x = loss_by_programs([[0.8, 0.2], [0.2, 0.8]], alpha).x[0]
        with localcontext() as context:
            context.prec = 60
            half = Decimal(alpha) / 2
            assert all((-half).exp() <= Decimal(float(entry)) <= half.exp() for entry in x), alpha


def test_equal_rows_have_no_pair() -> None:
    result = loss_by_programs(np.full((4, 4), 0.25), [0.0, 3.0])
    assert result.values.tolist() == result.upper.tolist() == [0.0, 0.0]
    assert result.pairs.tolist() == [[-1, -1], [-1, -1]]
    assert result.programs.tolist() == [0, 0]
    assert loss_by_programs([[1.0]], 1.0).values.tolist() == [0.0]


def test_pairs_are_rows_of_the_matrix_and_not_of_its_distinct_rows() -> None:
    P = np.array([[0.5, 0.5, 0], [0.5, 0.5, 0], [0.1, 0.2, 0.7]])
    assert set(loss_by_programs(P, 1.0).pairs[0].tolist()) == {0, 2}


def test_pairs_that_tie_are_proved_at_once() -> None:
    """In a circulant matrix every shift of the best pair is as good."""
    P = np.array([np.roll([0.5, 0.2, 0.1, 0.1, 0.05, 0.05], k) for k in range(6)])
    result = loss_by_programs(P, [0.5, 4.0])
    assert (result.left_out >= 30 - 6).all()


def test_sparse_matrices_and_chains_give_the_same() -> None:
    P = random_rows(5, 1)
    dense = loss_by_programs(P, 1.0)
    assert loss_by_programs(sparse.csr_array(P), 1.0).values.tolist() == dense.values.tolist()
    assert loss_by_programs(md.MarkovChain(P), 1.0).values.tolist() == dense.values.tolist()


def _solver(name: str, answer: Any) -> str:
    register(Solver(name, lambda: answer, "numpy"))
    return name


def test_a_point_of_a_careless_solver_is_polished(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = _loss_by_programs.solve_fractional

    def careless(*arguments: Any) -> Any:
        solution = solve(*arguments)
        middle = np.sqrt(solution.x)
        return type(solution)(solution.value, middle, 0.0, solution.programs, solution.solver)

    monkeypatch.setattr(_loss_by_programs, "solve_fractional", careless)
    P = random_rows(5, 2)
    result = loss_by_programs(P, 0.5)
    assert result.polished.sum() > 0
    assert result.values == pytest.approx(LossFunction(P, cache=False)([0.5]), abs=1e-13)


def test_a_solver_that_lies_is_found_and_the_pair_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = _loss_by_programs.solve_fractional

    def lying(*arguments: Any) -> Any:
        solution = solve(*arguments)
        return type(solution)(solution.value, np.ones_like(solution.x), 0.0, solution.programs, solution.solver)

    monkeypatch.setattr(_loss_by_programs, "solve_fractional", lying)
    with pytest.raises(SolverError, match=r"rows \d+ and \d+ at alpha = 10.0: the point of highs has a loss of"):
        loss_by_programs(random_rows(6, 2), 10.0)


@pytest.mark.parametrize("method", METHODS)
def test_a_back_end_that_calls_any_point_optimal_is_found(method: Any) -> None:
    def lie(program: LinearProgram, options: Options, start: object = None) -> Answer:
        x = np.where(np.isfinite(program.lower), program.lower, 0.0)
        return Answer(Status.OPTIMAL, x, np.zeros(program.rows), 1, "done", "liar 1.0")

    name = _solver(f"liar-{method}", lie)
    with pytest.raises(SolverError, match=r"rows \d+ and \d+ at alpha = 1.0"):
        loss_by_programs(random_rows(4, 0), 1.0, method, name)


def test_a_time_limit_names_the_pair() -> None:
    with pytest.raises(SolverError, match=r"rows \d+ and \d+ at alpha = 1.0: .*time limit"):
        loss_by_programs(random_rows(4, 0), 1.0, options=Options(time_limit=0.0))


@pytest.mark.parametrize("alpha", [0.1, 20.0])
def test_heights_are_upper_bounds_and_nearly_exact(alpha: float) -> None:
    P = random_rows(5, 5)
    q, d = np.nonzero(~np.eye(5, dtype=bool))
    with localcontext() as context:
        context.prec = 60
        factor = Fraction(Decimal(alpha).exp())
    for ratio in (1.0, 1.5, 40.0):
        heights = _loss_by_programs._heights(P, q, d, ratio, alpha)
        for height, first, second in zip(heights.tolist(), q.tolist(), d.tolist(), strict=True):
            terms = [
                Fraction(a) - Fraction(ratio) * Fraction(b)
                for a, b in zip(P[first].tolist(), P[second].tolist(), strict=True)
            ]
            exact = sum(max(factor * term, term) for term in terms)
            size = sum(factor * abs(term) if term > 0 else abs(term) for term in terms)
            assert exact <= Fraction(height)
            assert Fraction(height) - exact <= Fraction(1, 10**13) * size + Fraction(1, 10**12) * Fraction(ratio)


def test_an_upper_end_below_the_maximum_is_not_proved() -> None:
    """Just inside and just outside of the largest bracket."""
    P = random_rows(5, 6)
    result = loss_by_programs(P, 2.0)
    pair = (int(result.pairs[0, 0]), int(result.pairs[0, 1]))
    value = float(result.values[0])
    assert np.isfinite(_loss_by_programs._prove_upper(P, pair, value - 0.4e-9, 2.0))
    assert _loss_by_programs._prove_upper(P, pair, value - 1.1e-9, 2.0) == np.inf
