"""Exact costs and distortions, against fractions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from bundles import flushing

from mechdesign.certify import _costs as costs
from mechdesign.certify._costs import cost_per_secret, distortion, expected_cost, forbidden_answer, worst_cost

# Ties, zeros, numbers one step apart, subnormals and the largest floats.
ODD = np.array([0.0, 1.0, np.nextafter(1, 2), 2.0, 5e-324, 2.0**-1022, 1e-300, 1e300, 1.7976931348623157e308])


def odd(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return odd floats, ordinary ones, and ones of any magnitude."""
    sorts = random.integers(0, 3, shape)
    plain, any_size = 10 * random.random(shape), random.random(shape) * 10.0 ** random.uniform(-330, 307, shape)
    return np.choose(sorts, [random.choice(ODD, shape), plain, any_size])


def cases(count: int) -> Iterator[tuple[int, np.ndarray, int, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield a seed, numerators, exponent, prior, costs and errors of small problems."""
    for seed in range(count):
        random = np.random.default_rng(seed)
        n, m, k = random.integers(1, 5, 3).tolist()
        exponent = [1, 10, 62][seed % 3]
        ends = random.choice([0, 1, 2**exponent], (n, m))
        numerators = np.where(random.random((n, m)) < 0.5, ends, random.integers(0, 2**exponent, (n, m)))
        prior = np.where(random.random(n) < 0.5, random.choice([0.0, 0.25, 5e-324], n), random.random(n))
        yield seed, numerators, exponent, prior, odd(random, (n, m)), odd(random, (k, n))


@pytest.fixture
def summed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect how many floats become integers, each time."""
    sizes: list[int] = []
    integers = costs._integers
    monkeypatch.setattr(costs, "_integers", lambda values: (sizes.append(values.size), integers(values))[1])
    return sizes


def exactly(array: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(value) for value in row] for row in array.tolist()]


def test_costs_against_fractions() -> None:
    for seed, numerators, exponent, prior, cost, _ in cases(200):
        per_secret = [
            sum((n * c for n, c in zip(ns, cs, strict=True)), Fraction(0)) / 2**exponent
            for ns, cs in zip(exactly(numerators), exactly(cost), strict=True)
        ]
        assert list(cost_per_secret(numerators, exponent, cost)) == per_secret, seed
        assert worst_cost(numerators, exponent, cost) == max(per_secret), seed
        weighted = (Fraction(w) * c for w, c in zip(prior.tolist(), per_secret, strict=True))
        assert expected_cost(numerators, exponent, prior, cost) == sum(weighted, Fraction(0)), seed


def test_distortion_against_fractions() -> None:
    for seed, numerators, exponent, prior, _, error in cases(200):
        columns, errors = exactly(numerators.T), exactly(error)
        total = sum((least_error(exactly(prior[None])[0], column, errors) for column in columns), Fraction(0))
        assert distortion(numerators, exponent, prior, error) == total / 2**exponent, seed


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


def test_the_best_estimate_is_found_though_floats_rank_another_first() -> None:
    """Sums of 30 products that differ by less than their rounding: which is the least, floats cannot tell."""
    for seed in range(40):
        random = np.random.default_rng(seed)
        n, k = 30, 12
        numerators = random.integers(0, 2**62, (n, 1))
        prior = random.random(n)
        error = random.random(n) * (1 + random.integers(-3, 4, (k, n)) * 2.0**-52)
        found = distortion(numerators, 62, prior, error)
        assert found == least_error(*exactly(prior[None]), exactly(numerators.T)[0], exactly(error)) / 2**62, seed


def test_estimates_whose_errors_underflow_are_told_apart() -> None:
    """Forty products of 2**-1075 vanish in floats, and the estimate that they speak against looks the better one."""
    numerators = np.full((41, 1), 2**61)
    numerators[-1] = 2**62
    prior = np.full(41, 5e-324)
    prior[-1] = 1.0
    error = np.ones((2, 41))
    error[1, :-1] = 0
    for seed in range(40):
        base = int(np.random.default_rng(seed).integers(0, 2**40)) * 5e-324
        error[0, -1], error[1, -1] = base, base + 10 * 5e-324
        assert distortion(numerators, 62, prior, error) == Fraction(float(error[1, -1])), seed


def test_the_margin_for_underflow_is_that_of_each_term_and_unit_of_error_on_either_side(summed: list[int]) -> None:
    """An estimate that differs by twice n · 2**-1021 · (1 + the largest error) may be as good, and none beyond it."""
    for n, largest in ((1, 0.0), (2, 0.0), (8, 0.0), (2, 1.0), (3, 6.0)):
        apart = 2 * n * 2.0**-1021 * (1 + largest)
        for factor, sums in ((1 - 2.0**-40, 2), (1 + 2.0**-40, 1)):
            summed.clear()
            error = np.zeros((2, n))
            error[:, -1] = largest
            error[1, 0] = apart * factor
            # The other secrets have probability 0.
            assert distortion(np.full((n, 1), 2**62), 62, np.eye(1, n)[0], error) == 0
            assert summed == [n, sums * n], (n, largest, factor)


def vanishing(n: int, prior: float, numerator: int, error: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a case in which n products are below the least normal float.

    The estimate 1 has an error of one term less in a float that is not flushed, and is the better one.
    """
    numerators = np.full((n + 1, 1), numerator)
    numerators[-1] = 2**62
    priors = np.full(n + 1, prior)
    priors[-1] = 1.0
    errors = np.zeros((2, n + 1))
    errors[0, :-1] = error
    errors[1, -1] = float((n - 1) * Fraction(prior) * numerator / 2**62 * Fraction(error))
    return numerators, priors, errors


def test_what_a_processor_takes_for_zero_is_within_the_margin() -> None:
    """Where numbers below 2**-1022 are flushed, sums lose up to 2**-1022 for each product and each unit of error."""
    cases = {
        "products with the channel": vanishing(41, 2.0**-1000, 2**40 - 1, 1.0),
        "products with large errors": vanishing(3, 2.0**-1000, 2**40 - 1, 2.0**40),
        "products with small errors": vanishing(41, 2.0**-600, 2**62, 2.0**-423 * (1 + 2.0**-52)),
    }
    right = {name: distortion(case[0], 62, *case[1:]) for name, case in cases.items()}
    with flushing():
        found = {name: distortion(case[0], 62, *case[1:]) for name, case in cases.items()}
    assert found == right
    for name, (numerators, prior, error) in cases.items():
        exact = [exactly(array) for array in (prior[None], numerators.T, error)]
        assert right[name] == least_error(exact[0][0], exact[1][0], exact[2]) / 2**62, name


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


def test_so_many_entries_are_python_integers_at_a_time(monkeypatch: pytest.MonkeyPatch, summed: list[int]) -> None:
    assert costs._BLOCK_ENTRIES == 2**20
    for chunk, rows in ((1, [1] * 5), (4, [2, 2, 1]), (2**20, [5])):
        summed.clear()
        monkeypatch.setattr(costs, "_BLOCK_ENTRIES", chunk)
        assert cost_per_secret(np.full((5, 2), 2**61), 62, np.arange(10.0).reshape(5, 2)) == (0.5, 2.5, 4.5, 6.5, 8.5)
        assert summed == [2 * count for count in rows], chunk


def test_only_estimates_that_may_be_the_best_are_summed_exactly(summed: list[int]) -> None:
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
    assert summed == [n, 2 * n]


def test_the_margin_is_twice_what_roundings_can_be(summed: list[int]) -> None:
    """For one secret it is 5 · 2**-52 on either side."""
    for steps, sums in ((0, 1), (1, 2), (9, 2), (11, 1)):
        summed.clear()
        assert distortion(np.array([[2**62]]), 62, np.ones(1), np.array([[1.0], [1 + steps * 2.0**-52]])) == 1
        assert summed == [1, sums], steps
