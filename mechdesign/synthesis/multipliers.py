"""From multipliers of a normal form's rows to multipliers of the problem's own requirements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechdesign.certify._claims import Claim
from mechdesign.certify._claims import Floor
from mechdesign.certify._evidence import FloorMultipliers
from mechdesign.certify._evidence import Multipliers
from mechdesign.certify._evidence import PairMultipliers
from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.reduction import FormMultipliers
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["carried", "nothing", "problem_multipliers"]


_Columns = tuple[Integers, Integers, Integers, Floats]


def problem_multipliers(
    form: NormalForm, privacy: _Columns, floors: Sequence[Floats], weights: Floats | None
) -> Multipliers:
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
        moved = _move(reduced, form.ties)
    for i in {*np.unique(owner).tolist(), *moved}:
        mine = np.flatnonzero((owner == i) & (values > 0))
        columns = [(first[mine], second[mine], o[mine], values[mine]), *moved.get(i, [])]
        parts[i] = PairMultipliers(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    return Multipliers(tuple(parts.get(i, nothing(claim)) for i, claim in enumerate(problem.claims)), weights)


def nothing(claim: Claim) -> PairMultipliers | FloorMultipliers:
    """Return the multipliers of a requirement that proves nothing: none."""
    none, values = np.zeros(0, dtype=np.int64), np.zeros(0)
    if isinstance(claim, Floor):
        return FloorMultipliers(none, none, values)
    return PairMultipliers(none, none, none, values)


def _move(reduced: Floats, ties: tuple[tuple[int, int, int, bool], ...]) -> dict[int, list[_Columns]]:
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


def carried(form: NormalForm, given: FormMultipliers) -> Multipliers:
    """Carry multipliers of a normal form over to its problem; see `problem_multipliers`."""
    columns = (given.sources, given.targets, given.observables, given.values)
    return problem_multipliers(form, columns, given.floors, given.weights)
