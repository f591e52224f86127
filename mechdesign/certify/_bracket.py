"""A lower bound of the least cost that any channel under the requirements can have, from any multipliers.

Write a pair bound as rows g p(o|t) - p(o|s) >= 0 with multipliers y >= 0, and a floor as Σ_o x_o >= D with
x_o <= Σ_s π_s p(o|s) a(ŝ,s), multipliers q >= 0. Let w be the prior (expected cost) or any weights of the secrets
(worst cost), and

    r[s,o] = w_s c(s,o) - Σ g y(r,s,o) + Σ y(s,t,o) - π_s Σ_ŝ q[ŝ,o] a(ŝ,s),    T = min_o Σ_ŝ q[ŝ,o].

Every channel that meets the requirements costs at least Σ T·D + Σ_s min_o r[s,o] (divided by Σw for the worst cost):
its rows sum to 1 and are not negative, the rows of the requirements times their multipliers are not negative, and
Σ_o (Σ_ŝ q[ŝ,o]) x_o >= T·D since the x_o of a channel are not negative, as a >= 0. It does not matter where the
multipliers come from; poor ones only give a poor bound. Where a floor has a prior of its own, that is its π. Where
c(s,o) is infinite, the answer o is forbidden to s: p(o|s) = 0 in every channel that counts, and o is left out of the
minimum for s.

**Rounding.** All of it is evaluated in floats and rounded against us: what raises the bound is rounded down, what
lowers it (g among it, an upper bound of the factor) up. Sums of non-negative terms get bounds from both sides, see
`_sums`, and every other operation a step of `nextafter`. Only elementwise operations in a fixed order are used, so that
all machines find the same number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import CertificateError
from mechdesign.certify._claims import Claim, Floor, PairBound
from mechdesign.certify._dithering import Dithered
from mechdesign.certify._evidence import Evidence, FloorMultipliers, PairMultipliers
from mechdesign.certify._exact import nearest

# Larger numbers prove nothing: their sums could overflow.
_HUGE = 1e290
# Entries (secrets × observables) worked on at a time: a dozen arrays of that size, and the multipliers that go there.
_CHUNK = 2**22


def lower_bound(evidence: Evidence) -> float:
    """Return a float64, taken as a binary number, that no admissible channel's cost lies below; at least 0.

    The channel itself does not enter. Without multipliers every multiplier is 0. Raises `CertificateError` when a
    multiplier stands for a pair that its requirement does not bound.
    """
    multipliers = evidence.multipliers
    weights = evidence.prior
    if evidence.objective == "worst" and multipliers is not None and multipliers.weights is not None:
        weights = multipliers.weights
    # Without multipliers the claims do not enter.
    claims = evidence.claims() if multipliers is not None else ()
    n, m = evidence.cost.shape
    width = max(1, _CHUNK // n)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        growth = [_growth(claim, n) if isinstance(claim, PairBound) else None for claim in claims]
        least, attacks = np.full(n, math.inf), np.full(len(growth), math.inf)
        for start in range(0, m, width):
            part = slice(start, min(start + width, m))
            reduced, attacked = _part(evidence, claims, weights, growth, part)
            least, attacks = np.minimum(least, reduced), np.minimum(attacks, attacked)
        floors = zip(claims, attacks.tolist(), strict=True) if multipliers is not None else ()
        constants = [_constant(claim, attack) for claim, attack in floors if isinstance(claim, Floor)]
    # Cutting large numbers off only lowers the bound; after that the sum cannot overflow.
    terms = np.minimum([*least.tolist(), *constants], _HUGE)
    if terms.min() < -_HUGE or weights.max() > _HUGE:
        return 0.0
    total = math.nextafter(math.fsum(terms), -math.inf)
    if evidence.objective == "worst":
        total = math.nextafter(total / math.nextafter(math.fsum(weights), math.inf), -math.inf)
    return max(0.0, total)


def _part(
    evidence: Evidence, claims: tuple[Claim, ...], weights: Floats, growth: list[_Growth | None], part: slice
) -> tuple[Floats, Floats]:
    """Return min_o r[s,o] (n,) over some observables, rounded down, and min_o Σ_ŝ q[ŝ,o] of each floor, or infinity."""
    cost = evidence.cost[:, part]
    forbidden = np.isinf(cost)
    raising = np.nextafter(weights[:, None] * np.where(forbidden, 0.0, cost), 0)
    lowering = np.zeros_like(raising)
    attacks = np.full(len(growth), math.inf)
    entries = () if evidence.multipliers is None else evidence.multipliers.requirements
    for index, (claim, entry) in enumerate(zip(claims, entries, strict=False)):
        factors = growth[index]
        if isinstance(claim, PairBound) and isinstance(entry, PairMultipliers) and factors is not None:
            name = f"requirements[{index}] ({claim.kind} privacy)"
            up, down = _pair_terms(factors, entry, part, name)
            raising = np.nextafter(raising + up, -math.inf)
        elif isinstance(claim, Floor) and isinstance(entry, FloorMultipliers):
            attacks[index], down = _floor_terms(claim, entry, claim.prior_or(evidence.prior), part)
        elif isinstance(claim, Dithered) and isinstance(entry, PairMultipliers) and not len(entry.values):
            # It follows from the bounds of its requirement on neighbours, which have the multipliers.
            continue
        else:
            raise CertificateError(f"requirements[{index}] ({claim.kind} privacy): the multipliers are of another kind")
        lowering = np.nextafter(lowering + down, math.inf)
    reduced = np.nextafter(raising - lowering, -math.inf)
    return np.where(forbidden, math.inf, reduced).min(axis=1), attacks


@dataclass(frozen=True)
class _Growth:
    """Upper bounds `factors` of the g of pairs of `n` secrets, sorted by `keys` = s·n + t.

    Among equal keys the last one counts.
    """

    n: int
    keys: Integers
    factors: Floats

    def __call__(self, sources: Integers, targets: Integers) -> Floats:
        """Return the bounds for some pairs, not a number where nothing is bounded."""
        found = np.full(len(sources), math.nan)
        wanted = sources * self.n + targets
        places = np.searchsorted(self.keys, wanted, side="right") - 1
        known = places >= 0
        known[known] = self.keys[places[known]] == wanted[known]
        found[known] = self.factors[places[known]]
        return found


def _growth(claim: PairBound, n: int) -> _Growth:
    keys = claim.sources * n + claim.targets
    order = np.argsort(keys, kind="stable")
    return _Growth(n, keys[order], claim.factors_above()[order])


def _pair_terms(factors: _Growth, entry: PairMultipliers, part: slice, name: str) -> tuple[Floats, Floats]:
    """Return Σ y rounded down at the sources and Σ g y rounded up at the targets, both (n, m), m of the `part`."""
    n, m = factors.n, part.stop - part.start
    mine = (entry.observables >= part.start) & (entry.observables < part.stop)
    sources, targets, observables = entry.sources[mine], entry.targets[mine], entry.observables[mine] - part.start
    values, growth = entry.values[mine], factors(sources, targets)
    stray = np.isnan(growth)
    if stray.any():
        pair = int(sources[stray][0]), int(targets[stray][0])
        raise CertificateError(f"{name}: a multiplier stands for the pair {pair}, which is not bounded", pair)
    # Where g overflows the multiplier counts as 0, which is as good a multiplier as any.
    used = (values > 0) & np.isfinite(growth)
    if not used.all():
        sources, targets, observables = sources[used], targets[used], observables[used]
        values, growth = values[used], growth[used]
    up, _ = _sums(sources * m + observables, values, n * m)
    _, down = _sums(targets * m + observables, np.nextafter(growth * values, math.inf), n * m)
    return up.reshape(n, m), down.reshape(n, m)


def _floor_terms(claim: Floor, entry: FloorMultipliers, prior: Floats, part: slice) -> tuple[float, Floats]:
    """Return min_o Σ_ŝ q[ŝ,o] rounded down and π_s Σ_ŝ q[ŝ,o] a(ŝ,s) rounded up, (n, m), for the `part`."""
    n, m = claim.error.shape[1], part.stop - part.start
    mine = (entry.observables >= part.start) & (entry.observables < part.stop)
    estimates, observables, values = entry.estimates[mine], entry.observables[mine] - part.start, entry.values[mine]
    attack = float(_sums(observables, values, m)[0].min())
    # Only cells that have multipliers: of all estimates and observables there may be far more.
    cells, places = np.unique(estimates * m + observables, return_inverse=True)
    _, upper = _sums(places, values, len(cells))
    cells, upper = cells[upper > 0], upper[upper > 0]
    rows, columns = cells // m, cells % m
    pulled = np.zeros((n, m))
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=False):
        here = columns[start:stop]
        pulled[:, here] += claim.error[rows[start]][:, None] * upper[start:stop]
    # Up to K products, K - 1 sums, one more product: (K + 2) roundings by a factor of at most 1 + 2**-53 each, or by
    # 2**-1074 where they underflow. Infinite where a sum overflows; 0·inf is not a number and counts as infinite.
    count = int(np.bincount(columns, minlength=1).max())
    lifted = prior[:, None] * (pulled * (1 + (count + 4) * 2.0**-52) + 2.0**-1050) * (1 + 2.0**-50) + 2.0**-1050
    return attack, np.where(np.isnan(lifted), math.inf, lifted)


def _constant(claim: Floor, attack: float) -> float:
    """Return T·D, rounded down."""
    constant = Fraction(attack) * claim.minimum
    below = min(nearest(constant), _HUGE)
    return math.nextafter(below, -math.inf) if Fraction(below) > constant else below


def _sums(cells: Integers, values: Floats, size: int) -> tuple[Floats, Floats]:
    """Return lower and upper bounds of the sums of non-negative `values` over equal `cells` in 0..size-1.

    With σ a power of two above 2·K·max(values), K the most values in one cell, high = fl(fl(σ + x) - σ) is a multiple
    of 2**-53·σ, and low = x - high is exact and at most 2**-53·σ. The sums of the high parts are below σ and so exact;
    those of the low parts are wrong by at most K²·2**-106·σ; adding the two rounds once. The bounds are therefore a few
    units in the last place apart, however many values there are. (Rump, Ogita and Oishi, Accurate floating-point
    summation, 2008, section 3.)
    """
    if not values.any():
        return np.zeros(size), np.zeros(size)
    count = int(np.bincount(cells, minlength=size).max())
    largest = float(values.max())
    if not largest * count < _HUGE:
        return np.zeros(size), np.full(size, math.inf)
    sigma = 2.0 ** (math.frexp(largest * count)[1] + 2)
    high: Floats = (sigma + values) - sigma
    total = np.bincount(cells, high, size) + np.bincount(cells, values - high, size)
    slack = count**2 * 2.0**-105 * sigma + 2.0**-1070
    lower = np.nextafter(np.nextafter(total, -math.inf) - slack, -math.inf)
    upper = np.nextafter(np.nextafter(total, math.inf) + slack, math.inf)
    # Cells without values sum to 0 exactly.
    empty = np.bincount(cells, minlength=size) == 0
    return np.where(empty, 0.0, np.maximum(lower, 0)), np.where(empty, 0.0, upper)
