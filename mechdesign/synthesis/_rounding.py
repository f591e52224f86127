"""Round a solver's matrix to an integer channel that meets every requirement (docs/theory/proof.md, "Rounding")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._errors import SolverError
from mechdesign.model._channel import EXPONENT
from mechdesign.solve._blocks.layout import is_sparse
from mechdesign.synthesis._normal import VACUOUS, NormalForm

_UNIT = 2.0**-EXPONENT
# Relative error that mixing and normalising in double precision can add to an entry: at most eight roundings.
_MIXING_ERROR = 8 * 2.0**-53
# A column is set to 0 if its largest entry is below a threshold. Every threshold is tried, and the cheapest result is
# kept.
_COLUMN_THRESHOLDS = (0.0, 1e-16, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)
_SMALL_PRIVACY_WEIGHT = 1e-12
# If the constant output needs a larger weight than this to meet a floor, mixing with another distribution is also
# tried. The weight of that distribution starts at `_MIN_FLOOR_WEIGHT`.
_SMALL_FLOOR_WEIGHT = 1e-9
_MIN_FLOOR_WEIGHT = 2.0**-50
_TIGHT_FLOOR_SLACK = 1e-5
# Number of entries that are converted to Python integers at a time; each integer takes about 100 bytes.
_ENTRIES_PER_BATCH = 2**18
# Smallest divisor that replaces g − 1 if the factor g of a bound is close to 1.
_MIN_FACTOR_EXCESS = 1e-100
_EXTRA_PASSES = 16
# Weights double: that of privacy from 2**-62 and that of a floor from 2**-50, so both are 1 after fewer trials.
_MAX_TRIALS = 128


@dataclass(frozen=True, eq=False)
class Rounded:
    """An integer channel (n, m), with the largest mixing weights for privacy and for the floors."""

    numerators: Integers
    privacy_weight: float
    floor_weight: float


def round_channel(
    form: NormalForm,
    matrix: Floats,
    holds: Callable[[Integers], bool],
    distortions: Callable[[Integers], tuple[Fraction, ...]],
    interior: Floats | None = None,
    relative_error: float | None = None,
) -> Rounded | None:
    """Round p(o|group), shape (k, m), to integers that `holds` accepts; the matrix may violate its bounds slightly.

    1. Every entry is raised to the amount that the bounds require, so that only relative errors remain.
    2. Within each connected set of groups, the rows are mixed with one distribution u: p ← (1−λ)p + λu. This keeps
       every satisfied bound with g >= 1 and adds a slack λ u_o (g−1), which covers violations and rounding. The first λ
       is max v / (v + u_o (g−1)), where v is the violation including rounding.
    3. To meet violated floors, the channel is mixed with the cheapest constant output, which is independent of the
       secret. If this output needs a large weight to meet a floor near the largest possible value, another distribution
       is also tried. That distribution is proportional to the columns' largest entries. It may need a far smaller
       weight, because it strengthens the best estimate in every column. The cheaper result is kept.

    Both weights are computed in floating point, and doubled until the exact checks `holds` and `distortions` pass.

    Args:
        form: Normal form with k groups and m observables.
        matrix: p(o|group), shape (k, m).
        holds: Returns whether numerators (n, m) meet all pair bounds exactly.
        distortions: Returns the exact left-hand side of each floor for numerators (n, m).
        interior: A channel (k, m) with slack in all bounds and floors, for groups with different permitted answers.
            This channel replaces both u and the constant output.
        relative_error: Largest relative violation of the bounds between groups by the matrix. If it is given, step 1 is
            omitted, and this error alone determines λ.

    Returns:
        The integer channel with both weights, or None if the matrix is unusable.

    Raises:
        SolverError: If the weights do not reach 1 in as many trials as doubling needs.
    """
    if not np.isfinite(matrix).all():
        return None
    if relative_error is not None:
        chosen = _mix_nearly_private(form, matrix, relative_error)
        return _meet_floors(form, chosen, find_cheapest_constant(form), holds, distortions)
    labels = form.components
    best: tuple[float, Floats, Floats, Floats] | None = None
    for threshold in _COLUMN_THRESHOLDS:
        if interior is None:
            rows = _raise_entries(form, _clean(matrix, threshold, labels))
            common = _compute_common(rows, labels)
        else:
            rows = _raise_entries(form, _clean_permitted(matrix, threshold, form.forbidden, interior))
            common = interior
        weights = _compute_weights(form.exponents, rows, common, labels)
        mixed = _mix(rows, common, weights)
        cost = compute_cost(form, mixed[form.group])
        if best is None or cost < best[0]:
            best = (cost, rows, common, weights)
        if weights.max() <= _SMALL_PRIVACY_WEIGHT:
            break
    assert best is not None
    _, rows, common, weights = best
    chosen = _Mixing(rows, common, weights)
    if interior is not None:
        return _meet_floors(form, chosen, interior, holds, distortions)
    found = _meet_floors(form, chosen, find_cheapest_constant(form), holds, distortions)
    if found is not None and (found.floor_weight <= _SMALL_FLOOR_WEIGHT or not has_tight_floor(form)):
        return found
    largest = rows.max(axis=0)
    other = _meet_floors(form, chosen, largest / largest.sum(), holds, distortions)
    both = [rounded for rounded in (found, other) if rounded is not None]
    return min(both, key=lambda rounded: compute_cost(form, rounded.numerators / 2.0**EXPONENT), default=None)


@dataclass(frozen=True, eq=False)
class _Mixing:
    """Rows to round (k, m), the distribution that each row is mixed with, and the weights (k,) that the bounds need."""

    rows: Floats
    common: Floats
    weights: Floats


def _mix_nearly_private(form: NormalForm, matrix: Floats, error: float) -> _Mixing:
    """Return the mixing of a matrix that violates bounds by at most a relative error (docs/theory/rays.md, "Rounding").

    Let M_o be the largest entry of column o, u_o = M_o / Σ M, and g the least factor. A violation is at most error·M_o,
    and the slack is at least λ u_o (g − 1). Rounding changes each of the two entries of a bound by up to one unit.
    """
    rows = _normalise_rows(np.clip(matrix, 0.0, 1.0))
    largest = rows.max(axis=0)
    # The least exponent may be so small that g − 1 must be kept away from 0.
    least = (
        max(float(np.expm1(min(float(form.exponents.min()), VACUOUS))), _MIN_FACTOR_EXCESS)
        if form.groups > 1
        else np.inf
    )
    units = _UNIT * (1 + 2 / least) / float(largest[largest > 0].min())
    weight = min(1.0, float(largest.sum()) * ((error + _MIXING_ERROR) / least + units))
    common = np.broadcast_to(largest / largest.sum(), rows.shape)
    return _Mixing(rows, common, np.full(form.groups, weight))


def _meet_floors(
    form: NormalForm,
    given: _Mixing,
    constant: Floats,
    holds: Callable[[Integers], bool],
    distortions: Callable[[Integers], tuple[Fraction, ...]],
) -> Rounded | None:
    """Round the mixed rows; add `constant`, shape (m,) or (k, m), with the weight that the floors need."""
    weights, floor_weight = given.weights, 0.0
    # For a single constant output or an interior channel, the weight that a floor needs is known.
    known = constant.ndim == 2 or np.count_nonzero(constant) == 1
    reached = distortions(_apportion(constant)[form.group]) if constant.ndim == 2 else None
    for _ in range(_MAX_TRIALS):
        mixed = _mix(given.rows, given.common, weights)
        numerators = _apportion((1 - floor_weight) * mixed + floor_weight * constant)[form.group]
        if not holds(numerators):
            if weights.min() >= 1.0:
                return None
            weights = np.minimum(1.0, np.maximum(weights, _UNIT) * 2)
            continue
        short = _compute_shortage(form, distortions(numerators), floor_weight, reached)
        if short <= 0:
            return Rounded(numerators, float(weights.max()), floor_weight)
        if floor_weight >= 1.0:
            return None
        # With another distribution, the weight that a floor needs is unknown and may be far smaller, so the first trial
        # is small.
        needed = short * (1 + 1e-9) + 2.0**-50 if known else min(short, _MIN_FLOOR_WEIGHT)
        floor_weight = min(1.0, max((2 if known else 8) * floor_weight, needed))
    raise SolverError(
        f"no rounding meets the requirements after {_MAX_TRIALS} trials; the last weights are "
        f"{float(weights.min()):.3g} for privacy and {floor_weight:.3g} for the floors"
    )


def has_tight_floor(form: NormalForm) -> bool:
    """Return whether a floor is so close to its largest value that a constant output hardly increases the error."""
    return any(
        floor.minimum >= (1 - _TIGHT_FLOOR_SLACK) * float(floor.error.sum(axis=1).min()) for floor in form.floors
    )


def _clean(matrix: Floats, threshold: float, labels: Integers) -> Floats:
    """Clip the entries, empty columns that are negligible within a connected set, and normalise the rows."""
    rows = np.clip(matrix, 0.0, 1.0)
    for label in np.unique(labels):
        members = labels == label
        kept = rows[members].max(axis=0) > threshold
        rows[members] *= kept
        rows[members & (rows.sum(axis=1) <= 0)] = kept if kept.any() else 1.0
    return _normalise_rows(rows)


def _clean_permitted(matrix: Floats, threshold: float, forbidden: Flags, interior: Floats) -> Floats:
    """Clip the entries, empty forbidden and negligible ones, and normalise; empty rows are copied from `interior`."""
    rows = np.where(forbidden | (matrix <= threshold), 0.0, np.minimum(matrix, 1.0))
    lost = rows.sum(axis=1) <= 0
    rows[lost] = interior[lost]
    return _normalise_rows(rows)


def _normalise_rows(rows: Floats) -> Floats:
    normalised: Floats = rows / rows.sum(axis=1, keepdims=True)
    return normalised


def _raise_entries(form: NormalForm, rows: Floats) -> Floats:
    """Raise every entry to the amount that the bounds require, along the bounds if they are few, or along all paths."""
    if is_sparse(form.groups, int(np.isfinite(form.exponents).sum()), 0):
        return _raise_along_bounds(rows, form.exponents)
    return _raise_along_paths(rows, form.implied)


def _raise_along_bounds(rows: Floats, exponents: Floats) -> Floats:
    """Raise every entry to the amount that the bounds require, bound by bound, until no entry changes."""
    raised = rows.copy()
    sources, targets = np.nonzero(np.isfinite(exponents))
    factors = np.exp(-exponents[sources, targets])[:, None]
    order = np.argsort(targets, kind="stable")
    into = np.split(order, np.searchsorted(targets[order], np.arange(1, len(rows))))
    beyond = np.split(targets, np.searchsorted(sources, np.arange(1, len(rows))))
    waiting = np.arange(len(rows))
    # Increases propagate along paths with fewer bounds than rows; rounding errors may add a few passes.
    for _ in range(len(rows) + _EXTRA_PASSES):
        if not waiting.size:
            break
        risen = np.zeros(len(rows), dtype=np.bool_)
        for target in waiting.tolist():
            incoming = into[target]
            if incoming.size:
                least = (factors[incoming] * raised[sources[incoming]]).max(axis=0)
                if (least > raised[target]).any():
                    np.maximum(raised[target], least, out=raised[target])
                    risen[beyond[target]] = True
        # The order of the bounds alternates, so that increases propagate quickly in both directions.
        waiting = np.flatnonzero(risen)[:: -1 if waiting[0] <= waiting[-1] else 1]
    return _normalise_rows(raised)


def _raise_along_paths(rows: Floats, paths: Floats) -> Floats:
    """Raise every entry to the amount that all paths require, p(o|t) >= p(o|s) exp(-path(s, t)), and normalise.

    Before normalising, every bound holds up to relative rounding errors. The remaining violation is tiny even if the
    solver's absolute error is far above the entry.
    """
    raised = rows.copy()
    for source in range(rows.shape[0]):
        joined = np.flatnonzero(np.isfinite(paths[source]))
        raised[joined] = np.maximum(raised[joined], np.exp(-paths[source, joined])[:, None] * rows[source])
    return _normalise_rows(raised)


def _compute_common(rows: Floats, labels: Integers) -> Floats:
    """Return for each group the distribution u of its connected set, proportional to the columns' largest entries."""
    common = np.empty_like(rows)
    for label in np.unique(labels):
        members = labels == label
        largest = rows[members].max(axis=0)
        common[members] = largest / largest.sum()
    return common


def _compute_weights(exponents: Floats, rows: Floats, common: Floats, labels: Integers) -> Floats:
    """Return for each group the weight λ that covers all violations and rounding errors in its connected set."""
    needed = np.zeros(rows.shape[0])
    for source in range(rows.shape[0]):
        targets = np.flatnonzero(np.isfinite(exponents[source]))
        if not targets.size:
            continue
        exponent = np.minimum(exponents[source, targets], VACUOUS)[:, None]
        ratio = np.exp(exponent)
        # Equal rows stay equal after mixing, so they satisfy any bound.
        others = rows[targets]
        differ = (rows[source] != others).any(axis=1)
        others *= ratio * -(1 - _MIXING_ERROR)
        others += rows[source] * (1 + _MIXING_ERROR)
        others += (1 + ratio) * _UNIT
        used = others > 0
        used &= differ[:, None]
        used &= common[source] > 0
        which, columns = np.nonzero(used)
        if not which.size:
            continue
        violation, own, beyond = others[which, columns], common[source, columns], common[targets[which], columns]
        # The second term is 0 if both rows are mixed with the same distribution.
        slack = own * np.expm1(exponent)[which, 0] + ratio[which, 0] * (beyond - own)
        needed[source] = (violation / (violation + np.maximum(slack, 0.0))).max()
    return np.array([needed[labels == label].max() for label in labels])


def _mix(rows: Floats, common: Floats, weights: Floats) -> Floats:
    return (1 - weights[:, None]) * rows + weights[:, None] * common


def compute_cost(form: NormalForm, rows: Floats) -> float:
    """Return the objective of p(o|s) (n, m), in floating point."""
    per_secret = (rows * form.finite_cost).sum(axis=1)
    return float(per_secret.max() if form.problem.objective == "worst" else form.problem.prior @ per_secret)


def compute_repaired_cost(form: NormalForm, matrix: Floats) -> float:
    """Return the cost of p(o|group), shape (k, m), after mixing to meet all bounds; infinite if it misses a floor.

    The cost is computed in floating point, for forms without forbidden answers. Lazy rows use it to decide when to
    stop.
    """
    rows = _raise_entries(form, _clean(matrix, _COLUMN_THRESHOLDS[0], form.components))
    common = _compute_common(rows, form.components)
    mixed = _mix(rows, common, _compute_weights(form.exponents, rows, common, form.components))
    if any(float((floor.error @ mixed).min(axis=0).sum()) < floor.minimum for floor in form.floors):
        return np.inf
    return compute_cost(form, mixed[form.group])


def find_cheapest_constant(form: NormalForm) -> Floats:
    """Return the distribution (m,) of the cheapest constant output: one observable, whatever the secret."""
    cost = form.problem.cost
    per_observable = cost.max(axis=0) if form.problem.objective == "worst" else form.problem.prior @ cost
    constant = np.zeros(form.observables)
    constant[per_observable.argmin()] = 1.0
    return constant


def _compute_shortage(
    form: NormalForm, values: tuple[Fraction, ...], weight: float, reached: tuple[Fraction, ...] | None = None
) -> float:
    """Return the weight, at most 1, of the mixed-in channel that closes the largest deficit of a floor.

    `reached` contains the distortions of that channel; by default it is a constant output, with the largest
    distortions.
    """
    short = 0.0
    for index, (floor, value) in enumerate(zip(form.floors, values, strict=True)):
        if value < floor.claim.minimum:
            largest = float(floor.error.sum(axis=1).min() if reached is None else reached[index])
            reach = largest - float(value)
            missing = float(floor.claim.minimum - value) / reach if reach > 0 else 1.0
            short = max(short, weight + (1 - weight) * min(1.0, max(missing, 2.0**-50)))
    return short


def _apportion(rows: Floats) -> Integers:
    """Scale non-negative rows to integers that sum to 2**62 exactly, by largest remainders.

    Every entry is within one unit of its exact share; entries that are 0 stay 0.
    """
    result = np.empty(rows.shape, dtype=np.int64)
    size = max(1, _ENTRIES_PER_BATCH // rows.shape[1])
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        result[part] = _apportion_batch(rows[part])
    return result


def _apportion_batch(rows: Floats) -> Integers:
    """Apportion a few rows in Python integers."""
    shares = np.floor(rows / rows.max(axis=1, keepdims=True) * 2.0**EXPONENT).astype(np.int64).astype(object)
    totals = shares.sum(axis=1, keepdims=True)
    scaled = shares << EXPONENT
    numerators = scaled // totals
    remainders = scaled - numerators * totals
    missing = (1 << EXPONENT) - numerators.sum(axis=1)
    # A remainder divided by its total is below 1. A double represents this quotient accurately enough for ranking; the
    # order of ties does not matter.
    ranked = np.argsort(-(remainders / totals).astype(np.float64), axis=1, kind="stable")
    result: Integers = numerators.astype(np.int64)
    for row, units in enumerate(missing.tolist()):
        result[row, ranked[row, :units]] += 1
    return result
