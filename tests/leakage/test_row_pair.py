from __future__ import annotations

import numpy as np
import pytest
from leakage_brute import best_of, prefix_points

from mechdesign import leakage
from mechdesign.errors import InputError


def truth(q: np.ndarray, d: np.ndarray, alpha: float) -> float:
    from fractions import Fraction

    exact = [(Fraction(a), Fraction(b)) for a, b in zip(q.tolist(), d.tolist(), strict=True) if a > b]
    exact.sort(key=lambda pair: pair[1] / pair[0])
    points = {(sum(a for a, _ in exact[:k]), sum(b for _, b in exact[:k])) for k in range(1, len(exact) + 1)}
    return best_of(points, alpha)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["charnes-cooper", "dinkelbach"])
@pytest.mark.parametrize("concentration", [0.05, 0.3, 3.0])
def test_within_1e_7_up_to_alpha_20(method: str, concentration: float) -> None:
    rng = np.random.default_rng(int(concentration * 100))
    for _ in range(6):
        n = int(rng.integers(2, 30))
        q, d = rng.dirichlet(np.full(n, concentration), 2)
        for alpha in (1e-6, 0.1, 1.0, 5.0, 12.0, 20.0):
            assert leakage.fractional(q, d, alpha, method) == pytest.approx(truth(q, d, alpha), abs=1e-7)


@pytest.mark.parametrize("method", ["charnes-cooper", "dinkelbach"])
@pytest.mark.parametrize("solver", ["highs-ipx", "scipy", "cvxpy"])
def test_every_back_end(method: str, solver: str) -> None:
    q, d = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])
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
    assert prefix_points(P)


@pytest.mark.parametrize("alpha", [20.001, 50.0, -1.0, float("nan")])
def test_refuses_what_coefficients_cannot_tell_apart(alpha: float) -> None:
    with pytest.raises(InputError, match="alpha"):
        leakage.fractional([0.8, 0.2], [0.2, 0.8], alpha)


def test_refusal_names_the_way_out() -> None:
    with pytest.raises(InputError, match=r"out of the range of linear programs; found 50.0; .* Use LossFunction"):
        leakage.fractional([0.8, 0.2], [0.2, 0.8], 50.0)
    with pytest.raises(InputError, match="d: differs in length"):
        leakage.fractional([0.8, 0.2], [1.0], 1.0)
    with pytest.raises(InputError, match=r"q: does not sum to 1; found 0\.8"):
        leakage.fractional([0.7, 0.2], [0.2, 0.8], 1.0)
    with pytest.raises(InputError, match=r"d\[1\]: is not accepted; found -0.2"):
        leakage.fractional([0.8, 0.2], [1.2, -0.2], 1.0)
    with pytest.raises(InputError, match="method"):
        leakage.fractional([0.8, 0.2], [0.2, 0.8], 1.0, "newton")
