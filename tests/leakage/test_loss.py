from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from leakage_brute import best_of, close, limit_of, prefix_points, subset_points

from mechdesign import leakage
from mechdesign.errors import InputError
from mechdesign.leakage import _loss as loss_module
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._support import Line
from mechdesign.leakage.cao2019 import algorithm1, algorithm2, algorithm3, algorithm4, algorithm5, algorithm6
from mechdesign.model._markov import MarkovChain

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "leakage.json").read_text())
ROUTES = {"hull": lambda P, a: LossFunction(P)(a), "1": algorithm1, "3": algorithm3, "5": algorithm5}
ALPHAS = np.array([1e-6, 1e-3, 0.1, 1.0, 3.0, 10.0, 25.0, 50.0])


def number(text: str) -> float:
    return float(Fraction(text))


def square(rows: list[list[float]]) -> np.ndarray:
    """Repeat the last row of a pair of longer rows: identical rows change nothing."""
    return np.array(rows + [rows[-1]] * (len(rows[0]) - len(rows)))


def awkward_matrices() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    base = rng.dirichlet(np.ones(6), 6)
    near = np.tile(base[0], (6, 1))
    near[1, 0] += 1e-12
    near[1, 1] -= 1e-12
    ratio = np.array([[0.3, 0.3 + 1e-12, 0.4 - 1e-12], [0.1, 0.1, 0.8], [0.2, 0.2 - 1e-12, 0.6 + 1e-12]])
    holes = base * (rng.random((6, 6)) < 0.5) + np.eye(6) * 1e-3
    tails = np.exp(-np.abs(np.subtract.outer(np.arange(7), np.arange(7))) * 9.0)
    tiny = np.array([[1 - 1e-14, 1e-14, 0.0], [1e-300, 1 - 1e-9, 1e-9], [0.5, 0.25, 0.25]])
    spread = rng.dirichlet(np.full(6, 0.05), 6)
    same_sum = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]])
    circulant = np.array([np.roll([0.5, 0.2, 0.1, 0.1, 0.1], k) for k in range(5)])
    matrices = {
        "random": base,
        "near-identical rows": near,
        "near-tied ratios": ratio,
        "zeros": holes,
        "long tails": tails,
        "tiny entries": tiny,
        "spread over orders": spread,
        "ties of sums": same_sum,
        "circulant": circulant,
        "one state": np.ones((1, 1)),
        "identical rows": np.tile(base[2], (6, 1)),
        "disjoint supports": np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5]]),
        "smoothed identity": (np.eye(6) + 1e-9) / (1 + 6e-9),
    }
    return {name: P / P.sum(axis=1, keepdims=True) for name, P in matrices.items()}


AWKWARD = awkward_matrices()


@pytest.mark.parametrize("route", ROUTES)
def test_reference_values(route: str) -> None:
    assert REFERENCE["loss_function"]
    for entry in REFERENCE["loss_function"]:
        values = ROUTES[route](square(entry["P"]), np.array([float(alpha) for alpha in entry["alphas"]]))
        for alpha, value, truth in zip(entry["alphas"], values, entry["L"], strict=True):
            assert close(value, float(truth)), (entry["name"], alpha, value, truth)


@pytest.mark.parametrize("route", ROUTES)
def test_awkward_matrices_to_60_digits(route: str) -> None:
    for name, P in AWKWARD.items():
        points = prefix_points(P)
        for alpha, value in zip(ALPHAS.tolist(), ROUTES[route](P, ALPHAS), strict=True):
            assert close(value, best_of(points, alpha)), (name, alpha, value, best_of(points, alpha))


def test_many_random_matrices_to_60_digits() -> None:
    rng = np.random.default_rng(11)
    for _ in range(12):
        n = int(rng.integers(2, 8))
        P = rng.dirichlet(np.full(n, 10 ** rng.uniform(-1.5, 1)), n)
        if rng.random() < 0.4:
            P = P * (rng.random((n, n)) < 0.7) + np.eye(n) * 10 ** rng.uniform(-12, 0)
            P /= P.sum(axis=1, keepdims=True)
        points = prefix_points(P)
        alphas = 10 ** rng.uniform(-6, math.log10(50), 4)
        for route, function in ROUTES.items():
            for alpha, value in zip(alphas.tolist(), function(P, alphas), strict=True):
                assert close(value, best_of(points, alpha)), (route, P.tolist(), alpha)


def test_oracles_and_hull_agree_on_larger_matrices() -> None:
    rng = np.random.default_rng(2)
    for concentration in (0.05, 0.5, 5.0):
        P = rng.dirichlet(np.full(25, concentration), 25)
        value = LossFunction(P)(ALPHAS)
        for function in (algorithm1, algorithm3, algorithm5):
            np.testing.assert_allclose(function(P, ALPHAS), value, rtol=1e-13, atol=1e-16)


@st.composite
def matrices(draw: st.DrawFn, largest: int = 5) -> np.ndarray:
    n = draw(st.integers(2, largest))
    weight = st.sampled_from([0.0, 1e-12, 1e-6, 1.0]) | st.floats(0.0, 1.0, allow_subnormal=False)
    rows = draw(st.lists(st.lists(weight, min_size=n, max_size=n), min_size=n, max_size=n))
    P = np.array(rows)
    assume((P.sum(axis=1) > 1e-6).all())
    return P / P.sum(axis=1, keepdims=True)


@settings(max_examples=40)
@given(matrices(), st.floats(0, 50), st.floats(0, 50))
def test_shape_of_the_function(P: np.ndarray, alpha: float, other: float) -> None:
    low, high = sorted((alpha, other))
    L = LossFunction(P)
    assert L(0.0) == 0.0
    assert 0.0 <= L(alpha) <= alpha
    assert L(low) <= L(high) * (1 + 1e-15)
    assert L(high) - L(low) <= (high - low) * (1 + 1e-15) + 1e-14
    assert L(np.array([low, high])).tolist() == pytest.approx([L(low), L(high)], rel=1e-15)


@settings(max_examples=20)
@given(matrices(4), st.sampled_from([1e-6, 0.5, 4.0, 20.0, 50.0]))
def test_equals_brute_force_over_subsets(P: np.ndarray, alpha: float) -> None:
    assert close(LossFunction(P)(alpha), best_of(subset_points(P), alpha))


def test_brute_force_over_subsets_at_n_8() -> None:
    indicators = (np.arange(256)[:, None] >> np.arange(8)) & 1
    for seed in range(2):
        P = np.random.default_rng(seed).dirichlet(np.full(8, 0.4), 8)
        sums = P @ indicators.T
        for alpha in (0.01, 1.0, 6.0):
            ratios = (sums * math.expm1(alpha) + 1)[:, None, :] / (sums * math.expm1(alpha) + 1)[None, :, :]
            assert LossFunction(P)(alpha) == pytest.approx(math.log(ratios.max()), rel=1e-12)


@settings(max_examples=25)
@given(matrices(), st.floats(0.01, 40.0))
def test_algorithm_4_where_it_is_defined(P: np.ndarray, largest: float) -> None:
    function = algorithm4(P, largest)
    alphas = np.linspace(0, largest, 9)
    np.testing.assert_allclose(algorithm5(P, alphas, function), LossFunction(P)(alphas), rtol=1e-12, atol=1e-15)
    with pytest.raises(InputError, match="beyond the end"):
        algorithm5(P, largest * 1.01, function)


def test_printed_example_of_transition_points() -> None:
    # q = (0.2, 0.3, 0.5), d = (0.1, 0, 0.9): prefixes {2}, {2, 1}; the paper gives aArr = [Inf, 1.47, NaN].
    tables = algorithm2([[0.2, 0.3, 0.5], [0.1, 0.0, 0.9], [0.1, 0.0, 0.9]])
    pair = int(np.flatnonzero(np.isclose(tables.G[:, 0], 0.3) & np.isclose(tables.G[:, 1], 0.4))[0])
    assert tables.until[pair, 0] == math.inf
    assert tables.until[pair, 1] == pytest.approx(1.47, abs=0.005)
    assert tables.until[pair, 2] == -1.0


def test_pieces_are_in_order_and_rule_where_they_say() -> None:
    P = np.random.default_rng(3).dirichlet(np.full(30, 0.3), 30)
    L = LossFunction(P)
    Q, D, start = L.pieces
    assert start[0] == 0.0
    assert (np.diff(start) > 0).all()
    assert (np.diff(D) < 0).all()
    assert (np.diff(Q) < 0).all()
    ends = np.append(start[1:], start[-1] + 5.0)
    middle = (start + ends) / 2
    A = np.expm1(middle)
    np.testing.assert_allclose(np.log((Q * A + 1) / (D * A + 1)), L(middle), rtol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        Q[0] = 0.0


def test_far_beyond_exponentials() -> None:
    L = LossFunction([[0.8, 0.2], [0.0, 1.0]])
    assert L(1000.0) == pytest.approx(1000.0 + math.log(0.8), rel=1e-15)
    assert L(math.inf) == math.inf
    bounded = LossFunction([[0.8, 0.2], [0.2, 0.8]])
    assert bounded(np.array([800.0, math.inf])).tolist() == pytest.approx([math.log(4)] * 2, rel=1e-15)
    subnormal = LossFunction([[0.5, 0.5], [1e-310, 1.0]])
    assert subnormal(math.inf) == pytest.approx(math.log(0.5) + 310 * math.log(10), rel=1e-12)
    assert LossFunction([[1.0, 0.0], [0.0, 1.0]])(1e6) == 1e6


def test_reference_suprema() -> None:
    assert REFERENCE["suprema"]
    for entry in REFERENCE["suprema"]:
        P = np.array([[number(value) for value in row] for row in entry["P"]])
        epsilon, truth = float(entry["eps"]), entry["closed_form_sup"]
        for value in (LossFunction(P).supremum(epsilon), algorithm6(P, epsilon)):
            limit = math.inf if truth in (None, "inf") else float(truth)
            assert close(value, limit), (entry["matrix"], epsilon, value, limit)


def test_suprema_of_awkward_matrices_to_60_digits() -> None:
    for name, P in AWKWARD.items():
        points = prefix_points(P, normalised=True)
        for epsilon in (1e-6, 0.01, 0.3, 1.0, 5.0):
            truth = limit_of(points, epsilon)
            for value in (LossFunction(P).supremum(epsilon), algorithm6(P, epsilon)):
                assert close(value, truth), (name, epsilon, value, truth)


def test_supremum_where_it_starts_to_diverge() -> None:
    L = LossFunction([[0.8, 0.2], [0.0, 1.0]])
    bound = math.log(1 / 0.8)
    assert L.supremum(bound) == math.inf
    assert L.supremum(bound * (1 + 1e-12)) == math.inf
    assert math.isfinite(L.supremum(bound * (1 - 1e-9)))
    assert L.supremum(0.0) == 0.0


@settings(max_examples=30)
@given(matrices(), st.floats(1e-6, 6.0))
def test_supremum_is_the_fixed_point(P: np.ndarray, epsilon: float) -> None:
    L = LossFunction(P)
    top = L.supremum(epsilon)
    assert top >= epsilon
    if math.isfinite(top):
        assert L(top) + epsilon == pytest.approx(top, rel=1e-12, abs=1e-15)
        series = leakage.backward(np.full(50, epsilon), L)
        assert series.max() <= top * (1 + 1e-12)
    else:
        assert (L.pieces.D == 0).any()


def test_supremum_rules_at_the_fixed_point_not_at_epsilon() -> None:
    # Reading the theorem with the (q, d) that rule at α = ε gives 1.8204.
    assert LossFunction([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]).supremum(1.0) == pytest.approx(
        1.8929, abs=5e-5
    )


def test_huge_budgets_do_not_overflow() -> None:
    P = [[0.8, 0.2], [0.2, 0.8]]
    assert LossFunction(P).supremum(900.0) == pytest.approx(900.0 + math.log(4), rel=1e-14)
    assert LossFunction(np.tile([0.5, 0.5], (2, 1))).supremum(900.0) == 900.0


def test_sparse_input_gives_the_same_function(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    P = np.where(rng.random((60, 60)) < 0.05, rng.random((60, 60)), 0.0)
    P[:, 0] += 0.2 + 0.2 * rng.random(60)
    P[:, 1] += 0.1 * rng.random(60)
    P /= P.sum(axis=1, keepdims=True)
    dense = LossFunction(P)
    as_dense = LossFunction(sparse.csr_matrix(P))
    monkeypatch.setattr(loss_module, "_DENSE_UP_TO", 10)
    monkeypatch.setattr(loss_module, "_WELL_FILLED", 2.0)
    as_sparse = LossFunction(sparse.coo_array(P))
    alphas = np.linspace(0, 40, 50)
    np.testing.assert_allclose(as_dense(alphas), dense(alphas), rtol=1e-15)
    np.testing.assert_allclose(as_sparse(alphas), dense(alphas), rtol=1e-13)


def test_a_road_of_1_600_states() -> None:
    n, side = 1600, 40
    state = np.arange(n)
    rows, columns = [], []
    for offset in (0, 1, -1, side, -side):
        there = (state + offset >= 0) & (state + offset < n)
        rows.append(state[there])
        columns.append(state[there] + offset)
    pattern = sparse.csr_array((np.ones(sum(map(len, rows))), (np.concatenate(rows), np.concatenate(columns))))
    P = sparse.csr_array(sparse.diags_array(1 / np.asarray(pattern.sum(axis=1)).ravel()) @ pattern)
    L = LossFunction(P, cache=False)
    assert L.identity
    assert L(np.array([0.3, 7.0])).tolist() == [0.3, 7.0]
    home = sparse.csr_array((np.ones(n), (state, np.zeros(n, dtype=int))), shape=(n, n))
    overlapping = LossFunction(sparse.csr_array(0.9 * P + 0.1 * home), cache=False)
    assert not overlapping.identity
    assert 2.5 < overlapping(3.0) < 3.0


def test_chains_are_matrices_and_shapes_are_kept() -> None:
    chain = MarkovChain(np.array([[0.8, 0.2], [0.2, 0.8]]))
    L = LossFunction(chain)
    assert L([0, math.inf]).tolist() == [0.0, pytest.approx(math.log(4))]
    assert L.lines[0] == Line(pytest.approx(0.6), 0.2, 0.2)
    assert "2 states" in repr(L)
    for number in (1, True, np.int8(1), np.float32(1), np.array(1), Fraction(1), 1.0):
        assert type(L(number)) is float
        assert L(number) == pytest.approx(0.5694451960428427, rel=1e-15)
    for shape in ((0,), (1,), (2, 3), (2, 0, 3)):
        assert np.shape(L(np.ones(shape, dtype=int))) == shape
    with pytest.raises(AttributeError):
        L.n = 3  # type: ignore[misc]


def test_rows_off_by_rounding_are_kept_and_others_normalised() -> None:
    thirds = np.full((3, 3), 1 / 3)
    thirds[0] = [1 / 3 + 1e-10, 1 / 3, 1 / 3]
    assert LossFunction(thirds)(1e-3) == pytest.approx(LossFunction(thirds / thirds.sum(1, keepdims=True))(1e-3))
