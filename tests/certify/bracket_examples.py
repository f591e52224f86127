"""Problems with arbitrary multipliers, and exact values of the lower bound that those prove."""

from __future__ import annotations

import decimal
import functools
import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from bundles import ONE

from mechdesign.certify import second_verifier
from mechdesign.certify._claims import Floor, PairBound
from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._stated import Stated

CAREFUL = decimal.Context(prec=60, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def constant_channel(n: int, m: int) -> np.ndarray:
    """Return the channel that always gives observable 0."""
    numerators = np.zeros((n, m), dtype=np.int64)
    numerators[:, 0] = ONE
    return numerators


def case(seed: int) -> Evidence:
    """Return a metric bound and a floor with multipliers and weights of many sizes."""
    random = np.random.default_rng(seed)
    n, m, k = random.integers((2, 1, 1), (5, 5, 4)).tolist()
    scale = 10.0 ** random.integers(-12, 4)
    distance = random.random((n, n)) * random.choice([1e-9, 1.0, 100.0, 1e4])
    count, attacks = random.integers(0, (31, 11)).tolist()
    sources = random.integers(0, n, count)
    targets = (sources + random.integers(1, n, count)) % n
    pair = PairMultipliers(sources, targets, random.integers(0, m, count), random.random(count) ** 4 * scale)
    floor = FloorMultipliers(
        random.integers(0, k, attacks), random.integers(0, m, attacks), random.random(attacks) * scale
    )
    prior = random.random(n)
    cost = random.random((n, m))
    cost[random.random((n, m)) < random.choice([0.0, 0.5])] = math.inf
    cost[:, 0] = np.minimum(cost[:, 0], 1.0)
    weights = [None, random.random(n), np.eye(n)[0], random.random(n) * 1e-300][random.integers(4)]
    return Evidence(
        constant_channel(n, m),
        62,
        prior / prior.sum(),
        cost,
        ["expected", "worst"][seed % 2],
        (Stated.metric(Fraction(3, 5), distance), Stated.distortion(Fraction(1, 7), random.random((k, n)))),
        Multipliers((pair, floor), weights),
    )


def magnitude(evidence: Evidence) -> Fraction:
    """Return a bound on the sum of the magnitudes of all terms of the lower bound."""
    cost, weights, multipliers = evidence.cost, _weights(evidence), evidence.multipliers
    total = Fraction(float(cost[np.isfinite(cost)].max())) * sum(weights)
    for claim, entry in zip(evidence.claims(), multipliers.requirements if multipliers else (), strict=False):
        if isinstance(entry, FloorMultipliers):
            assert isinstance(claim, Floor)
            total += sum(map(Fraction, entry.values.tolist())) * (claim.minimum + Fraction(float(claim.error.max())))
            continue
        assert isinstance(claim, PairBound)
        pairs = zip(claim.sources.tolist(), claim.targets.tolist(), strict=True)
        factors = dict(zip(pairs, claim.factors_above().tolist(), strict=True))
        columns = (column.tolist() for column in (entry.sources, entry.targets, entry.values))
        finite = [(y, factors[s, t]) for s, t, y in zip(*columns, strict=True) if math.isfinite(factors[s, t])]
        total += sum((Fraction(y) * (1 + Fraction(g)) for y, g in finite), Fraction(0))
    return total / sum(weights) if evidence.objective == "worst" else total


def several(seed: int) -> Evidence:
    """Return a small problem with several requirements of any kind, some twice, and multipliers of their rows.

    Every third problem lists pairs twice, with other weights or factors.
    """
    random = np.random.default_rng(seed)
    n, m = random.integers((2, 2), (4, 4)).tolist()
    distance = random.integers(1, 4, (n, n)).astype(float)
    distance[random.random((n, n)) < 0.2] = math.inf
    ends = np.array([(s, t) for s in range(n) for t in range(n) if s != t])
    listed = random.permutation(ends)[:4] if seed % 3 else ends[random.integers(0, len(ends), 4)]
    bottoms = random.integers(1, 4, len(listed))
    belief = random.random(n)
    kinds = [
        Stated.metric(Fraction(1, 2), distance),
        Stated.threshold(Fraction(2, 3), distance, Fraction(2)),
        Stated.graph(Fraction(1), ends[random.random(len(ends)) < 0.5]),
        Stated.pairs("near", Fraction(3, 4), listed, random.integers(0, 3, len(listed)) / 2),
        Stated.ratios("odds", Fraction(3, 2), listed, bottoms + random.integers(0, 3, len(listed)), bottoms),
        Stated.distortion(Fraction(1, 9), random.random((2, n))),
        Stated.floor("own", Fraction(1, 8), random.random((3, n)), belief / belief.sum()),
    ]
    stated = [kinds[place] for place in random.integers(0, len(kinds), random.integers(2, 5))]
    scale = 10.0 ** random.integers(-3, 1)
    entries: list[PairMultipliers | FloorMultipliers] = []
    for each in stated:
        claim = each.claim(n)
        count = int(random.integers(0, 8))
        observables, values = random.integers(0, m, count), random.random(count) * scale
        # Some are 0.
        values *= random.random(count) < 0.8
        if isinstance(claim, Floor):
            # Multipliers of every answer, so that the floor itself counts.
            observables, values = np.append(observables, range(m)), np.append(values, random.random(m) * scale)
            entries.append(FloorMultipliers(random.integers(0, len(claim.error), len(values)), observables, values))
        else:
            assert isinstance(claim, PairBound)
            count = count if len(claim) else 0
            places = random.integers(0, max(1, len(claim)), count)
            ours = claim.sources[places], claim.targets[places]
            entries.append(PairMultipliers(*ours, observables[:count], values[:count]))
    prior = random.random(n)
    cost = 1 + random.random((n, m))
    cost[random.random((n, m)) < 0.2] = math.inf
    cost[:, 0] = 1.5
    weights = random.random(n) if seed % 4 == 1 else None
    objective = ["expected", "worst"][seed % 2]
    requirements, multipliers = tuple(stated), Multipliers(tuple(entries), weights)
    return Evidence(constant_channel(n, m), 62, prior / prior.sum(), cost, objective, requirements, multipliers)


def _weights(evidence: Evidence) -> list[Fraction]:
    multipliers, weights = evidence.multipliers, evidence.prior
    if evidence.objective == "worst" and multipliers is not None and multipliers.weights is not None:
        weights = multipliers.weights
    return [Fraction(w) for w in weights.tolist()]


@functools.cache
def exponential(power: Fraction) -> Fraction:
    """Return exp to 60 digits."""
    return Fraction(CAREFUL.exp(CAREFUL.divide(Decimal(power.numerator), Decimal(power.denominator))))


def least_factor(stated: Stated, s: int, t: int) -> Fraction:
    """Return the least g of the bounds p(o|s) <= g p(o|t) that a requirement states, by its definition."""
    numbers, arrays = stated.numbers, {name: array.tolist() for name, array in stated.arrays.items()}
    if stated.kind in ("metric", "threshold"):
        distance = arrays["distance"][s][t]
        assert distance <= numbers.get("radius", Fraction(10**9))
        return exponential(numbers["epsilon"] * (Fraction(distance) if stated.kind == "metric" else 1))
    if stated.kind == "graph":
        assert [s, t] in arrays["edges"] or [t, s] in arrays["edges"]
        return exponential(numbers["epsilon"])
    rows = [place for place, pair in enumerate(arrays["pairs"]) if pair == [s, t]]
    if stated.kind == "pairs":
        return min(exponential(numbers["epsilon"] * Fraction(arrays["weights"][row])) for row in rows)
    return min(numbers["factor"] * Fraction(arrays["numerators"][row], arrays["denominators"][row]) for row in rows)


def lagrangian(evidence: Evidence) -> tuple[Fraction, Fraction]:
    """Return the least value of the Lagrangian over all channels, and the largest sum of its terms' magnitudes.

    The Lagrangian is linear in each row of the channel, and in the errors x_o of each floor: its least value is that of
    a channel of zeros and ones, and of a floor that one answer meets alone. All of them are tried.
    """
    n, m = evidence.numerators.shape
    multipliers, weights = evidence.multipliers, _weights(evidence)
    assert multipliers is not None
    cost, prior = evidence.cost.tolist(), [Fraction(w) for w in evidence.prior.tolist()]
    constant, pairs, pulls = Fraction(0), [], []
    for stated, entry in zip(evidence.requirements, multipliers.requirements, strict=True):
        columns = (column.tolist() for column in vars(entry).values())
        if isinstance(entry, PairMultipliers):
            pairs += [(s, t, o, Fraction(y), least_factor(stated, s, t)) for s, t, o, y in zip(*columns, strict=True)]
            continue
        error = stated.arrays["error"].tolist()
        belief = [Fraction(p) for p in stated.arrays["prior"].tolist()] if "prior" in stated.arrays else prior
        rows = list(zip(*columns, strict=True))
        constant += min(
            stated.numbers["minimum"] * sum(Fraction(q) for _, o, q in rows if o == here) for here in range(m)
        )
        pulls += [(s, o, belief[s] * Fraction(q) * Fraction(error[guess][s])) for guess, o, q in rows for s in range(n)]
    found = []
    allowed = [[o for o in range(m) if math.isfinite(row[o])] for row in cost]
    for answers in itertools.product(*allowed):
        terms = [weights[s] * Fraction(cost[s][o]) for s, o in enumerate(answers)]
        terms += [y for s, _, o, y, _ in pairs if answers[s] == o]
        terms += [-g * y for _, t, o, y, g in pairs if answers[t] == o]
        terms += [-pull for s, o, pull in pulls if answers[s] == o]
        found.append((sum(terms), sum(map(abs, terms))))
    scale = sum(weights) if evidence.objective == "worst" else Fraction(1)
    return (constant + min(value for value, _ in found)) / scale, (constant + max(size for _, size in found)) / scale


def by_the_second(evidence: Evidence) -> tuple[Fraction, Fraction]:
    """Return the lower bound of the second verifier, in fractions and as floats round it."""
    n, made = evidence.secrets, () if evidence.multipliers is None else evidence.multipliers.requirements
    prior, claims, entries = [Fraction(w) for w in evidence.prior.tolist()], [], []
    for stated, entry in zip(evidence.requirements, made, strict=False):
        arrays = {name: _exactly(array.tolist()) for name, array in stated.arrays.items()}
        symbol = second_verifier.NUMBERS[stated.kind][0]
        floor = symbol == "minimum"
        rows = arrays["error"] if floor else second_verifier.bounds(stated.kind, dict(stated.numbers), arrays, n)
        claims.append((symbol, stated.numbers[symbol], arrays.get("prior", prior) if floor else None, rows))
        entries.append(list(zip(*(_exactly(column.tolist()) for column in vars(entry).values()), strict=True)))
    given = evidence.objective, _weights(evidence), _exactly(evidence.cost.tolist()), claims, entries
    return second_verifier.lower_bound(*given), second_verifier.round_bound(*given)


def _exactly(values: Any) -> Any:
    """Return lists in which finite floats are fractions."""
    if isinstance(values, list):
        return [_exactly(each) for each in values]
    return Fraction(values) if isinstance(values, float) and math.isfinite(values) else values
