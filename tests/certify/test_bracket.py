from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from mechdesign.certify._bracket import _sums, lower_bound
from mechdesign.certify._claims import Floor, PairBound
from mechdesign.certify._costs import expected_cost, worst_cost
from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._exponential import exp_upper
from mechdesign.certify._stated import Stated
from mechdesign.errors import CertificateError

ONE = 2**62


def constant_channel(n: int, m: int) -> np.ndarray:
    """Return the channel that always gives observable 0."""
    numerators = np.zeros((n, m), dtype=np.int64)
    numerators[:, 0] = ONE
    return numerators


def exact_bound(evidence: Evidence) -> tuple[Fraction, Fraction]:
    """Return the bound in fractions, and the sum of all the terms' magnitudes that it was made from."""
    n, m = evidence.numerators.shape
    multipliers = evidence.multipliers
    assert multipliers is not None
    prior = [Fraction(w) for w in evidence.prior.tolist()]
    weights = prior
    if evidence.objective == "worst" and multipliers.weights is not None:
        weights = [Fraction(w) for w in multipliers.weights.tolist()]
    allowed = [[o for o in range(m) if math.isfinite(evidence.cost[s, o])] for s in range(n)]
    reduced = {(s, o): Fraction(0) for s in range(n) for o in range(m)}
    reduced |= {(s, o): weights[s] * Fraction(float(evidence.cost[s, o])) for s in range(n) for o in allowed[s]}
    size = {key: abs(value) for key, value in reduced.items()}
    constant = Fraction(0)

    def add(key: tuple[int, int], value: Fraction) -> None:
        reduced[key] += value
        size[key] += abs(value)

    for claim, entry in zip(evidence.claims(), multipliers.requirements, strict=True):
        if isinstance(entry, PairMultipliers):
            assert isinstance(claim, PairBound)
            pairs = zip(claim.sources.tolist(), claim.targets.tolist(), strict=True)
            factors = dict(zip(pairs, exp_upper(claim.epsilon, claim.weights).tolist(), strict=True))
            columns = (entry.sources, entry.targets, entry.observables, entry.values)
            for s, t, o, y in zip(*(column.tolist() for column in columns), strict=True):
                if math.isfinite(factors[s, t]):
                    add((s, o), Fraction(y))
                    add((t, o), -Fraction(factors[s, t]) * Fraction(y))
        else:
            assert isinstance(claim, Floor)
            sums = [Fraction(0)] * m
            for estimate, o, q in zip(
                *(c.tolist() for c in (entry.estimates, entry.observables, entry.values)), strict=True
            ):
                sums[o] += Fraction(q)
                for s in range(n):
                    add((s, o), -prior[s] * Fraction(q) * Fraction(float(claim.error[estimate, s])))
            constant += min(sums) * claim.minimum
    total = constant + sum(min(reduced[s, o] for o in allowed[s]) for s in range(n))
    magnitude = constant + sum(max(size[s, o] for o in range(m)) for s in range(n))
    if evidence.objective == "worst":
        return total / sum(weights), magnitude / sum(weights)
    return total, magnitude


@st.composite
def cases(draw: st.DrawFn) -> Evidence:
    n, m, k = draw(st.integers(2, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    scale = 10.0 ** draw(st.integers(-12, 3))
    distance = random.random((n, n)) * draw(st.sampled_from([1e-9, 1.0, 100.0, 1e4]))
    count = draw(st.integers(0, 30))
    sources = random.integers(0, n, count)
    targets = (sources + random.integers(1, n, count)) % n
    pair = PairMultipliers(sources, targets, random.integers(0, m, count), random.random(count) ** 4 * scale)
    attacks = draw(st.integers(0, 10))
    floor = FloorMultipliers(
        random.integers(0, k, attacks), random.integers(0, m, attacks), random.random(attacks) * scale
    )
    prior = random.random(n)
    prior /= prior.sum()
    cost = random.random((n, m))
    cost[random.random((n, m)) < draw(st.sampled_from([0.0, 0.5]))] = math.inf
    cost[:, 0] = np.minimum(cost[:, 0], 1.0)
    weights = draw(st.sampled_from([None, random.random(n), np.eye(n)[0], random.random(n) * 1e-300]))
    return Evidence(
        constant_channel(n, m),
        62,
        prior,
        cost,
        draw(st.sampled_from(["expected", "worst"])),
        (Stated.metric(Fraction(3, 5), distance), Stated.distortion(Fraction(1, 7), random.random((k, n)))),
        Multipliers((pair, floor), weights),
    )


@settings(max_examples=400)
@given(cases())
def test_below_the_exact_value_and_close(evidence: Evidence) -> None:
    found = Fraction(lower_bound(evidence))
    true, magnitude = exact_bound(evidence)
    assert found <= max(true, 0)
    assert found >= true - magnitude / 10**14


def program(evidence: Evidence) -> tuple[float, Multipliers]:
    """Solve the design program with SciPy; return its value and multipliers, cut off at zero."""
    n, m = evidence.numerators.shape
    worst = evidence.objective == "worst"
    claims = evidence.claims()
    floors = sum(isinstance(claim, Floor) for claim in claims)
    width = n * m + floors * m + 1
    rows: list[np.ndarray] = []
    limits: list[float] = []
    kept: list[Any] = []
    seen = 0
    for index, claim in enumerate(claims):
        for o in range(m):
            if isinstance(claim, PairBound):
                for s, t, w in zip(claim.sources.tolist(), claim.targets.tolist(), claim.weights.tolist(), strict=True):
                    row = np.zeros(width)
                    row[s * m + o], row[t * m + o] = 1, -math.exp(claim.epsilon * w)
                    rows.append(row)
                    limits.append(0.0)
                    kept.append((index, s, t, o))
            else:
                for estimate, errors in enumerate(claim.error):
                    row = np.zeros(width)
                    row[o : n * m : m] = -evidence.prior * errors
                    row[n * m + seen * m + o] = 1
                    rows.append(row)
                    limits.append(0.0)
                    kept.append((index, estimate, o))
        if isinstance(claim, Floor):
            row = np.zeros(width)
            row[n * m + seen * m : n * m + (seen + 1) * m] = -1
            rows.append(row)
            limits.append(-float(claim.minimum))
            kept.append(None)
            seen += 1
    objective = np.zeros(width)
    if worst:
        objective[-1] = 1
        for s in range(n):
            row = np.zeros(width)
            row[s * m : (s + 1) * m] = evidence.cost[s]
            row[-1] = -1
            rows.append(row)
            limits.append(0.0)
            kept.append(s)
    else:
        objective[: n * m] = (evidence.prior[:, None] * evidence.cost).ravel()
    sums = np.zeros((n, width))
    for s in range(n):
        sums[s, s * m : (s + 1) * m] = 1
    free = [(0, None)] * (n * m) + [(None, None)] * (floors * m + 1)
    result = linprog(objective, np.array(rows), limits, sums, np.ones(n), bounds=free, method="highs")
    assert result.status == 0
    values = np.maximum(-result.ineqlin.marginals, 0)
    entries: list[PairMultipliers | FloorMultipliers] = []
    for index, claim in enumerate(claims):
        mine = [(key[1:], y) for key, y in zip(kept, values, strict=True) if isinstance(key, tuple) and key[0] == index]
        columns = np.array([key for key, _ in mine]).T
        made = PairMultipliers if isinstance(claim, PairBound) else FloorMultipliers
        entries.append(made(*columns, np.array([y for _, y in mine])))
    weights = np.array([y for key, y in zip(kept, values, strict=True) if isinstance(key, int)]) if worst else None
    return float(result.fun), Multipliers(tuple(entries), weights)


def problem(seed: int, objective: str, *, floor: bool, kind: str) -> Evidence:
    random = np.random.default_rng(seed)
    n, m = 5, 4
    points = random.random((n, 2)) * 3
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    prior = random.random(n)
    prior /= prior.sum()
    requirements = {
        "metric": Stated.metric(Fraction(3, 5), distance),
        "threshold": Stated.threshold(Fraction(1, 2), distance, Fraction(3, 2)),
        "graph": Stated.graph(Fraction(1), [[0, 1], [1, 2], [3, 4]]),
    }
    stated = [requirements[kind]]
    if floor:
        error = random.random((3, n))
        most = float((error @ prior).min())
        stated.append(Stated.distortion(Fraction(0.9 * most).limit_denominator(1000), error))
    return Evidence(constant_channel(n, m), 62, prior, random.random((n, m)), objective, tuple(stated))


@pytest.mark.parametrize("kind", ["metric", "threshold", "graph"])
@pytest.mark.parametrize("objective", ["expected", "worst"])
@pytest.mark.parametrize("floor", [False, True])
def test_a_solvers_multipliers_close_the_gap(kind: str, objective: str, floor: bool) -> None:
    for seed in range(4):
        evidence = problem(seed, objective, floor=floor, kind=kind)
        value, multipliers = program(evidence)
        found = lower_bound(_with(evidence, multipliers))
        assert value - 1e-9 <= found <= value + 1e-9


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.sampled_from(["expected", "worst"]), st.floats(0, 2))
def test_no_multipliers_lift_the_bound_above_a_private_channel(seed: int, objective: str, scale: float) -> None:
    """The constant channel keeps every pair bound; perturbed optimal multipliers must not claim that it cannot."""
    evidence = problem(seed, objective, floor=False, kind="metric")
    _, optimal = program(evidence)
    random = np.random.default_rng(seed)
    (entry,) = optimal.requirements
    assert isinstance(entry, PairMultipliers)
    values = entry.values * (1 + scale * (random.random(len(entry.values)) - 0.5))
    moved = PairMultipliers(entry.sources, entry.targets, entry.observables, values)
    found = lower_bound(_with(evidence, Multipliers((moved,), optimal.weights)))
    n, m = evidence.numerators.shape
    for o in range(m):
        channel = np.zeros((n, m), dtype=np.int64)
        channel[:, o] = ONE
        if objective == "worst":
            assert found <= worst_cost(channel, 62, evidence.cost)
        else:
            assert found <= expected_cost(channel, 62, evidence.prior, evidence.cost)


def _with(evidence: Evidence, multipliers: Multipliers | None) -> Evidence:
    fields = ("numerators", "exponent", "prior", "cost", "objective", "requirements")
    return Evidence(*(getattr(evidence, name) for name in fields), multipliers)


def test_without_multipliers() -> None:
    evidence = problem(0, "expected", floor=True, kind="metric")
    expected = sum(Fraction(w) * Fraction(c) for w, c in zip(evidence.prior, evidence.cost.min(axis=1), strict=True))
    assert 0 <= expected - Fraction(lower_bound(evidence)) < Fraction(1, 10**14)


def test_a_stray_multiplier_is_refused() -> None:
    evidence = problem(0, "expected", floor=False, kind="graph")
    stray = Multipliers((PairMultipliers([0, 0], [1, 2], [0, 0], [1.0, 1.0]),))
    with pytest.raises(CertificateError, match=r"requirements\[0\] \(graph privacy\).*\(0, 2\)") as caught:
        lower_bound(_with(evidence, stray))
    assert caught.value.pair == (0, 2)


def test_swapping_a_pair_is_another_bound() -> None:
    """The multiplier of (s, t) counts for p(o|s) <= g p(o|t), not the other way round."""
    cost = np.array([[0.0, 1.0], [1.0, 0.0]])
    stated = (Stated.graph(Fraction(1), [[0, 1]]),)
    evidence = Evidence(constant_channel(2, 2), 62, [0.5, 0.5], cost, "expected", stated)
    best, optimal = program(evidence)
    assert best == pytest.approx(1 / (1 + math.e))
    (entry,) = optimal.requirements
    assert isinstance(entry, PairMultipliers)
    assert lower_bound(_with(evidence, optimal)) == pytest.approx(best, abs=1e-12)
    swapped = PairMultipliers(entry.targets, entry.sources, entry.observables, entry.values)
    assert lower_bound(_with(evidence, Multipliers((swapped,)))) == 0


@pytest.mark.parametrize("value", [1e-320, 1e200, 1e300, 1.7e308])
@pytest.mark.parametrize("objective", ["expected", "worst"])
def test_extreme_multipliers_and_weights(value: float, objective: str) -> None:
    evidence = problem(3, objective, floor=True, kind="metric")
    pair = PairMultipliers([0, 0], [1, 1], [0, 0], [value, value])
    floor = FloorMultipliers(range(3), range(3), [value] * 3)
    for weights in (None, np.full(5, value), np.array([value, 1, 0, 0, 0])):
        found = lower_bound(_with(evidence, Multipliers((pair, floor), weights)))
        assert 0 <= found <= 1


def test_bounds_that_overflow_count_as_no_multiplier() -> None:
    far = Stated.metric(Fraction(1), np.array([[0, 1e6], [1e6, 0]]))
    cost = np.array([[1.0, 2.0], [2.0, 1.0]])
    evidence = Evidence(constant_channel(2, 2), 62, [0.5, 0.5], cost, "expected", (far,))
    found = lower_bound(_with(evidence, Multipliers((PairMultipliers([0], [1], [0], [1.0]),))))
    assert found == pytest.approx(1, rel=1e-15)


def test_bounds_that_overflow_leave_what_others_prove() -> None:
    some_far = Stated.metric(Fraction(1), np.array([[0, 1e6, 1], [1e6, 0, 1e6], [1, 1e6, 0]]))
    cost = np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0]])
    evidence = Evidence(constant_channel(3, 2), 62, [0.4, 0.4, 0.2], cost, "expected", (some_far,))
    both = PairMultipliers([0, 0], [1, 2], [1, 1], [1.0, 1e-3])
    alone = PairMultipliers([0], [2], [1], [1e-3])
    found = lower_bound(_with(evidence, Multipliers((both,))))
    assert found == lower_bound(_with(evidence, Multipliers((alone,)))) > 1


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.one_of(st.floats(0, 1), st.sampled_from([0.0, 5e-324, 2.0**-1022, 1e-30, 1e280]), st.just(0.1)),
        ),
        max_size=40,
    )
)
def test_sums_are_enclosed_tightly(pairs: list[tuple[int, float]]) -> None:
    cells = np.array([cell for cell, _ in pairs], dtype=np.int64)
    values = np.array([value for _, value in pairs])
    lower, upper = _sums(cells, values, 4)
    for cell in range(4):
        true = sum((Fraction(value) for where, value in pairs if where == cell), Fraction(0))
        assert Fraction(lower[cell]) <= true <= Fraction(upper[cell])
        largest = Fraction(max((value for _, value in pairs), default=0.0))
        room = true / 2**50 + largest / 2**80 + Fraction(1, 2**990)
        assert upper[cell] - lower[cell] <= room


def test_sums_of_many_values() -> None:
    random = np.random.default_rng(5)
    values = random.random(100_000) ** 8
    (lower,), (upper,) = _sums(np.zeros(len(values), dtype=np.int64), values, 1)
    true = sum(map(Fraction, values.tolist()))
    assert Fraction(lower) <= true <= Fraction(upper)
    assert upper - lower <= 8 * math.ulp(lower)


def test_sums_that_overflow_prove_nothing() -> None:
    lower, upper = _sums(np.array([0, 0]), np.array([1.7e308, 1.7e308]), 2)
    assert lower.tolist() == [0, 0]
    assert upper.tolist() == [math.inf, math.inf]
