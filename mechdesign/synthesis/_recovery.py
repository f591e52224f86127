"""Round a candidate, lift its multipliers to the problem, polish them, and certify the result.

Let λ be the row potentials, the multipliers of Σ_o p(o|s) = 1. The lower bound of `mechdesign.certify._bracket` is Σ_s
min_o r[s,o] with the reduced costs r. At an optimum, r[s,o] >= λ_s, and the optimal value is Σ_s λ_s. A solver meets r
>= λ only up to an absolute tolerance, or up to rounding errors of numbers as large as g = e^{ε·d}. These errors lower
the bound by the largest deficit of every row.

Polishing the multipliers reduces this loss. Since

    r[t,o] = … − g y(s,t,o)   and   r[s,o] = … + y(s,t,o),

a deficit v at (t,o) disappears if a multiplier y(s,t,o) decreases by v/g. This decrease lowers r[s,o] by only v/g. If
this causes a deficit at (s,o), the deficit is removed in the same way; all deficits vanish after a few steps.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import SolverError
from mechdesign.certify._costs import distortion
from mechdesign.certify._evidence import FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._exact import exact
from mechdesign.certify._privacy import check
from mechdesign.model._channel import EXPONENT
from mechdesign.model._problem import Problem
from mechdesign.solve._contract import FAILED_RESIDUAL, Status
from mechdesign.synthesis._normal import ChannelCandidate, FormMultipliers, NormalForm
from mechdesign.synthesis._result import Design, certify_design
from mechdesign.synthesis._rounding import Rounded, compute_cost, find_cheapest_constant, round_channel

_Columns = tuple[Integers, Integers, Integers, Floats]


def lift_columns(form: NormalForm, privacy: _Columns, floors: Sequence[Floats], weights: Floats | None) -> Multipliers:
    """Convert multipliers >= 0 of a normal form to multipliers of its problem, which prove the same lower bound.

    Within a group of merged secrets, multipliers on the ties move every secret's reduced costs to the root of the
    group.

    Args:
        form: The normal form.
        privacy: Multipliers of the rows exp(exponents[s, t]) p(o|t) − p(o|s) >= 0: source groups, target groups,
            observables and values.
        floors: Multipliers of each floor, shape (estimates, observables).
        weights: Weights of the secrets for the worst cost, shape (n,), with any sum; None for the expected cost.

    Returns:
        The multipliers of all requirements of the problem.
    """
    problem = form.problem
    s, t, o, values = privacy
    first, second, owner = form.source[s, t], form.target[s, t], form.owner[s, t]
    if problem.objective == "worst" and weights is not None:
        total = weights.sum()
        weights = weights / total if total > 0 else np.full(weights.size, 1 / weights.size)
    parts: dict[int, PairMultipliers | FloorMultipliers] = {}
    for floor, grid in zip(form.floors, floors, strict=True):
        estimates, observables = np.nonzero(grid)
        parts[floor.requirement] = FloorMultipliers(estimates, observables, grid[estimates, observables])
    moved: dict[int, list[_Columns]] = {}
    if form.ties:
        reduced = (problem.prior if weights is None else weights)[:, None] * form.finite_cost
        for floor, grid in zip(form.floors, floors, strict=True):
            prior = floor.claim.prior_or(problem.prior)
            reduced = reduced - prior[:, None] * (floor.claim.error.T @ grid)
        np.add.at(reduced, (first, o), values)
        np.add.at(reduced, (second, o), -values * np.exp(form.exponents[s, t]))
        moved = _move_to_roots(reduced, form.ties)
    for i in {*np.unique(owner).tolist(), *moved}:
        selected = np.flatnonzero((owner == i) & (values > 0))
        columns = [(first[selected], second[selected], o[selected], values[selected]), *moved.get(i, [])]
        parts[i] = PairMultipliers(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    return Multipliers(
        tuple(parts.get(i, make_empty_multipliers(problem, i)) for i in range(len(problem.claims))), weights
    )


def make_empty_multipliers(problem: Problem, place: int) -> PairMultipliers | FloorMultipliers:
    """Return empty multipliers for a claim that does not contribute to the lower bound."""
    none, values = np.zeros(0, dtype=np.int64), np.zeros(0)
    if place in problem.floors:
        return FloorMultipliers(none, none, values)
    return PairMultipliers(none, none, none, values)


def _move_to_roots(reduced: Floats, ties: tuple[tuple[int, int, int, bool], ...]) -> dict[int, list[_Columns]]:
    """Make the reduced costs of every merged secret constant by multipliers on its tie, from the leaves to the root.

    `reduced` is changed in place.
    """
    moved: dict[int, list[_Columns]] = {}
    observables = np.arange(reduced.shape[1])
    for secret, parent, requirement, forward in ties:
        row = reduced[secret]
        # A multiplier on p(o|secret) <= p(o|parent) raises the reduced cost of the secret and lowers that of the
        # parent.
        values = row.max() - row if forward else row - row.min()
        change = values if forward else -values
        reduced[secret] += change
        reduced[parent] -= change
        ends = (secret, parent) if forward else (parent, secret)
        moved.setdefault(requirement, []).append(
            (np.full(values.size, ends[0]), np.full(values.size, ends[1]), observables, values)
        )
    return moved


def lift_multipliers(form: NormalForm, given: FormMultipliers) -> Multipliers:
    """Convert multipliers of a normal form to multipliers of its problem; see `lift_columns`."""
    columns = (given.sources, given.targets, given.observables, given.values)
    return lift_columns(form, columns, given.floors, given.weights)


_MAX_STEPS = 200
# Factor of each correction: it exceeds the deficit slightly, so that rounding errors leave no deficit.
_MENDING_MARGIN = 1 + 1e-9


def polish_multipliers(form: NormalForm, given: FormMultipliers) -> FormMultipliers:
    """Return multipliers that usually prove a better lower bound than the given multipliers.

    The multipliers of each floor are scaled to the same sum for every observable, because the lower bound uses only the
    least sum.
    Then pair multipliers are reduced step by step until r >= λ, or until nothing improves. Without potentials, the
    given multipliers are returned.
    """
    if given.potentials is None:
        return given
    total = 1.0 if given.weights is None else float(given.weights.sum())
    if not total > 0:
        return given
    used = given.values > 0
    cells = given.targets[used] * form.observables + given.observables[used]
    growth = np.exp(form.exponents[given.sources[used], given.targets[used]])
    # For each target and observable, the bound with the largest g comes first, since its correction costs least.
    order = np.flatnonzero(used)[np.lexsort((-growth, cells))]
    best = replace(
        given,
        sources=given.sources[order],
        targets=given.targets[order],
        observables=given.observables[order],
        values=given.values[order] / total,
        floors=tuple(_level(grid) / total for grid in given.floors),
        weights=None if given.weights is None else given.weights / total,
        potentials=given.potentials / total,
    )
    return _mend(form, best, given.potentials / total)


def _mend(form: NormalForm, best: FormMultipliers, potentials: Floats) -> FormMultipliers:
    """Reduce pair multipliers step by step, and return the multipliers with the best lower bound."""
    shape = form.groups, form.observables
    at_source = best.sources * form.observables + best.observables
    at_target = best.targets * form.observables + best.observables
    growth = np.exp(form.exponents[best.sources, best.targets])
    first = np.searchsorted(at_target, at_target)
    fixed = _compute_fixed_costs(form, best)
    values, bound = best.values, -np.inf
    for _ in range(_MAX_STEPS):
        pulls = growth * values
        reduced = fixed + np.bincount(at_source, values, fixed.size).reshape(shape)
        reduced -= np.bincount(at_target, pulls, fixed.size).reshape(shape)
        proved = float(reduced.min(axis=1).sum())
        if proved > bound:
            bound, best = proved, replace(best, values=values)
        lacking = np.maximum(potentials[:, None] - reduced, 0.0).ravel()
        before = np.concatenate([[0.0], np.cumsum(pulls)])[:-1]
        reduction = np.clip(lacking[at_target] * _MENDING_MARGIN - (before - before[first]), 0.0, pulls)
        if not reduction.any():
            break
        values = np.maximum(values - reduction / growth, 0.0)
    return best


def _compute_fixed_costs(form: NormalForm, multipliers: FormMultipliers) -> Floats:
    """Return the terms of the reduced costs, shape (k, m), that do not depend on pair multipliers."""
    problem = form.problem
    weights = problem.prior if multipliers.weights is None else multipliers.weights
    fixed = np.where(form.forbidden, np.inf, form.gather(weights[:, None] * form.finite_cost))
    for floor, grid in zip(form.floors, multipliers.floors, strict=True):
        fixed = fixed - floor.error.T @ grid
    return fixed


def _level(grid: Floats) -> Floats:
    """Scale the multipliers of a floor, shape (estimates, observables), to the same sum for every observable.

    If an observable has no multipliers, nothing is scaled.
    """
    sums = grid.sum(axis=0)
    if not (sums > 0).all():
        return grid
    levelled: Floats = grid * (np.median(sums) / sums)
    return levelled


_UNSOLVABLE = {
    Status.INFEASIBLE: "although a constant channel meets every requirement",
    Status.UNBOUNDED: "although costs are not negative",
}


def check_candidate(candidate: ChannelCandidate, solver: str) -> tuple[ChannelCandidate, str]:
    """Return a usable candidate with an empty text, or an unusable candidate with the reason.

    If the solver fails but its point meets all rows, the candidate gets the status STALLED and is used. The certificate
    then contains the gap that the polished multipliers prove.
    """
    summary = candidate.summary
    if summary.status in _UNSOLVABLE:
        return candidate, f"{solver} reported: {summary.message} {_UNSOLVABLE[summary.status]}"
    if summary.status is not Status.FAILED:
        return candidate, ""
    residual = summary.primal_residual
    if candidate.matrix is None or residual is None or residual > FAILED_RESIDUAL:
        return candidate, f"{solver} returned an unusable solution: {summary.message}"
    message = f"the channel keeps all bounds, but the multipliers prove only a poor lower bound: {summary.message}"
    return candidate.with_facts(status=Status.STALLED, message=message), ""


def recover_design(
    form: NormalForm, candidate: ChannelCandidate, tolerance: float, interior: Floats | None = None
) -> Design:
    """Round a candidate to integers and certify the result; for `interior` see `round_channel`.

    If the solver's multipliers leave a gap above `tolerance`, they are also polished, and the multipliers with the
    smaller gap are kept.
    """
    clock = time.perf_counter()
    rounded = _round_candidate(form, candidate, interior)
    ended = time.perf_counter()
    summary = replace(
        candidate.summary,
        privacy_weight=rounded.privacy_weight,
        floor_weight=rounded.floor_weight,
        rounding_seconds=round(ended - clock, 3),
    )

    def certify_with(multipliers: FormMultipliers | None) -> Design:
        proof = None if multipliers is None else lift_multipliers(form, multipliers)
        return certify_design(form.problem, rounded.numerators, proof, tolerance, summary)

    given = candidate.multipliers
    first = certify_with(given)
    missed = exact(first.certificate.relative_gap) > exact(tolerance)
    if missed and given is not None and given.potentials is not None:
        second = certify_with(polish_multipliers(form, given))
        first = min(first, second, key=lambda design: design.certificate.relative_gap)
    return first.noted(certifying_seconds=round(time.perf_counter() - ended, 3))


def _round_candidate(form: NormalForm, candidate: ChannelCandidate, interior: Floats | None) -> Rounded:
    """Round the solver's matrix; use a constant output or the interior channel if that is cheaper."""
    problem = form.problem
    bounds = problem.pair_bounds.values()

    def holds(numerators: Integers) -> bool:
        return all(check(numerators, EXPONENT, bound) is None for bound in bounds)

    def distortions(numerators: Integers) -> tuple[Fraction, ...]:
        floors = [floor.claim for floor in form.floors]
        return tuple(distortion(numerators, EXPONENT, floor.prior_or(problem.prior), floor.error) for floor in floors)

    if candidate.matrix is not None and candidate.relative_error is not None:
        # The constant output is one of the rays, so it cannot be cheaper.
        made = round_channel(form, candidate.matrix, holds, distortions, relative_error=candidate.relative_error)
        if made is not None:
            return made
    matrices = [np.tile(find_cheapest_constant(form), (form.groups, 1)) if interior is None else interior]
    if candidate.matrix is not None:
        matrices.insert(0, candidate.matrix)
    found = [round_channel(form, matrix, holds, distortions, interior) for matrix in matrices]
    channels = [rounded for rounded in found if rounded is not None]
    if not channels:
        solver = candidate.summary.solver or "the solver"
        raise SolverError(f"the solution of {solver} cannot be rounded to a channel that meets all requirements")
    return min(channels, key=lambda rounded: compute_cost(form, rounded.numerators / 2.0**EXPONENT))
