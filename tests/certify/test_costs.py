from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.certify import _costs as costs
from mechdesign.certify._costs import cost_per_secret, distortion, expected_cost, forbidden_answer, worst_cost

# Ties, zeros, numbers one step apart, subnormals and the largest floats.
floats = st.one_of(
    st.sampled_from([0.0, 1.0, np.nextafter(1, 2), 2.0, 5e-324, 2.0**-1022, 1e-300, 1e300, 1.7976931348623157e308]),
    st.floats(0, 10),
    st.floats(0, allow_nan=False, allow_infinity=False),
)


def arrays(draw: st.DrawFn, rows: int, columns: int, entries: st.SearchStrategy[object]) -> np.ndarray:
    lists = st.lists(st.lists(entries, min_size=columns, max_size=columns), min_size=rows, max_size=rows)
    return np.array(draw(lists))


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, int, np.ndarray, np.ndarray, np.ndarray]:
    n, m, k = (draw(st.integers(1, 4)) for _ in range(3))
    exponent = draw(st.sampled_from([1, 10, 62]))
    entries = st.one_of(st.sampled_from([0, 1, 2**exponent]), st.integers(0, 2**exponent))
    numerators = arrays(draw, n, m, entries).astype(np.int64)
    prior = arrays(draw, 1, n, st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 5e-324])))[0]
    return numerators, exponent, prior, arrays(draw, n, m, floats), arrays(draw, k, n, floats)


def exactly(array: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(value) for value in row] for row in array.tolist()]


@settings(max_examples=300)
@given(cases())
def test_costs_against_fractions(case: tuple[np.ndarray, int, np.ndarray, np.ndarray, np.ndarray]) -> None:
    numerators, exponent, prior, cost, _ = case
    per_secret = [
        sum((n * c for n, c in zip(ns, cs, strict=True)), Fraction(0)) / 2**exponent
        for ns, cs in zip(exactly(numerators), exactly(cost), strict=True)
    ]
    assert list(cost_per_secret(numerators, exponent, cost)) == per_secret
    assert worst_cost(numerators, exponent, cost) == max(per_secret)
    weighted = (Fraction(w) * c for w, c in zip(prior.tolist(), per_secret, strict=True))
    assert expected_cost(numerators, exponent, prior, cost) == sum(weighted, Fraction(0))


@settings(max_examples=300)
@given(cases())
def test_distortion_against_fractions(case: tuple[np.ndarray, int, np.ndarray, np.ndarray, np.ndarray]) -> None:
    numerators, exponent, prior, _, error = case
    total = Fraction(0)
    for column in exactly(numerators.T):
        total += min(
            sum((Fraction(w) * n * a for w, n, a in zip(prior.tolist(), column, row, strict=True)), Fraction(0))
            for row in exactly(error)
        )
    assert distortion(numerators, exponent, prior, error) == total / 2**exponent


def test_estimates_one_step_apart_are_told_apart() -> None:
    """Two rows of errors that floats cannot tell apart after summing."""
    n = 50
    error = np.full((3, n), 0.1)
    error[1, 7] = np.nextafter(0.1, 0)
    error[2, 9] = np.nextafter(0.1, 1)
    numerators = np.full((n, 2), 2**61)
    prior = np.full(n, 1 / n)
    expected = sum(Fraction(w) * Fraction(a) for w, a in zip(prior.tolist(), error[1].tolist(), strict=True))
    assert distortion(numerators, 62, prior, error) == expected


def test_unused_observables_add_nothing() -> None:
    numerators = np.array([[0, 2**62], [0, 2**62]])
    error = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert distortion(numerators, 62, np.array([0.25, 0.75]), error) == Fraction(1, 4)


def test_binary_numbers_are_taken_exactly() -> None:
    numerators = np.array([[1, 1]])
    cost = np.array([[0.1, 0.2]])
    assert expected_cost(numerators, 1, np.ones(1), cost) == (Fraction(0.1) + Fraction(0.2)) / 2
    assert expected_cost(numerators, 1, np.ones(1), cost) != Fraction(3, 20)


def least_error(prior: list[Fraction], row: list[Fraction], errors: list[list[Fraction]]) -> Fraction:
    return min(sum((w * n * a for w, n, a in zip(prior, row, each, strict=True)), Fraction(0)) for each in errors)


@pytest.mark.parametrize("seed", range(40))
def test_the_best_estimate_is_found_though_floats_rank_another_first(seed: int) -> None:
    """Sums of 30 products that differ by less than their rounding: which is the least, floats cannot tell."""
    random = np.random.default_rng(seed)
    n, k = 30, 12
    numerators = random.integers(0, 2**62, (n, 1))
    prior = random.random(n)
    error = random.random(n) * (1 + random.integers(-3, 4, (k, n)) * 2.0**-52)
    found = distortion(numerators, 62, prior, error)
    assert found == least_error(*exactly(prior[None]), exactly(numerators.T)[0], exactly(error)) / 2**62


@pytest.mark.parametrize("seed", range(40))
def test_estimates_whose_errors_underflow_are_told_apart(seed: int) -> None:
    """Forty products of 2**-1075 vanish in floats, and the estimate that they speak against looks the better one."""
    base = int(np.random.default_rng(seed).integers(0, 2**40)) * 5e-324
    numerators = np.full((41, 1), 2**61)
    numerators[-1] = 2**62
    prior = np.full(41, 5e-324)
    prior[-1] = 1.0
    error = np.ones((2, 41))
    error[1, :-1] = 0
    error[0, -1], error[1, -1] = base, base + 10 * 5e-324
    assert distortion(numerators, 62, prior, error) == Fraction(float(error[1, -1]))


def test_an_underflow_counts_as_often_as_the_errors_say() -> None:
    """π·p is too small for a float, and stands before an error near the largest one."""
    numerators = np.array([[1], [2**62]])
    prior = np.array([5e-324, 1.0])
    error = np.array([[1.7e308, 0.0], [0.0, 1e-40]])
    assert distortion(numerators, 62, prior, error) == Fraction(1e-40)


def test_forbidden_answers_that_are_given_are_found_in_order() -> None:
    cost = np.array([[1.0, np.inf, 1.0], [np.inf, 1.0, np.inf]])
    assert forbidden_answer(np.array([[1, 0, 1], [0, 2, 0]]), cost) is None
    assert forbidden_answer(np.array([[1, 0, 1], [0, 1, 1]]), cost) == (1, 2)
    assert forbidden_answer(np.array([[1, 1, 0], [1, 1, 1]]), cost) == (0, 1)


def test_chunks_of_rows_are_put_together_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = np.arange(1.0, 22.0).reshape(7, 3)
    numerators = np.tile([1, 0, 1], (7, 1))
    whole = cost_per_secret(numerators, 1, cost)
    assert whole == tuple(Fraction(6 * s + 4, 2) for s in range(7))
    for size in (1, 3, 6, 7, 20):
        monkeypatch.setattr(costs, "_BLOCK_ENTRIES", size)
        assert cost_per_secret(numerators, 1, cost) == whole


def test_estimates_that_overflow_are_not_lost() -> None:
    """The prior may sum to a little more than 1, and the error of the worse estimate then is no float."""
    largest = 1.7976931348623157e308
    prior = np.array([0.5, 0.5 + 1e-10])
    numerators = np.array([[2**62], [2**62]])
    for second in (largest, largest / 2):
        error = np.array([[largest, largest], [largest, second]])
        assert distortion(numerators, 62, prior, error) == least_error(
            exactly(prior[None])[0], [Fraction(1)] * 2, exactly(error)
        )


@pytest.mark.parametrize(("chunk", "rows"), [(1, [1] * 5), (4, [2, 2, 1]), (2**20, [5])])
def test_so_many_entries_are_python_integers_at_a_time(
    monkeypatch: pytest.MonkeyPatch, chunk: int, rows: list[int]
) -> None:
    assert costs._BLOCK_ENTRIES == 2**20
    sizes: list[int] = []
    integers = costs._integers
    monkeypatch.setattr(costs, "_BLOCK_ENTRIES", chunk)
    monkeypatch.setattr(costs, "_integers", lambda values: (sizes.append(values.size), integers(values))[1])
    assert cost_per_secret(np.full((5, 2), 2**61), 62, np.arange(10.0).reshape(5, 2)) == (0.5, 2.5, 4.5, 6.5, 8.5)
    assert sizes == [2 * count for count in rows]


def test_only_estimates_that_may_be_the_best_are_summed_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    integers = costs._integers
    monkeypatch.setattr(costs, "_integers", lambda values: (sizes.append(values.size), integers(values))[1])
    random = np.random.default_rng(5)
    n = 4
    base = random.random(n)
    # One that is best by one part in 10**12, one as good in floats, one worse by as much.
    best = base * (1 - 1e-12)
    error = np.array([base, best, np.nextafter(best, 1), base * (1 + 1e-12), best])
    numerators = random.integers(0, 2**62, (n, 1))
    prior = random.random(n)
    found = distortion(numerators, 62, prior, error)
    assert found == least_error(exactly(prior[None])[0], exactly(numerators.T)[0], exactly(error)) / 2**62
    # The prior, and the errors of the two; what is alike counts once.
    assert sizes == [n, 2 * n]


@pytest.mark.parametrize(("steps", "sums"), [(0, 1), (1, 2), (9, 2), (11, 1)])
def test_the_margin_is_twice_what_roundings_can_be(monkeypatch: pytest.MonkeyPatch, steps: int, sums: int) -> None:
    """For one secret it is 5 · 2**-52 on either side."""
    sizes: list[int] = []
    integers = costs._integers
    monkeypatch.setattr(costs, "_integers", lambda values: (sizes.append(values.size), integers(values))[1])
    assert distortion(np.array([[2**62]]), 62, np.ones(1), np.array([[1.0], [1 + steps * 2.0**-52]])) == 1
    assert sizes == [1, sums]
