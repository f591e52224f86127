from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from leakage_brute import best_of
from long import mostly_long

from mechdesign import leakage


def truth(q: np.ndarray, d: np.ndarray, alpha: float) -> float:
    exact = [(Fraction(a), Fraction(b)) for a, b in zip(q.tolist(), d.tolist(), strict=True) if a > b]
    exact.sort(key=lambda pair: pair[1] / pair[0])
    points = {(sum(a for a, _ in exact[:k]), sum(b for _, b in exact[:k])) for k in range(1, len(exact) + 1)}
    return best_of(points, alpha)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["charnes-cooper", "dinkelbach"])
@pytest.mark.parametrize("concentration", mostly_long([0.05, 3.0]))
def test_within_1e_7_up_to_alpha_20(method: str, concentration: float) -> None:
    rng = np.random.default_rng(int(concentration * 100))
    for _ in range(4):
        n = int(rng.integers(2, 20))
        q, d = rng.dirichlet(np.full(n, concentration), 2)
        for alpha in (1e-6, 0.1, 1.0, 5.0, 12.0, 20.0):
            assert leakage.fractional(q, d, alpha, method) == pytest.approx(truth(q, d, alpha), abs=1e-7)


@pytest.mark.parametrize("solver", ["highs-ipx", "scipy", pytest.param("cvxpy", marks=pytest.mark.slow)])
def test_every_back_end(solver: str) -> None:
    q, d = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])
    for method in ("charnes-cooper", "dinkelbach"):
        assert leakage.fractional(q, d, 2.0, method, solver) == pytest.approx(truth(q, d, 2.0), abs=1e-6)


@pytest.mark.parametrize("method", ["charnes-cooper", "dinkelbach"])
def test_ties_zeros_and_identical_rows(method: str) -> None:
    assert leakage.fractional([0.5, 0.5], [0.5, 0.5], 3.0, method) == pytest.approx(0.0, abs=1e-12)
    assert leakage.fractional([1.0, 0.0], [0.0, 1.0], 7.0, method) == pytest.approx(7.0, rel=1e-12)
    assert leakage.fractional([0.8, 0.2], [0.2, 0.8], 0.0, method) == pytest.approx(0.0, abs=1e-12)


def test_largest_over_pairs_is_the_loss() -> None:
    P = np.random.default_rng(1).dirichlet(np.ones(4), 4)
    each = [leakage.fractional(P[i], P[j], 2.0) for i in range(4) for j in range(4) if i != j]
    assert max(each) == pytest.approx(leakage.LossFunction(P)(2.0), abs=1e-9)
