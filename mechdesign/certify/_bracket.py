"""A lower bound on the cost of every channel that meets the requirements, computed from any multipliers.

Write a pair bound as rows g p(o|t) - p(o|s) >= 0 with multipliers y >= 0. Write a floor as Σ_o x_o >= D with x_o <= Σ_s
π_s p(o|s) a(ŝ,s) and multipliers q >= 0. Let w be the prior for the expected cost, or any weights of the secrets for
the worst cost. These formulas define the reduced costs r, and the number T of each floor:

    r[s,o] = w_s c(s,o) - Σ g y(t,s,o) + Σ y(s,t,o) - π_s Σ_ŝ q[ŝ,o] a(ŝ,s),    T = min_o Σ_ŝ q[ŝ,o].

Every channel that meets the requirements costs at least Σ T·D + Σ_s min_o r[s,o], divided by Σw for the worst cost.
Proof: the rows of a channel sum to 1 and are not negative. The rows of the requirements are not negative either, even
after multiplication by their multipliers. Since a >= 0, the x_o of a channel are not negative, so that
Σ_o (Σ_ŝ q[ŝ,o]) x_o >= T·D. The proof is valid for any multipliers; poor multipliers only give a weak bound. A floor
with its own prior uses that prior as π. If c(s,o) is infinite, observable o is forbidden for s: every admissible
channel has p(o|s) = 0. The minimum of r[s,o] over the observables then omits this o.

**Rounding.** All terms are evaluated in floating point, and every rounding weakens the bound. Terms that raise the
bound are rounded down; terms that lower it, such as the factor g, are rounded up. `_sums` bounds sums of non-negative
terms from both sides, and `nextafter` moves every other result to the safe side. All operations are elementwise in a
fixed order, so that every machine computes the same number.
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

# The largest number that enters a sum: sums of larger numbers could overflow.
_HUGE = 1e290
# Number of entries (secrets × observables) in one block of columns; the work on a block takes a dozen arrays of this
# size.
_BLOCK_ENTRIES = 2**22


def lower_bound(evidence: Evidence) -> float:
    """Return a lower bound on the cost of every channel that meets the requirements.

    The bound depends on the problem and the multipliers, but not on the channel. Missing multipliers are taken as 0.

    Args:
        evidence: The problem and its multipliers.

    Returns:
        The bound, at least 0, as an exact binary number.

    Raises:
        CertificateError: A multiplier belongs to a pair that its requirement does not bound.

    >>> from fractions import Fraction
    >>> half = 1 << 61
    >>> lower_bound(Evidence([[half, half]] * 2, 62, [0.5, 0.5], [[1, 2], [3, 2]], "expected", ()))
    1.4999999999999993
    """
    multipliers = evidence.multipliers
    weights = evidence.prior
    if evidence.objective == "worst" and multipliers is not None and multipliers.weights is not None:
        weights = multipliers.weights
    # Without multipliers no claim raises the bound, so the claims are not needed.
    claims = evidence.claims() if multipliers is not None else ()
    n, m = evidence.cost.shape
    width = max(1, _BLOCK_ENTRIES // n)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        growth = [_growth(claim, n) if isinstance(claim, PairBound) else None for claim in claims]
        least, attacks = np.full(n, math.inf), np.full(len(growth), math.inf)
        for start in range(0, m, width):
            part = slice(start, min(start + width, m))
            reduced, attacked = _bound_part(evidence, claims, weights, growth, part)
            least, attacks = np.minimum(least, reduced), np.minimum(attacks, attacked)
        floors = zip(claims, attacks.tolist(), strict=True) if multipliers is not None else ()
        constants = [_constant(claim, attack) for claim, attack in floors if isinstance(claim, Floor)]
    # Clipping large numbers only lowers the bound, and it prevents an overflow of the sum.
    terms = np.minimum([*least.tolist(), *constants], _HUGE)
    if terms.min() < -_HUGE or weights.max() > _HUGE:
        return 0.0
    total = math.nextafter(math.fsum(terms), -math.inf)
    if evidence.objective == "worst":
        total = math.nextafter(total / math.nextafter(math.fsum(weights), math.inf), -math.inf)
    return max(0.0, total)


def _bound_part(
    evidence: Evidence, claims: tuple[Claim, ...], weights: Floats, growth: list[_Growth | None], part: slice
) -> tuple[Floats, Floats]:
    """Return min_o r[s,o] (n,) over some observables, and min_o Σ_ŝ q[ŝ,o] of each floor, both rounded down."""
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
            # The pair bounds on neighbours, which the same requirement states, imply this claim; only they have
            # multipliers.
            continue
        else:
            name = f"requirements[{index}] ({claim.kind} privacy)"
            raise CertificateError(f"{name}: the multipliers belong to another kind of claim")
        lowering = np.nextafter(lowering + down, math.inf)
    reduced = np.nextafter(raising - lowering, -math.inf)
    return np.where(forbidden, math.inf, reduced).min(axis=1), attacks


@dataclass(frozen=True)
class _Growth:
    """The upper bounds `factors` on the factors g of pairs (s, t) of `n` secrets, sorted by `keys`, which are s·n + t.

    If a key occurs several times, its last factor is used.
    """

    n: int
    keys: Integers
    factors: Floats

    def __call__(self, sources: Integers, targets: Integers) -> Floats:
        """Return the upper bounds on the factors of some pairs; NaN for a pair without a factor."""
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
    """Return two sums (n, m) for some columns: Σ y by source, rounded down, and Σ g y by target, rounded up."""
    n, m = factors.n, part.stop - part.start
    mine = (entry.observables >= part.start) & (entry.observables < part.stop)
    sources, targets, observables = entry.sources[mine], entry.targets[mine], entry.observables[mine] - part.start
    values, growth = entry.values[mine], factors(sources, targets)
    stray = np.isnan(growth)
    if stray.any():
        pair = int(sources[stray][0]), int(targets[stray][0])
        raise CertificateError(f"{name}: a multiplier belongs to the pair {pair}, which is not bounded", pair)
    # If g overflows, the multiplier is replaced by 0, since any non-negative multiplier is valid.
    used = (values > 0) & np.isfinite(growth)
    if not used.all():
        sources, targets, observables = sources[used], targets[used], observables[used]
        values, growth = values[used], growth[used]
    up, _ = _sums(sources * m + observables, values, n * m)
    _, down = _sums(targets * m + observables, np.nextafter(growth * values, math.inf), n * m)
    return up.reshape(n, m), down.reshape(n, m)


def _floor_terms(claim: Floor, entry: FloorMultipliers, prior: Floats, part: slice) -> tuple[float, Floats]:
    """Return min_o Σ_ŝ q[ŝ,o], rounded down, and π_s Σ_ŝ q[ŝ,o] a(ŝ,s), rounded up, for some columns."""
    n, m = claim.error.shape[1], part.stop - part.start
    mine = (entry.observables >= part.start) & (entry.observables < part.stop)
    estimates, observables, values = entry.estimates[mine], entry.observables[mine] - part.start, entry.values[mine]
    attack = float(_sums(observables, values, m)[0].min())
    # Only cells with multipliers are used, as there may be far more pairs of estimates and observables.
    cells, places = np.unique(estimates * m + observables, return_inverse=True)
    _, upper = _sums(places, values, len(cells))
    cells, upper = cells[upper > 0], upper[upper > 0]
    rows, columns = cells // m, cells % m
    pulled = np.zeros((n, m))
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=False):
        here = columns[start:stop]
        pulled[:, here] += claim.error[rows[start]][:, None] * upper[start:stop]
    # Each term passes through at most K + 2 roundings: a product, K - 1 sums and a product. Each rounding changes a
    # number by a factor of at most 1 + 2**-53, or by at most 2**-1074 if it underflows. Sums that overflow are
    # infinite; 0·inf is NaN and is replaced by infinity.
    count = int(np.bincount(columns, minlength=1).max())
    lifted = prior[:, None] * (pulled * (1 + (count + 4) * 2.0**-52) + 2.0**-1050) * (1 + 2.0**-50) + 2.0**-1050
    return attack, np.where(np.isnan(lifted), math.inf, lifted)


def _constant(claim: Floor, attack: float) -> float:
    """Return T·D, rounded down."""
    constant = Fraction(attack) * claim.minimum
    below = min(nearest(constant), _HUGE)
    return math.nextafter(below, -math.inf) if Fraction(below) > constant else below


def _sums(cells: Integers, values: Floats, size: int) -> tuple[Floats, Floats]:
    """Return lower and upper bounds on the sum of the non-negative `values` of each cell from 0 to size - 1.

    Let K be the largest number of values in one cell, and σ a power of two above 2·K·max(values). Then high = fl(fl(σ +
    x) - σ) is a multiple of 2**-53·σ. The remainder low = x - high is exact and at most 2**-53·σ. Sums of the high
    parts stay below σ and are exact. Sums of the low parts have an error of at most K²·2**-106·σ. Adding the sum of the
    high parts to the sum of the low parts rounds once. The bounds are a few units in the last place apart, for any
    number of values. (Rump, Ogita and Oishi, Accurate floating-point summation, 2008, section 3.)
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
    # Cells without values have the exact sum 0.
    empty = np.bincount(cells, minlength=size) == 0
    return np.where(empty, 0.0, np.maximum(lower, 0)), np.where(empty, 0.0, upper)
