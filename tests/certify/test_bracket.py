"""The lower bound: against fractions, against the Lagrangian by its definition, and against a solver."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from bracket_examples import by_the_second, case, constant_channel, lagrangian, magnitude, several
from scipy.optimize import linprog

from mechdesign.certify import _bracket as bracket
from mechdesign.certify import second_verifier
from mechdesign.certify._bracket import _sums, lower_bound
from mechdesign.certify._claims import Floor, PairBound
from mechdesign.certify._costs import expected_cost, worst_cost
from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._stated import Stated
from mechdesign.errors import CertificateError

ONE = 2**62


def test_below_the_exact_value_and_close() -> None:
    """And the same to the last bit as the second verifier computes it, which certificates state."""
    for seed in range(80):
        evidence = case(seed)
        found = Fraction(lower_bound(evidence))
        exact, rounded = by_the_second(evidence)
        assert found <= exact, seed
        assert found >= exact - magnitude(evidence) / 10**14, seed
        assert found == rounded, seed


def test_it_is_the_least_value_of_the_lagrangian() -> None:
    """Among all channels, by its definition: with any multipliers of several requirements, for either objective."""
    raised = 0
    for seed in range(48):
        evidence = several(seed)
        found, (least, size) = Fraction(lower_bound(evidence)), lagrangian(evidence)
        assert found <= max(least, 0) + size / 10**50, seed
        # Of a pair that is listed twice, the last factor may be taken, which is not the least.
        assert seed % 3 == 0 or found >= least - size / 10**13, seed
        exact, rounded = by_the_second(evidence)
        assert abs(exact - max(least, 0)) <= size / 10**40, seed
        assert rounded == found, seed
        raised += found > 0
    assert raised > 30


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


@pytest.mark.parametrize("objective", ["expected", "worst"])
def test_a_solvers_multipliers_close_the_gap(objective: str) -> None:
    for kind in ("metric", "threshold", "graph"):
        for seed in range(4):
            evidence = problem(seed, objective, floor=seed % 2 > 0, kind=kind)
            value, multipliers = program(evidence)
            found = lower_bound(_with(evidence, multipliers))
            assert value - 1e-9 <= found <= value + 1e-9, (kind, seed)


def test_no_multipliers_lift_the_bound_above_a_private_channel() -> None:
    """The constant channel keeps every pair bound; perturbed optimal multipliers must not claim that it cannot."""
    for seed in range(12):
        objective = ["expected", "worst"][seed % 2]
        evidence = problem(seed, objective, floor=False, kind="metric")
        _, optimal = program(evidence)
        random = np.random.default_rng(seed)
        (entry,) = optimal.requirements
        assert isinstance(entry, PairMultipliers)
        values = entry.values * (1 + seed / 6 * (random.random(len(entry.values)) - 0.5))
        moved = PairMultipliers(entry.sources, entry.targets, entry.observables, values)
        found = lower_bound(_with(evidence, Multipliers((moved,), optimal.weights)))
        n, m = evidence.numerators.shape
        for o in range(m):
            channel = np.zeros((n, m), dtype=np.int64)
            channel[:, o] = ONE
            costs = {
                "worst": worst_cost(channel, 62, evidence.cost),
                "expected": expected_cost(channel, 62, evidence.prior, evidence.cost),
            }
            assert found <= costs[objective], (seed, o)


def _with(evidence: Evidence, multipliers: Multipliers | None) -> Evidence:
    fields = ("numerators", "exponent", "prior", "cost", "objective", "requirements")
    return Evidence(*(getattr(evidence, name) for name in fields), multipliers)


def test_without_multipliers() -> None:
    evidence = problem(0, "expected", floor=True, kind="metric")
    expected = sum(Fraction(w) * Fraction(c) for w, c in zip(evidence.prior, evidence.cost.min(axis=1), strict=True))
    assert 0 <= expected - Fraction(lower_bound(evidence)) < Fraction(1, 10**14)


def test_a_stray_multiplier_is_refused_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside those of bounded pairs, first or last, of each kind, and in each part of the observables."""
    distance = np.array([[0, 1, 3], [1, 0, math.inf], [3, math.inf, 0]])
    kinds = {
        "metric": (Stated.metric(Fraction(1), distance), (1, 2)),
        "threshold": (Stated.threshold(Fraction(1), distance, Fraction(2)), (0, 2)),
        "graph": (Stated.graph(Fraction(1), [[0, 1]]), (2, 2)),
        "near": (Stated.pairs("near", Fraction(1), [[0, 1]], [1.0]), (1, 0)),
        "odds": (Stated.ratios("odds", Fraction(2), [[0, 1]]), (0, 0)),
    }
    for block in (2**22, 3):
        monkeypatch.setattr(bracket, "_BLOCK_ENTRIES", block)
        for kind, (stated, stray) in kinds.items():
            for place in range(3):
                pairs = [[0, 1], [0, 1]]
                pairs.insert(place, list(stray))
                entry = PairMultipliers(*np.array(pairs).T, [0, 0, 1], [0.1, 0.1, 0.1])
                given = constant_channel(3, 2), 62, [0.5, 0.25, 0.25], np.ones((3, 2)), "expected", (stated,)
                with pytest.raises(CertificateError, match=rf"requirements\[0\] \({kind} privacy\).*") as caught:
                    lower_bound(Evidence(*given, Multipliers((entry,))))
                assert caught.value.pair == stray, (kind, place)


def test_neither_sum_of_the_second_verifier_takes_a_stray_multiplier() -> None:
    claims = [("epsilon", Fraction(1), None, [(0, 1, Fraction(1))])]
    prior, cost = [Fraction(1, 2)] * 2, [[Fraction(1)] * 2] * 2
    for bound in (second_verifier.lower_bound, second_verifier.round_bound):
        assert bound("expected", prior, cost, claims, [[(0, 1, 0, Fraction(1, 8))]]) <= 1
        with pytest.raises(KeyError):
            bound("expected", prior, cost, claims, [[(0, 1, 0, Fraction(1, 8)), (1, 0, 0, Fraction(1, 8))]])


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


def test_extreme_multipliers_and_weights() -> None:
    for objective in ("expected", "worst"):
        evidence = problem(3, objective, floor=True, kind="metric")
        for value in (1e-320, 1e200, 1e300, 1.7e308):
            pair = PairMultipliers([0, 0], [1, 1], [0, 0], [value, value])
            floor = FloorMultipliers(range(3), range(3), [value] * 3)
            for weights in (None, np.full(5, value), np.array([value, 1, 0, 0, 0])):
                found = lower_bound(_with(evidence, Multipliers((pair, floor), weights)))
                assert 0 <= found <= 1, (objective, value)


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


def test_sums_are_enclosed_tightly() -> None:
    odd = np.array([0.0, 5e-324, 2.0**-1022, 1e-30, 1e280, 0.1])
    for seed in range(100):
        random = np.random.default_rng(seed)
        count = int(random.integers(0, 41))
        cells = random.integers(0, 4, count)
        values = np.where(random.random(count) < 0.5, random.random(count), random.choice(odd, count))
        lower, upper = _sums(cells, values, 4)
        for cell in range(4):
            true = sum(map(Fraction, values[cells == cell].tolist()), Fraction(0))
            assert Fraction(lower[cell]) <= true <= Fraction(upper[cell]), seed
            room = true / 2**50 + Fraction(values.max(initial=0.0)) / 2**80 + Fraction(1, 2**990)
            assert upper[cell] - lower[cell] <= room, seed


def test_sums_of_many_values() -> None:
    random = np.random.default_rng(5)
    values = random.random(30_000) ** 8
    (lower,), (upper,) = _sums(np.zeros(len(values), dtype=np.int64), values, 1)
    true = sum(map(Fraction, values.tolist()))
    assert Fraction(lower) <= true <= Fraction(upper)
    assert upper - lower <= 8 * math.ulp(lower)


def test_sums_that_overflow_prove_nothing() -> None:
    lower, upper = _sums(np.array([0, 0]), np.array([1.7e308, 1.7e308]), 2)
    assert lower.tolist() == [0, 0]
    assert upper.tolist() == [math.inf, math.inf]
