"""Every enclosure that the lower bound is made of, against exact rationals, and the whole of it to the last bit.

The bits matter: a certificate states the lower bound, and verifying an old one recomputes it. Many roundings of one
step each are needed only together with others, so that the total alone would not show a missing one.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from bracket_examples import by_the_second, case, magnitude

from mechdesign.certify import _bracket as bracket
from mechdesign.certify import second_verifier
from mechdesign.certify._bracket import _constant, _floor_terms, _growth, _pair_terms, _sums, lower_bound
from mechdesign.certify._claims import ExponentBound, Floor, PairBound
from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._exact import nearest
from mechdesign.certify._stated import Stated

ONE = 2**62


def cell_sums(cells: np.ndarray, values: np.ndarray, size: int) -> list[Fraction]:
    sums = [Fraction(0)] * size
    for cell, value in zip(cells.tolist(), values.tolist(), strict=True):
        sums[cell] += Fraction(value)
    return sums


def require_enclosed(cells: np.ndarray, values: np.ndarray, size: int) -> None:
    lower, upper = _sums(cells, values, size)
    for low, true, high in zip(lower.tolist(), cell_sums(cells, values, size), upper.tolist(), strict=True):
        assert 0 <= Fraction(low) <= true <= Fraction(high)
    # Where no value is above 0, the second verifier lists no cell.
    known = second_verifier.sums(list(zip(cells.tolist(), values.tolist(), strict=True)))
    assert list(zip(lower.tolist(), upper.tolist(), strict=True)) == [
        known.get(cell, (0.0, 0.0)) for cell in range(size)
    ]


def test_sums_of_values_just_below_one_are_enclosed() -> None:
    """Such values carry into the high parts' last bit as often as any can."""
    for j in range(1, 50):
        random = np.random.default_rng(j)
        for count in random.integers(1, 401, 3).tolist():
            values = 1 - random.random(count) * 2.0**-j
            require_enclosed(np.zeros(count, dtype=np.int64), values, 1)


def test_small_sums_beside_large_ones_are_enclosed() -> None:
    """The slack is for the low parts, which are all that such a cell has."""
    random = np.random.default_rng(1)
    for scale in (1.0, 2.0**-52, 2.0**-80, 2.0**-300):
        for count in (2, 50, 50, 400):
            values = np.concatenate([random.random(count), random.random(count) * scale])
            require_enclosed(np.repeat([0, 1], count), values, 3)


def test_sums_of_the_smallest_numbers_are_enclosed() -> None:
    for value in (5e-324, 2.0**-1074 * 3, 2.0**-1022, 1e-310):
        for count in (1, 3, 100):
            require_enclosed(np.zeros(count, dtype=np.int64), np.full(count, value), 2)


def test_the_largest_sums_that_are_still_enclosed() -> None:
    for value in (9.9e289, 1e290, 1e291):
        lower, upper = _sums(np.array([1]), np.array([value]), 2)
        if value < 1e290:
            assert 0 < value - lower[1] <= 1e-15 * value
            assert 0 < upper[1] - value <= 1e-15 * value
            assert (lower[0], upper[0]) == (0, 0)
        else:
            assert (lower.tolist(), upper.tolist()) == ([0, 0], [math.inf, math.inf])


def test_sums_of_nothing_and_of_zeros() -> None:
    for cells, values in (([], []), ([1, 1], [0.0, 0.0])):
        lower, upper = _sums(np.array(cells, dtype=np.int64), np.array(values), 3)
        assert lower.tolist() == upper.tolist() == [0, 0, 0]


def test_pair_terms_enclose_the_exact_sums() -> None:
    for seed in range(60):
        random = np.random.default_rng(seed)
        n, m, count, scale = 3, 2, int(random.integers(1, 61)), [1.0, 1e-280, 1e150][seed % 3]
        bound = PairBound.metric(Fraction(3, 7), random.random((n, n)) * 3)
        sources = random.integers(0, n, count)
        targets = (sources + random.integers(1, n, count)) % n
        entry = PairMultipliers(sources, targets, random.integers(0, m, count), random.random(count) * scale)
        up, down = _pair_terms(_growth(bound, n), entry, slice(0, m), "x")
        pairs = zip(bound.sources.tolist(), bound.targets.tolist(), strict=True)
        factors = dict(zip(pairs, map(Fraction, bound.factors_above().tolist()), strict=True))
        raised = {(s, o): Fraction(0) for s in range(n) for o in range(m)}
        lowered = dict(raised)
        for s, t, o, y in zip(
            sources.tolist(), targets.tolist(), entry.observables.tolist(), entry.values, strict=True
        ):
            raised[s, o] += Fraction(y)
            lowered[t, o] += factors[s, t] * Fraction(y)
        for place in raised:
            assert (1 - Fraction(1, 2**49)) * raised[place] <= Fraction(up[place]) <= raised[place]
            assert lowered[place] <= Fraction(down[place]) <= (1 + Fraction(1, 2**49)) * lowered[place]


def test_every_product_of_a_factor_and_a_multiplier_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    weights, values = random.random(200), random.random(200)
    bound = ExponentBound("metric", Fraction(1), np.arange(200), np.arange(1, 201), weights)
    seen: list[np.ndarray] = []

    def spy(cells: np.ndarray, added: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        seen.append(added)
        return _sums(cells, added, size)

    monkeypatch.setattr(bracket, "_sums", spy)
    entry = PairMultipliers(bound.sources, bound.targets, np.zeros(200, dtype=np.int64), values)
    _pair_terms(_growth(bound, 201), entry, slice(0, 1), "x")
    first, second = seen
    assert first.tolist() == values.tolist()
    for product, factor, value in zip(second.tolist(), bound.factors_above().tolist(), values.tolist(), strict=True):
        assert Fraction(factor) * Fraction(value) <= Fraction(product) <= Fraction(math.nextafter(factor * value, 9))


def test_floor_terms_enclose_the_exact_sums() -> None:
    for seed in range(60):
        random = np.random.default_rng(seed)
        k, n, m, count, scale = 4, 3, 2, int(random.integers(1, 31)), [1.0, 1e-300, 5e-324, 1e200][seed % 4]
        claim = Floor(Fraction(int(random.integers(1, 10**9)), 10**9 + 7), random.random((k, n)))
        prior = random.random(n)
        observables = np.concatenate([np.arange(m), random.integers(0, m, count)])
        values = random.random(count + m) * scale
        entry = FloorMultipliers(random.integers(0, k, count + m), observables, values)
        attack, above = _floor_terms(claim, entry, prior, slice(0, m))
        below = _constant(claim, attack)
        attacks = [sum(map(Fraction, values[observables == o].tolist())) for o in range(m)]
        constant = min(attacks) * claim.minimum
        assert Fraction(below) <= constant
        assert Fraction(below) >= constant * (1 - Fraction(1, 2**49)) - Fraction(1, 2**1060)
        for s in range(n):
            for o in range(m):
                cells = zip(entry.estimates.tolist(), observables.tolist(), values.tolist(), strict=True)
                errors = (
                    (Fraction(q), Fraction(float(claim.error[estimate, s]))) for estimate, c, q in cells if c == o
                )
                true = Fraction(float(prior[s])) * sum(q * a for q, a in errors)
                assert true <= Fraction(above[s, o]) <= true * (1 + Fraction(1, 2**45)) + Fraction(1, 2**1040)


def test_the_constant_of_a_floor_is_rounded_down_once() -> None:
    """Where the product rounds up to nearest, it is the float below that counts."""
    up = 0
    for numerator in range(1, 200):
        claim = Floor(Fraction(numerator, 199), [[1.0]])
        below = _constant(claim, _floor_terms(claim, FloorMultipliers([0], [0], [1.0]), np.ones(1), slice(0, 1))[0])
        attack = Fraction(float(_sums(np.zeros(1, dtype=np.int64), np.ones(1), 1)[0][0]))
        true = attack * claim.minimum
        assert Fraction(below) <= true < Fraction(math.nextafter(below, 9))
        up += Fraction(nearest(true)) > true
    assert up > 20
    exactly = Floor(Fraction(1, 4), [[1.0]])
    below = _constant(exactly, _floor_terms(exactly, FloorMultipliers([0], [0], [1.0]), np.ones(1), slice(0, 1))[0])
    assert below == _sums(np.zeros(1, dtype=np.int64), np.ones(1), 1)[0][0] / 4
    huge = Floor(Fraction(10**300), [[1.0]])
    assert _constant(huge, _floor_terms(huge, FloorMultipliers([0], [0], [1.0]), np.ones(1), slice(0, 1))[0]) == 1e290


def test_what_may_have_underflowed_is_allowed_for() -> None:
    claim = Floor(Fraction(1), [[0.0, 0.0]])
    _, above = _floor_terms(claim, FloorMultipliers([0], [0], [1.0]), np.array([1.0, 0.5]), slice(0, 2))
    assert above.tolist() == [[2 * 2.0**-1050] * 2, [1.5 * 2.0**-1050] * 2]


@np.errstate(over="ignore", invalid="ignore")
def test_what_overflows_lowers_without_limit() -> None:
    claim = Floor(Fraction(1), [[1.7e308, 0.0]])
    _, above = _floor_terms(claim, FloorMultipliers([0], [0], [1e280]), np.array([0.5, 0.5]), slice(0, 2))
    assert above[0, 0] == math.inf
    assert above[1, 0] < 1e-300
    # No one can tell what 0 times infinity stands for.
    _, above = _floor_terms(claim, FloorMultipliers([0, 0], [0, 0], [1e280, 1e300]), np.array([0.0, 1.0]), slice(0, 2))
    assert above[:, 0].tolist() == [math.inf, math.inf]


def test_bounds_that_are_not_zero_to_the_last_bit() -> None:
    """Small multipliers leave a bound well above 0, in which every rounding shows."""
    for seed in range(40):
        objective = ["expected", "worst"][seed // 2 % 2]
        random = np.random.default_rng(seed)
        n, m, k = 3, 3, 2
        prior = random.random(n)
        pair = PairMultipliers([0, 1, 2, 0], [1, 2, 0, 1], [0, 1, 2, 0], random.random(4) * 0.01)
        floor = FloorMultipliers([0, 1, 0, 1, 1], [0, 1, 2, 0, 0], random.random(5) * 0.01)
        weights = random.random(n) if objective == "worst" and seed % 2 else None
        cost = 1 + random.random((n, m))
        cost[0, 1 + seed % 2] = math.inf
        evidence = Evidence(
            np.tile(np.array([[ONE, 0, 0]]), (n, 1)),
            62,
            prior / prior.sum(),
            cost,
            objective,
            (
                Stated.metric(Fraction(3, 5), random.random((n, n))),
                Stated.distortion(Fraction(1, 7), random.random((k, n))),
                Stated.floor("own", Fraction(1, 9), random.random((k, n)), [0.5, 0.25, 0.25]),
            ),
            Multipliers((pair, floor, floor), weights),
        )
        found = lower_bound(evidence)
        assert found > 0.5
        assert found == by_the_second(evidence)[1]
        plain = Evidence(*(getattr(evidence, name) for name in EVIDENCE))
        assert lower_bound(plain) == by_the_second(plain)[1]


EVIDENCE = ("numerators", "exponent", "prior", "cost", "objective", "requirements")


def one_row(cost: float, weight: float, objective: str = "worst") -> Evidence:
    multipliers = Multipliers((), [weight]) if objective == "worst" else None
    return Evidence([[2]], 1, [1.0], [[cost]], objective, (), multipliers)


def test_a_single_answer_bounds_its_own_cost() -> None:
    random = np.random.default_rng(4)
    for cost, weight in zip(random.random(100).tolist(), random.random(100).tolist(), strict=True):
        for objective in ("expected", "worst"):
            evidence = one_row(cost, weight, objective)
            assert Fraction(cost) * (1 - Fraction(1, 2**48)) <= Fraction(lower_bound(evidence)) < cost
            assert lower_bound(evidence) == by_the_second(evidence)[1]


def test_weights_and_terms_too_large_to_add_prove_nothing() -> None:
    assert lower_bound(one_row(1.0, 1e290)) == pytest.approx(1, rel=1e-14)
    assert lower_bound(one_row(1.0, 1.0000001e290)) == 0
    for weights in ([1.0, 1.0000001e290], [1.0000001e290, 1.0]):
        pair = Evidence([[2], [2]], 1, [0.5, 0.5], [[1.0], [1.0]], "worst", (), Multipliers((), weights))
        assert lower_bound(pair) == 0
    # A product that overflows is cut off, which only lowers the bound.
    assert lower_bound(one_row(1e200, 1e200)) == pytest.approx(1e90, rel=1e-14)
    assert lower_bound(one_row(1e300, 1.0, "expected")) == pytest.approx(1e290, rel=1e-14)


def test_observables_in_parts_prove_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(60):
        evidence = case(seed)
        whole = lower_bound(evidence)
        with monkeypatch.context() as patch:
            patch.setattr(bracket, "_BLOCK_ENTRIES", (seed % 3 + 1) * evidence.secrets)
            parts = lower_bound(evidence)
        assert Fraction(parts) <= by_the_second(evidence)[0], seed
        assert abs(parts - whole) <= 1e-12 * float(min(magnitude(evidence), 10**300)), seed
