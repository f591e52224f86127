"""From an answer back to the problem; multipliers polished.

With row potentials λ (the multipliers of Σ_o p(o|s) = 1) the bound of `mechdesign.certify._bracket` is Σ_s min_o
r[s,o], and at an optimum r[s,o] >= λ_s with Σ_s λ_s the value. A solver meets r >= λ up to an absolute tolerance, or up
to the rounding of numbers as large as g = e^{ε·d}; the whole row then loses what one entry lacks. Mending costs far
less: as

    r[t,o] = … − g y(s,t,o)   and   r[s,o] = … + y(s,t,o),

an entry that lacks v at (t,o) gets it from a multiplier into t that is smaller by v/g, at the cost of v/g at (s,o).
What is then lacking there is mended in the same way, and after a few steps there is nothing left to mend.
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
from mechdesign.solve._contract import GROSS, Status
from mechdesign.synthesis._normal import ChannelCandidate, FormMultipliers, NormalForm
from mechdesign.synthesis._result import Design, certify_design
from mechdesign.synthesis._rounding import Rounded, compute_cost, find_cheapest_constant, round_channel

_Columns = tuple[Integers, Integers, Integers, Floats]


def lift_columns(form: NormalForm, privacy: _Columns, floors: Sequence[Floats], weights: Floats | None) -> Multipliers:
    """Carry multipliers >= 0 of a normal form over to its problem, without loss.

    `privacy` holds the multipliers of the rows exp(exponents[s, t]) p(o|t) − p(o|s) >= 0 in sparse form: source groups,
    target groups, observables, values. `floors` holds a grid (estimates, observables) for each floor of the form, and
    `weights` (n,) those of the secrets when the worst cost counts, of any sum. Within a group of merged secrets the
    reduced cost of each secret is moved along the zero-exponent bounds to the group's root.
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
        mine = np.flatnonzero((owner == i) & (values > 0))
        columns = [(first[mine], second[mine], o[mine], values[mine]), *moved.get(i, [])]
        parts[i] = PairMultipliers(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    return Multipliers(
        tuple(parts.get(i, make_empty_multipliers(problem, i)) for i in range(len(problem.claims))), weights
    )


def make_empty_multipliers(problem: Problem, place: int) -> PairMultipliers | FloorMultipliers:
    """Return the multipliers of a claim that proves nothing: none."""
    none, values = np.zeros(0, dtype=np.int64), np.zeros(0)
    if place in problem.floors:
        return FloorMultipliers(none, none, values)
    return PairMultipliers(none, none, none, values)


def _move_to_roots(reduced: Floats, ties: tuple[tuple[int, int, int, bool], ...]) -> dict[int, list[_Columns]]:
    """Flatten the reduced cost of every tied secret, leaf by leaf, by multipliers on its tie; change `reduced`."""
    moved: dict[int, list[_Columns]] = {}
    observables = np.arange(reduced.shape[1])
    for secret, parent, requirement, forward in ties:
        row = reduced[secret]
        # A multiplier on p(o|secret) <= p(o|parent) raises the reduced cost of the secret and lowers the parent's.
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
    """Carry multipliers of a normal form over to its problem; see `lift_columns`."""
    columns = (given.sources, given.targets, given.observables, given.values)
    return lift_columns(form, columns, given.floors, given.weights)


_MAX_STEPS = 200
# A little more than is lacking is taken away, so that rounding leaves nothing lacking.
_MENDING_MARGIN = 1 + 1e-9


def polish_multipliers(form: NormalForm, given: FormMultipliers) -> FormMultipliers:
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
        floors=tuple(_level(grid) / total for grid in given.floors),
        weights=None if given.weights is None else given.weights / total,
        potentials=given.potentials / total,
    )
    return _mend(form, best, given.potentials / total)


def _mend(form: NormalForm, best: FormMultipliers, potentials: Floats) -> FormMultipliers:
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
        taken = np.clip(lacking[at_target] * _MENDING_MARGIN - (before - before[first]), 0.0, pulls)
        if not taken.any():
            break
        values = np.maximum(values - taken / growth, 0.0)
    return best


def _compute_fixed_costs(form: NormalForm, multipliers: FormMultipliers) -> Floats:
    """Return the part of the reduced costs (k, m) that multipliers of pairs have no share in."""
    problem = form.problem
    weights = problem.prior if multipliers.weights is None else multipliers.weights
    fixed = np.where(form.forbidden, np.inf, form.gather(weights[:, None] * form.finite_cost))
    for floor, grid in zip(form.floors, multipliers.floors, strict=True):
        fixed = fixed - floor.error.T @ grid
    return fixed


def _level(grid: Floats) -> Floats:
    """Scale the multipliers of a floor (estimates, observables) to one sum for all observables that have any."""
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
    """Return a candidate that can be certified, or what is wrong with it in words; the words are empty where it can.

    Where a solver's point keeps all rows, and only its multipliers are poor, the point is used: its certificate has the
    gap that these multipliers, mended, do prove.
    """
    summary = candidate.summary
    if summary.status in _UNSOLVABLE:
        return candidate, f"{solver} said: {summary.message} {_UNSOLVABLE[summary.status]}"
    if summary.status is not Status.FAILED:
        return candidate, ""
    residual = summary.primal_residual
    if candidate.matrix is None or residual is None or residual > GROSS:
        return candidate, f"{solver} is not to be trusted here: {summary.message}"
    message = f"multipliers that prove little beside a channel that keeps all bounds: {summary.message}"
    return candidate.with_facts(status=Status.STALLED, message=message), ""


def recover_design(
    form: NormalForm, candidate: ChannelCandidate, tolerance: float, interior: Floats | None = None
) -> Design:
    """Round a candidate to integers and certify what comes out; `interior` as `round_channel` has it.

    Multipliers are used as the solver gave them, and where that leaves a larger gap than `tolerance`, as `polish_multipliers`
    mends them, if these prove more.
    """
    clock = time.perf_counter()
    rounded = _round(form, candidate, interior)
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


def _round(form: NormalForm, candidate: ChannelCandidate, interior: Floats | None) -> Rounded:
    """Round what the solver found, or release a constant, or the interior channel, where that is cheaper."""
    problem = form.problem
    bounds = problem.pair_bounds.values()

    def holds(numerators: Integers) -> bool:
        return all(check(numerators, EXPONENT, bound) is None for bound in bounds)

    def distortions(numerators: Integers) -> tuple[Fraction, ...]:
        floors = [floor.claim for floor in form.floors]
        return tuple(distortion(numerators, EXPONENT, floor.prior_or(problem.prior), floor.error) for floor in floors)

    if candidate.matrix is not None and candidate.relative_error is not None:
        # It costs no more than a constant, which is among the rays.
        made = round_channel(form, candidate.matrix, holds, distortions, relative_error=candidate.relative_error)
        if made is not None:
            return made
    matrices = [np.tile(find_cheapest_constant(form), (form.groups, 1)) if interior is None else interior]
    if candidate.matrix is not None:
        matrices.insert(0, candidate.matrix)
    found = [round_channel(form, matrix, holds, distortions, interior) for matrix in matrices]
    channels = [rounded for rounded in found if rounded is not None]
    if not channels:
        raise SolverError(f"the numbers of {candidate.summary.solver or 'the solver'} cannot be rounded to a channel")
    return min(channels, key=lambda rounded: compute_cost(form, rounded.numerators / 2.0**EXPONENT))
