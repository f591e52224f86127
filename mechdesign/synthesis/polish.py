"""Polish multipliers: what a solver of rows leaves slightly infeasible is mended before it proves a bound.

With row potentials λ (the multipliers of Σ_o p(o|s) = 1) the bound of `mechdesign.certify._bracket` is Σ_s min_o r[s,o],
and at an optimum r[s,o] >= λ_s with Σ_s λ_s the value. A solver meets r >= λ up to an absolute tolerance, or up to the
rounding of numbers as large as g = e^{ε·d}; the whole row then loses what one entry lacks. Mending costs far less: as

    r[t,o] = … − g y(s,t,o)   and   r[s,o] = … + y(s,t,o),

an entry that lacks v at (t,o) gets it from a multiplier into t that is smaller by v/g, at the cost of v/g at (s,o).
What is then lacking there is mended in the same way, and after a few steps there is nothing left to mend.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.reduction import FormMultipliers
from mechdesign.base._arrays import Floats

__all__ = ["polished"]


_STEPS = 200
# A little more than is lacking is taken away, so that rounding leaves nothing lacking.
_MORE = 1 + 1e-9


def polished(form: NormalForm, given: FormMultipliers) -> FormMultipliers:
    """Return multipliers that as a rule prove a better bound than those given, where these fall short of the value.

    Multipliers of a floor are scaled to the same sum for every observable, of which only the least counts; then those
    of pairs are made smaller, step by step, until r >= λ or nothing improves. Without potentials nothing is done.
    """
    if given.potentials is None:
        return given
    total = 1.0 if given.weights is None else float(given.weights.sum())
    if not total > 0:
        return given
    used = given.values > 0
    cells = given.targets[used] * form.observables + given.observables[used]
    growth = np.exp(form.exponents[given.sources[used], given.targets[used]])
    # Within a cell the bound with the largest ratio comes first: there mending costs least.
    order = np.flatnonzero(used)[np.lexsort((-growth, cells))]
    best = replace(
        given,
        sources=given.sources[order],
        targets=given.targets[order],
        observables=given.observables[order],
        values=given.values[order] / total,
        floors=tuple(_levelled(grid) / total for grid in given.floors),
        weights=None if given.weights is None else given.weights / total,
        potentials=given.potentials / total,
    )
    return _mended(form, best, given.potentials / total)


def _mended(form: NormalForm, best: FormMultipliers, potentials: Floats) -> FormMultipliers:
    shape = form.groups, form.observables
    at_source = best.sources * form.observables + best.observables
    at_target = best.targets * form.observables + best.observables
    growth = np.exp(form.exponents[best.sources, best.targets])
    first = np.searchsorted(at_target, at_target)
    fixed = _fixed(form, best)
    values, bound = best.values, -np.inf
    for _ in range(_STEPS):
        pulls = growth * values
        reduced = fixed + np.bincount(at_source, values, fixed.size).reshape(shape)
        reduced -= np.bincount(at_target, pulls, fixed.size).reshape(shape)
        proved = float(reduced.min(axis=1).sum())
        if proved > bound:
            bound, best = proved, replace(best, values=values)
        lacking = np.maximum(potentials[:, None] - reduced, 0.0).ravel()
        before = np.concatenate([[0.0], np.cumsum(pulls)])[:-1]
        taken = np.clip(lacking[at_target] * _MORE - (before - before[first]), 0.0, pulls)
        if not taken.any():
            break
        values = np.maximum(values - taken / growth, 0.0)
    return best


def _fixed(form: NormalForm, multipliers: FormMultipliers) -> Floats:
    """Return the part of the reduced costs (k, m) that multipliers of pairs have no share in."""
    problem = form.problem
    weights = problem.prior if multipliers.weights is None else multipliers.weights
    fixed = np.where(form.forbidden, np.inf, form.gather(weights[:, None] * form.finite_cost))
    for floor, grid in zip(form.floors, multipliers.floors, strict=True):
        fixed = fixed - floor.error.T @ grid
    return fixed


def _levelled(grid: Floats) -> Floats:
    """Scale the multipliers of a floor (estimates, observables) to one sum for all observables that have any."""
    sums = grid.sum(axis=0)
    if not (sums > 0).all():
        return grid
    levelled: Floats = grid * (np.median(sums) / sums)
    return levelled
