"""Bounds of pairs at every future step: decided, never below the recursion, proved by exact numbers; and the scale."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pairs_oracle import Releases, exact_leakage, log_ratios
from refusals import assert_refused_at
from scipy.optimize import linprog

import mechdesign as md
from mechdesign.base._deadline import Deadline
from mechdesign.leakage import _limits, _matrices, _transport
from mechdesign.leakage._bounds import close
from mechdesign.leakage._transport import Rows, enclose, step
from mechdesign.solve._contract import Answer, BackEnd, Options
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._registry import find

INF = math.inf
FAST, SLOW, ALL = 40, 80, 300
SLOW_CHAIN = [[0.8, 0.2], [0.0, 1.0]]
IN_TURNS = [[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.9, 0.1]]]
RING = [[0.5, 0.25, 0, 0.25], [0.25, 0.5, 0.25, 0], [0, 0.25, 0.5, 0.25], [0.25, 0, 0.25, 0.5]]
HOPS = np.array([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]], dtype=float)


def alike(epsilon: float, n: int = 2) -> np.ndarray:
    """Return the bounds of n states with one ε for all pairs."""
    return epsilon * (1 - np.eye(n))


def random_case(seed: int, most_states: int = 5) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return closed bounds and one or two matrices; a third with zeros in rows, some with ∞ or 0 as bounds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most_states + 1))
    P = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 3.0])), n)
    if rng.random() < 1 / 3:
        P[rng.random((n, n)) < 0.4] = 0
        P[np.arange(n), rng.integers(0, n, n)] += 0.1
    P += rng.choice([0, 0, 1, 5]) * np.eye(n)
    P /= P.sum(axis=1, keepdims=True)
    E = rng.uniform(0, 1, (n, n)) * 10 ** rng.uniform(-2, 0.7)
    for value in (INF, 0.0):
        if rng.random() < 0.2:
            E[rng.random((n, n)) < 0.3] = value
    np.fill_diagonal(E, 0)
    return close(E), [P, np.roll(P, 1, axis=0)] if rng.random() < 0.2 else [P]


def recursion(E: np.ndarray, matrices: list[np.ndarray], steps: int) -> np.ndarray:
    """Return the lower end of B_t after so many steps, the largest over the matrices at each step."""
    B, rows = E, [Rows(P) for P in matrices]
    for _ in range(steps):
        B = np.maximum(B, E + np.max([step(each, B)[1] for each in rows], axis=0))
    return B


def assert_decided(seed: int, steps: int, most_states: int) -> None:
    """Demand a limit that the recursion does not pass, with lower ends that its limit is not below."""
    E, matrices = random_case(seed, most_states)
    limit = md.leakage.supremum(E, backward=md.leakage.Candidates(matrices))
    after = recursion(E, matrices, steps)
    by_invariant = np.vectorize(lambda s, t: "invariant" in limit.reason(s, t))(*np.indices(E.shape))
    assert (limit.bounds[by_invariant] >= after[by_invariant] - 1e-12 * (1 + after[by_invariant])).all(), seed
    assert (limit.lower[by_invariant] <= limit.bounds[by_invariant]).all(), seed
    assert (limit.bounds >= E).all(), seed
    assert np.isinf(limit.lower[np.isinf(limit.bounds)]).all(), seed
    again = recursion(after, matrices, 1) if np.isfinite(after).all() else None
    if again is not None and (again - after).max() < 1e-14 and by_invariant.all():
        # The recursion has converged: this is its limit, up to the ends of a step.
        assert (limit.lower <= after + 1e-9 * (1 + after)).all(), seed
        assert (limit.bounds <= after + 1e-6 * (1 + after)).all(), seed


# Two of the first chains take longer.
@pytest.mark.parametrize("seed", sorted({*range(FAST + 2)} - {2, 14}))
def test_random_chains_are_decided(seed: int) -> None:
    assert_decided(seed, 25, 3)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] + [pytest.mark.long] * (seed >= SLOW)) for seed in range(ALL)]
)
def test_more_random_chains_are_decided(seed: int) -> None:
    assert_decided(seed, 150, 5)


def test_the_least_of_a_limit_and_divergence_lie_close_together() -> None:
    limit = md.leakage.supremum(alike(0.2231), backward=SLOW_CHAIN)
    # e^B = e^ε (0.8 e^B + 0.2), and the other pair has e^B = e^ε / (0.8 e^−B + 0.2).
    factor = math.exp(0.2231)
    exact = [math.log(0.2 * factor / (1 - 0.8 * factor)), math.log((factor - 0.8) / 0.2)]
    assert exact[0] == pytest.approx(8.65525454, abs=1e-6)
    for pair, value in zip([(0, 1), (1, 0)], exact, strict=True):
        assert value - 1e-6 <= limit.lower[pair] <= value <= limit.bounds[pair] <= value + 1e-6
    assert limit.proved == "backward: an invariant for 2 pairs, for the same matrix at every step"
    beyond = md.leakage.supremum(alike(0.2232), backward=SLOW_CHAIN)
    assert beyond.bounds[0, 1] == beyond.lower[0, 1] == INF
    assert "witness" in beyond.reason(0, 1)
    assert "invariant" in beyond.reason(1, 0)
    # After 3,000 steps both are near 6.6, so that waiting decides nothing.
    assert limit.lower[0, 1] > 8.6


def test_suprema_of_each_candidate_bound_no_sequence_in_turns() -> None:
    each = [md.leakage.supremum(alike(1.0), backward=P).bounds.max() for P in IN_TURNS]
    assert each == pytest.approx([2.06937, 4.05726], abs=1e-4)
    turns = md.leakage.Varying([IN_TURNS[t % 2] for t in range(12)])
    assert md.leakage.backward([alike(1.0)] * 13, turns)[-1].max() > 8.6
    both = md.leakage.supremum(alike(1.0), backward=md.leakage.Candidates(IN_TURNS))
    assert np.isinf(both.bounds).sum() == 2


def test_a_witness_of_slow_growth_is_found() -> None:
    # The recursion grows by 0.009 a step.
    E = np.array([[0, 0.79, 0.86], [0.14, 0, 0.07], [0.13, 0.38, 0]])
    turns = [[[0, 1, 0], [0, 0, 1], [0.38, 0.62, 0]], [[1, 0, 0], [0, 0, 1], [1, 0, 0]]]
    limit = md.leakage.supremum(E, backward=md.leakage.Candidates(turns))
    assert np.isinf(limit.bounds).sum() == 5
    assert "witness" in limit.reason(0, 1)


@pytest.mark.parametrize("epsilon", [0.05, 0.15])
def test_no_order_of_two_candidates_passes_the_limit(epsilon: float) -> None:
    limit = md.leakage.supremum(alike(epsilon), backward=md.leakage.Candidates(IN_TURNS))
    assert limit.proved.endswith("every order of 2 matrices")
    # The exponentials of B(0, 1) and B(1, 0) after every order: two states have two extreme rays.
    level, factor = np.full((1, 2), math.exp(epsilon)), math.exp(epsilon)
    for _ in range(12):
        parts = []
        for P in map(np.array, IN_TURNS):
            rays = np.stack(
                [
                    np.stack([level[:, 0], np.ones(len(level))], axis=1) @ P.T,
                    np.stack([np.ones(len(level)), level[:, 1]], axis=1) @ P.T,
                ]
            )
            ratio = rays[:, :, 0] / rays[:, :, 1]
            parts.append(factor * np.stack([ratio.max(axis=0), (1 / ratio).max(axis=0)], axis=1))
        level = np.concatenate(parts)
        assert (np.log(level.max(axis=0)) <= limit.bounds[[0, 1], [1, 0]]).all()
    assert len(level) == 2**12
    assert np.log(level.max(axis=0)) == pytest.approx(limit.bounds[[0, 1], [1, 0]], rel=0.35)


def exact_closure(gains: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return the least products along paths."""
    n = len(gains)
    for k, i, j in itertools.product(range(n), repeat=3):
        gains[i][j] = min(gains[i][j], gains[i][k] * gains[k][j])
    return gains


@pytest.mark.parametrize("seed", range(12))
def test_the_bounds_are_an_invariant_in_exact_numbers(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    n = int(rng.integers(2, 4))
    weights = rng.integers(1, 9, (2, n, n))
    P = [[[Fraction(int(v), int(row.sum())) for v in row] for row in each] for each in weights]
    E = close(rng.uniform(0.01, 0.3, (n, n)) * (1 - np.eye(n)))
    floats = [[[float(v) for v in row] for row in each] for each in P]
    bounds = md.leakage.supremum(E, backward=md.leakage.Candidates(floats)).bounds
    assert np.isfinite(bounds).all()
    # The matrices are divided by exact sums of floats, so that the exact ones are one rounding away.
    gains = exact_closure([[Fraction(math.exp(v)) for v in row] for row in bounds.tolist()])
    for each in P:
        passed = exact_leakage(each, gains)
        for s, t in itertools.permutations(range(n), 2):
            assert Fraction(math.exp(E[s, t])) * passed[s][t] <= gains[s][t] * (1 + Fraction(1, 10**15)), (s, t)


def transport_value(p: np.ndarray, q: np.ndarray, B: np.ndarray) -> float:
    """Return ln of the largest Σ_j p_j x_j over z ≥ 0 with q·z = 1 and x_j ≤ e^{B(j,k)} z_k, by a linear program."""
    n = len(p)
    rows = []
    for j, k in itertools.product(np.flatnonzero(p), np.flatnonzero(q)):
        row = np.zeros(2 * n)
        row[j], row[n + k] = math.exp(-B[j, k]), -1
        rows.append(row)
    one = np.concatenate((np.zeros(n), q))[None]
    found = linprog(-np.concatenate((p, np.zeros(n))), np.array(rows), np.zeros(len(rows)), one, [1.0])
    return math.log(-found.fun)


@pytest.mark.parametrize(
    ("P", "E"),
    [
        (SLOW_CHAIN, alike(0.3)),
        (RING, HOPS),
        ([[0.7, 0.3, 0, 0], [0.2, 0.8, 0, 0], [0, 0, 0.6, 0.4], [0, 0, 0.5, 0.5]], alike(0.1, 4)),
        ([[0, 1.0, 0, 0], [0.9, 0.1, 0, 0], [0, 0, 0, 1.0], [0, 0, 0.8, 0.2]], alike(0.2, 4)),
    ],
)
def test_a_witness_grows_whatever_the_other_pairs_are(P: list[list[float]], E: np.ndarray) -> None:
    pairs, b = _limits._growing([Rows(P)], E, np.zeros(E.shape, dtype=bool))
    assert pairs.any()
    rows = np.array(P)
    for c in (0.0, 3.0):
        # Other pairs are bounded by nothing but 0: the recursion is at least as large.
        B = np.where(pairs, b + c, 0.0)
        for s, t in np.argwhere(pairs):
            assert E[s, t] + transport_value(rows[s], rows[t], B) >= b[s, t] + c + 0.9e-11, (s, t)


def test_no_witness_without_growth() -> None:
    for E, P in ((alike(0.2), SLOW_CHAIN), (alike(0.1, 3), np.full((3, 3), 1 / 3)), (alike(0.0), np.eye(2))):
        pairs, _ = _limits._growing([Rows(P)], E, np.zeros(E.shape, dtype=bool))
        assert not pairs.any()


def test_every_pair_without_a_bound_has_its_reason() -> None:
    E = np.array([[0, 0.1, INF], [0.1, 0, INF], [0.1, 0.1, 0]])
    limit = md.leakage.supremum(E, backward=[[1, 0, 0], [0, 0, 1], [0, 1, 0]])
    assert limit.reason(0, 2) == "backward: one release has no bound"
    assert "without a finite bound to any state of the second row" in limit.reason(0, 1)
    assert np.isinf(limit.bounds[0, 2])
    for s, t in itertools.permutations(range(3), 2):
        assert ("invariant" in limit.reason(s, t)) == np.isfinite(limit.bounds[s, t]), (s, t)
    alone = md.leakage.supremum(E)
    assert alone.bounds.tolist() == alone.lower.tolist() == E.tolist()
    assert alone.reason(0, 1) == alone.proved == "the releases are independent"


def test_a_power_bounds_what_the_recursion_does_not() -> None:
    limit = md.leakage.supremum(HOPS, backward=RING)
    assert np.isinf(limit.lower[~np.eye(4, dtype=bool)]).all()
    assert limit.proved == "backward: a power of the matrix for 12 pairs, for the same matrix at every step"
    assert limit.reason(0, 2) == "backward: a power of the matrix bounds it"
    # Two releases: E(s, t) + max E + the largest ln ratio of P².
    squared = np.linalg.matrix_power(np.array(RING), 2)
    assert limit.bounds[0, 2] == pytest.approx(2 + 2 + np.log(squared[0] / squared[2]).max(), abs=1e-9)
    weights = np.exp(-HOPS)
    channel = weights / weights.sum(axis=1, keepdims=True)
    assert (log_ratios(channel) <= HOPS + 1e-12).all()
    leaked = Releases(np.array(RING), np.full(4, 0.25), [channel] * 5).leakages()[0][-1]
    assert 3.2 < leaked.max() < 3.6
    assert (leaked <= limit.bounds).all()


def test_products_of_candidates_bound_every_order() -> None:
    other = np.array(RING)[::-1, ::-1] * 0.9 + 0.025
    limit = md.leakage.supremum(HOPS, backward=md.leakage.Candidates([RING, other]))
    assert np.isfinite(limit.bounds).all()
    assert "a power of the matrix" in limit.proved
    weights = np.exp(-HOPS)
    channel = weights / weights.sum(axis=1, keepdims=True)
    for order in itertools.product([np.array(RING), other], repeat=3):
        # Backward matrices of three steps: Pr(o_1 … o_4 | state at 4).
        given = channel
        for P in order:
            given = ((P @ given)[:, :, None] * channel[:, None, :]).reshape(4, -1)
        assert (log_ratios(given) <= limit.bounds).all()


def ln(ratio: Fraction) -> float:
    """Return ln of a fraction that may be no float."""
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def test_powers_are_those_in_exact_numbers() -> None:
    P = np.array([[0.75, 0.25, 0, 0], [0, 0.75, 0.25, 0], [0, 0, 0.75, 0.25], [0.25, 0, 0, 0.75]])
    exact = [[Fraction(value) for value in row] for row in P.tolist()]
    columns = list(zip(*exact, strict=True))
    power, best = exact, np.full((4, 4), INF)
    for m in range(1, 13):
        for s, t in itertools.permutations(range(4), 2):
            if all(b > 0 for a, b in zip(power[s], power[t], strict=True) if a > 0):
                ratios = [ln(a / b) for a, b in zip(power[s], power[t], strict=True) if a > 0]
                best[s, t] = min(best[s, t], (m - 1) * 5.0 + max(ratios))
        power = [[sum(map(Fraction.__mul__, row, column), Fraction(0)) for column in columns] for row in power]
    found = _limits._power_bounds(alike(5.0, 4), [Rows(P)])
    off = ~np.eye(4, dtype=bool)
    assert (found[off] >= best[off]).all()
    assert found[off] == pytest.approx(best[off], rel=1e-9)


def test_no_power_is_taken_whose_entries_underflow() -> None:
    # State 0 comes from state 3 with a probability of 1e-400, and state 1 never does.
    P = np.array([[0, 1, 1e-200, 0], [0, 1, 0, 0], [0, 1, 0, 1e-200], [0, 0, 0, 1]])
    assert np.isinf(_limits._power_bounds(alike(1.0, 4), [Rows(P)])[0, 1])


def test_a_lower_end_is_below_the_least_of_several_fixed_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "_STEPS", 4)
    # T(B) = B, so that every matrix is a fixed point of E + T for E = 0.
    rows, zero = [Rows(np.eye(2))], alike(0.0)
    assert (_limits._raise_lower(rows, zero, zero, alike(1.0)) == 0).all()
    # An upper end far above the limit.
    limit = md.leakage.supremum(alike(0.1), backward=[[0.8, 0.2], [0.2, 0.8]]).bounds
    lower = _limits._raise_lower([Rows([[0.8, 0.2], [0.2, 0.8]])], alike(0.1), alike(0.1), 3 * limit)
    assert (lower <= limit).all()
    assert lower == pytest.approx(limit, rel=1e-3)


def test_larger_bounds_have_larger_limits() -> None:
    P = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]
    E = np.array([[0, 0.1, 0.2], [0.05, 0, 0.1], [0.2, 0.1, 0]])
    small, large = (md.leakage.supremum(scale * E, backward=P) for scale in (1, 1.1))
    assert (small.bounds <= large.bounds).all()
    assert (small.bounds[E > 0] < large.lower[E > 0]).all()


@pytest.mark.slow
def test_a_limit_is_the_least_of_several_fixed_points() -> None:
    E = np.array([[0, 2.1127, 0.7588, 0.7054], [0.2097, 0, 0.9685, 0.9151], [0.7804, 2.2414, 0, 1.3572],
                  [0.8337, 2.2947, 0.0534, 0]])  # fmt: skip
    P = np.array([[0.4105, 0, 0.2162, 0.3733], [0.8684, 0, 0.1316, 0], [0, 0, 0.9628, 0.0372], [0, 1, 0, 0]])
    limit = md.leakage.supremum(E, backward=P)
    assert limit.bounds == pytest.approx(recursion(close(E), [P], 60), rel=1e-6)


def test_other_names_of_states_change_nothing() -> None:
    E, matrices = random_case(4, 3)
    order = [2, 0, 1]
    limit = md.leakage.supremum(E, backward=matrices[0])
    renamed = md.leakage.supremum(E[order][:, order], backward=matrices[0][order][:, order])
    assert np.allclose(renamed.bounds, limit.bounds[order][:, order], rtol=1e-8)
    assert np.array_equal(np.isinf(renamed.bounds), np.isinf(limit.bounds[order][:, order]))


def test_one_bound_for_all_pairs_has_the_limit_of_the_number() -> None:
    P = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]]
    for backward, forward in ((P, None), (None, P), (P, P)):
        number = md.leakage.supremum(0.1, backward=backward, forward=forward)
        found = md.leakage.supremum(alike(0.1, 3), backward=backward, forward=forward).bounds.max()
        # The largest pair of the matrix is the pair of rows that the loss function takes, if it is the same throughout.
        assert found <= number + 1e-9
    assert found > 0.15


def test_both_directions_add_up() -> None:
    E = np.array([[0, 0.1, 0.2], [0.05, 0, 0.1], [0.15, 0.1, 0]])
    P, F = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]], np.full((3, 3), 1 / 3) * 0.5 + np.eye(3) * 0.5
    before, after = (md.leakage.supremum(E, backward=each) for each in (P, F))
    with pytest.warns(md.errors.CorrelationWarning):
        both = md.leakage.supremum(E, backward=P, forward=F)
    assert np.allclose(both.bounds, before.bounds + after.bounds - E, rtol=1e-9)
    assert np.allclose(both.lower, before.lower + after.lower - E, rtol=1e-9)
    assert "; forward: " in both.proved
    assert "; forward: an invariant" in both.reason(0, 1)


@pytest.mark.parametrize("epsilon", [0.02, 0.05, 3.0])
def test_a_row_that_may_be_anything_is_any_of_the_unit_rows(epsilon: float) -> None:
    rows = [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]]
    E = np.array([[0, 1, 2], [1, 0, 1], [2, 1.5, 0]]) * epsilon
    limit = md.leakage.supremum(E, backward=md.leakage.OpenChain([*rows, [0, 0, 0]]))
    units = md.leakage.supremum(E, backward=md.leakage.Candidates([[*rows, unit] for unit in np.eye(3).tolist()]))
    assert np.array_equal(np.isinf(limit.lower), np.isinf(units.lower))
    fine = np.isfinite(units.lower)
    assert np.allclose(limit.bounds[fine], units.bounds[fine], rtol=1e-6)
    assert fine[0, 2] == (epsilon < 1)


def test_two_rows_that_may_be_anything_have_no_limit() -> None:
    limit = md.leakage.supremum(alike(0.1, 3), backward=md.leakage.OpenChain([[0.5, 0.3, 0.2], [0] * 3, [0] * 3]))
    assert limit.bounds[1, 2] == limit.bounds[2, 1] == INF
    assert "witness" in limit.reason(1, 2)


def test_the_largest_scale_keeps_the_limit_and_a_larger_one_does_not() -> None:
    D = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]], dtype=float)
    P = [[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]]
    near = np.array([[0, 1, INF], [1, 0, 1], [INF, 1, 0]])
    for alpha, releases in ((2.0, 1), (2.0, 3), (near, 2)):
        scale = md.leakage.largest_scale(D, alpha, releases, backward=P, forward=P)
        limits = np.asarray(alpha) if np.ndim(alpha) else np.multiply(alpha, D)
        within, beyond = (
            md.leakage.temporal([each * scale * D] * releases, backward=P, forward=P).max(axis=0)
            for each in (1, 1 + 1e-5)
        )
        assert (within <= limits).all()
        assert (beyond > limits).any()
    assert md.leakage.largest_scale(D, 2.0, 1) == pytest.approx(2, rel=1e-14)
    assert md.leakage.largest_scale(D, 2.0, 4, backward=np.eye(3)) == pytest.approx(0.5, rel=1e-6)
    # Pairs without a bound, and bounds that hold one way only.
    assert md.leakage.largest_scale([[0, 1], [INF, 0]], 1.0, 2, backward=np.eye(2)) == pytest.approx(0.5, rel=1e-6)
    # Equal rows pass nothing on, so that states with a distance of 0 keep it.
    lumped = [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]]
    apart = [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    assert 0 < md.leakage.largest_scale(apart, 1.0, 2, backward=lumped) < 1


def test_scales_of_shapes_that_differ_by_hundreds_of_powers() -> None:
    P, three = [[0.8, 0.2], [0.2, 0.8]], [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]
    tiny, pair = [[0, 1e-10, 1], [1e-10, 0, 1], [1, 1, 0]], [[0, 1, INF], [1, 0, INF], [INF, INF, 0]]
    # The leakage of the close pair stays just below its limit, ln 9.009, until other bounds are far too large.
    flat = [[0, 1e-5, 100, 100], [1e-5, 0, 100, 100], [100, 100, 0, 100], [100, 100, 100, 0]]
    limits = np.where(np.eye(4) > 0, 0, INF)
    limits[0, 1], limits[2, 3] = math.log(9.009), 100
    stuck = [[0, 0, 0.9, 0.1], [0, 0, 0.1, 0.9], [0.25] * 4, [0.25] * 4]
    for name, shape, alpha, releases, chain, expected in (
        ("a close pair", tiny, pair, 3, three, 2.792152),
        ("a close pair without a search", flat, limits, 12, stuck, 1.0),
        ("a wide pair without a limit", [[0, 1], [1e300, 0]], [[0, 10], [INF, 0]], 3, P, 0.1),
        ("a tiny limit", [[0, 1e-100], [1e-100, 0]], 1e-150, 1, P, 1e-150),
        ("a huge limit", [[0, 1e-200], [1e-200, 0]], [[0, 1e200], [1e200, 0]], 3, P, 1e299),
    ):
        scale = md.leakage.largest_scale(shape, alpha, releases, chain)
        assert scale == pytest.approx(expected, rel=2e-6), name


def test_one_matrix_at_a_time_keeps_its_starts() -> None:
    chains = [np.random.default_rng(seed).dirichlet(np.ones(4), 4) for seed in range(3)]
    task = _matrices._Task([alike(0.3, 4)] * 4, {"backward": md.leakage.Varying(chains)}, None)
    task.carried("backward")
    assert sorted(len(rows.starts) for rows in task._rows.values()) == [0, 0, 1]


def test_a_block_of_parts_of_rows_has_its_own_start() -> None:
    rng = np.random.default_rng(0)
    P, E = rng.dirichlet(np.ones(16), 16), close(rng.random((16, 16)) * (1 - np.eye(16)))
    rows = Rows(P)
    # As bytes, these two pairs of rows are the other pair of rows and its part.
    enclose(rows, np.array([5, 7]), np.array([1, 0]), E)
    part = np.arange(16)[None] == 0
    upper, lower = enclose(rows, np.array([5]), np.array([7]), E, part)
    expected = enclose(Rows(P), np.array([5]), np.array([7]), E, part)
    assert np.allclose((upper, lower), expected, rtol=0, atol=1e-12)


def pivots(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which each program from now on adds the iterations of its solver."""
    found: list[int] = []

    class Counted:
        def __init__(self, name: str) -> None:
            self.name = name

        def load(self) -> BackEnd:
            def solve(program: LinearProgram, options: Options, start: object = None) -> Answer:
                answer = find(self.name).load()(program, options, start)
                found.append(answer.iterations)
                return answer

            return solve

    monkeypatch.setattr(_transport, "find", Counted)
    return found


def test_a_step_starts_from_the_basis_of_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    P, E = rng.dirichlet(np.ones(8), 8), close(rng.random((8, 8)) * (1 - np.eye(8)))
    rows, spent = Rows(P), pivots(monkeypatch)
    step(rows, E)
    later, fresh = step(rows, 1.05 * E), step(Rows(P), 1.05 * E)
    first, warm, cold = spent
    assert 10 * warm < min(first, cold)
    assert np.allclose(later, fresh, rtol=0, atol=1e-12)
    # Edges without a bound leave, so that the program has another shape.
    E[0] = INF
    np.fill_diagonal(E, 0)
    assert np.array_equal(step(rows, E), step(Rows(P), E))


def test_a_basis_of_other_pairs_only_costs_time() -> None:
    rng = np.random.default_rng(4)
    E = close(rng.random((5, 5)) * (1 - np.eye(5)))
    first, second = (Rows(rng.dirichlet(np.ones(5), 5)) for _ in range(2))
    ends = step(first, E)
    step(second, 30 * E)
    first.starts = second.starts
    again = step(first, E)
    assert np.allclose(again, ends, rtol=0, atol=1e-12)
    assert (again[0] >= again[1]).all()


SEARCHES = [
    ("a line", lambda c: (math.log(c / 0.3), 1.0), 0.3, 3),
    ("a steep line", lambda c: (4 * math.log(c / 0.3), 1.0), 0.3, 4),
    ("a curve", lambda c: (math.log((c + 4 * c**2) / 3), c / 3), (math.sqrt(49) - 1) / 8, 6),
    ("a bend", lambda c: (max(math.log(c / 0.3), 6 * math.log(c / 0.31)), 0.1), 0.3, 7),
    ("nothing exceeds", lambda c: (math.log(c / 9), 1.0), 2.0, 2),
    ("a slow rise", lambda c: (1e-4 * math.log(c / 0.3), 1e-6), 0.3, 6),
    ("a release adds nothing", lambda c: (math.log((c + c**3) / 0.327), 0.0), 0.3, 7),
    ("a jump", lambda c: (-1.0 if c <= 0.3 else INF, 0.0), 0.3, 40),
    ("a flat part", lambda c: (max(math.log(c / 0.3), -0.1), 0.0), 0.3, 12),
]


@pytest.mark.parametrize(("name", "excess", "root", "most"), SEARCHES, ids=[row[0] for row in SEARCHES])
def test_a_search_tries_each_scale_once(name: str, excess: Any, root: float, most: int) -> None:
    tried: list[float] = []
    told: list[md.Progress] = []

    def counted(scale: float) -> tuple[float, float]:
        tried.append(scale)
        return excess(scale)  # type: ignore[no-any-return]

    found = _limits._largest_root(counted, 2.0, 2 / math.sqrt(12), Deadline(progress=told.append))
    assert root * (1 - 1e-6) <= found <= root * (1 + 1e-15), name
    assert excess(found)[0] <= 0
    assert found in tried
    assert len(set(tried)) == len(tried) <= most, tried
    assert [each.iteration for each in told] == list(range(1, len(tried) + 1))


def test_a_scale_is_told_before_it_is_tried() -> None:
    told: list[md.Progress] = []
    md.leakage.largest_scale(alike(1.0), 1.0, 4, [[0.8, 0.2], [0.2, 0.8]], progress=told.append)
    assert told[0].stage == "leakage at a scale of 0.5"
    assert 2 <= len(told) <= 5


def test_wrong_limits_are_refused() -> None:
    E, P = alike(0.1), [[0.8, 0.2], [0.2, 0.8]]
    supremum, scale = md.leakage.supremum, md.leakage.largest_scale
    assert_refused_at(
        [
            (lambda: supremum(E, backward=md.leakage.Varying([P])), "backward", "the horizon is infinite"),
            (lambda: supremum(E, forward=np.eye(3)), "forward", "another number of states"),
            (lambda: supremum(-E, backward=P), "epsilon[0,1]"),
            (lambda: supremum([[0, 1, 2]], backward=P), "epsilon", "square"),
            (lambda: supremum([E], backward=P), "epsilon"),
            (lambda: scale(E, 0, 2, P), "alpha"),
            (lambda: scale(E, INF, 2, P), "alpha"),
            (lambda: scale(E, 1, 0, P), "releases"),
            (lambda: scale(0 * E, 1, 2, P), "shape", "infinite"),
            (lambda: scale(E, [[0, INF], [INF, 0]], 2, P), "shape", "infinite"),
            (lambda: scale([[0, 1], [0, 0]], 1, 2, P), "alpha[1,0]", "every scale"),
            (lambda: scale([[0, INF], [1, 0]], [[0, 1], [1, 0]], 2, P), "alpha[0,1]", "every scale"),
            (lambda: scale(E, np.eye(3), 2, P), "alpha[0,0]"),
            (lambda: scale(E, alike(1, 3), 2, P), "alpha", "another number of states"),
            (lambda: scale(E, 1, 3, md.leakage.Varying([P])), "backward", "differs in length"),
            (lambda: scale(alike(1, 3), 1, 2, P), "backward", "as in shape"),
        ]
    )


def walk(side: int, stay: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a walk on side × side cells with 5 successors, and the distances in steps."""
    places = np.array(list(itertools.product(range(side), repeat=2)))
    D = np.abs(places[:, None] - places[None]).sum(axis=2).astype(float)
    moves = (D == 1) / (D == 1).sum(axis=1, keepdims=True)
    return stay * np.eye(side**2) + (1 - stay) * moves, D


@pytest.mark.slow
@pytest.mark.long
def test_a_city_of_a_hundred_cells_is_decided() -> None:
    P, D = walk(10, 0.2)
    limit = md.leakage.supremum(0.02 * D, backward=P)
    assert np.isfinite(limit.bounds).all()
    assert (limit.bounds - limit.lower).max() < 0.05 * limit.bounds.max()
