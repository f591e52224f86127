"""The pricing problem of one part: minimise the cost minus price times distortion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import SolverError
from mechdesign.certify._evidence import Multipliers
from mechdesign.certify._stated import Stated
from mechdesign.model._problem import Problem, largest_distortion
from mechdesign.model._requirements._claimed import ClaimedPrivacy
from mechdesign.solve import _solve as solvers
from mechdesign.solve._contract import Options, Status
from mechdesign.synthesis._normal import normalise
from mechdesign.synthesis._pairs import find_bounded_pairs
from mechdesign.synthesis._parts import Part, find_undominated, restrict_problem
from mechdesign.synthesis._recovery import lift_multipliers
from mechdesign.synthesis._rounding import compute_cost, find_cheapest_constant
from mechdesign.synthesis._rows import RowReduction, list_all_rows
from mechdesign.synthesis._settings import Rows


@dataclass(frozen=True, eq=False)
class PartProposal:
    """A channel p(o|group) of a part, with its cost and its distortion for each floor, under the part's prior."""

    matrix: Floats
    cost: float
    distortions: Floats


@dataclass(frozen=True, eq=False)
class PartAnswer:
    """The solution of a pricing problem.

    Attributes:
        proposal: The channel of the solution.
        bound: Lower bound on the cost minus prices times distortions.
        multipliers: Multipliers that prove the bound.
    """

    proposal: PartProposal
    bound: float
    multipliers: Multipliers


def make_pricing_problem(problem: Problem, part: Part, floors: Sequence[int]) -> tuple[Problem, dict[int, Integers]]:
    """Return the pricing problem of a part, and for each of its floors the estimates that the problem contains.

    `floors` are indices among the claims. An estimate is left out if another estimate is at least as good for each
    secret of the part. In the pricing problem, each floor gets the largest possible minimum, which serves only as a
    scale. A floor is left out if all its minimum values are 0. If a floor has its own prior, its errors are weighted by
    the part's probability under it.
    """
    alone = restrict_problem(problem, part, part.observables)
    statements = list(alone.stated)
    estimates: dict[int, Integers] = {}
    for index in floors:
        floor = problem.floors[index]
        errors = floor.error[:, part.secrets]
        kept, _ = find_undominated(errors.T)
        if floor.prior is None:
            prior, errors = alone.prior, errors[kept]
        elif (total := floor.prior[part.secrets].sum()) > 0:
            prior, errors = floor.prior[part.secrets] / total, errors[kept] * (total / part.mass)
        else:
            continue
        largest = largest_distortion(prior, errors)
        if largest:
            own = None if floor.prior is None else prior
            statements[index] = Stated.floor("priced", largest, errors, own)
            estimates[index] = kept
    requirements = [ClaimedPrivacy([stated], part.secrets.size) for stated in statements]
    return Problem(alone.prior, alone.cost, requirements), estimates


@dataclass(eq=False)
class PartClass:
    """A class of equal parts at different places, which share one program.

    Attributes:
        problem: The pricing problem.
        floors: Indices of the priced floors among the requirements.
        rows: Privacy rows of the program.
        mass: Total probability of the parts of this class.
    """

    problem: Problem
    floors: tuple[int, ...]
    rows: Rows
    mass: float = 0.0
    _start: object = None

    def __post_init__(self) -> None:
        self.form = normalise(self.problem)
        pairs = find_bounded_pairs(self.form, "all" if self.rows == "all" else "reduced")
        self._program, self._inverse = RowReduction(list_all_rows(pairs, self.form.observables)).apply(self.form)
        self.constant = self.proposal(np.tile(find_cheapest_constant(self.form), (self.form.groups, 1)))

    def proposal(self, matrix: Floats) -> PartProposal:
        """Return a channel p(o|group) with its cost and the adversary's errors."""
        rows = np.clip(matrix, 0.0, 1.0)
        rows /= rows.sum(axis=1, keepdims=True)
        known = {floor.requirement: float((floor.error @ rows).min(axis=0).sum()) for floor in self.form.floors}
        distortions = np.array([known.get(index, 0.0) for index in self.floors])
        return PartProposal(rows, compute_cost(self.form, rows[self.form.group]), distortions)

    def ask(self, prices: Floats, solver: str, options: Options) -> tuple[Status, PartAnswer | None]:
        """Minimise Σ π p c − Σ_i price_i · distortion_i; return None if the solver was stopped before the optimum.

        Raises SolverError if the solver fails.
        """
        program, inverse = self._program, self._inverse
        cost, lower = program.cost.copy(), program.row_lower.copy()
        at = dict(zip(self.floors, prices.tolist(), strict=True))
        for i, (floor, factor) in enumerate(zip(self.form.floors, inverse.floor_scales, strict=True)):
            cost[program.column_blocks[f"x{i}"]] = -at[floor.requirement] * inverse.scale / factor
            # The last row of a floor is the floor itself. A single part does not have to meet the floor.
            lower[program.row_blocks[f"floor{i}"].stop - 1] = -np.inf
        found = solvers.solve(replace(program, cost=cost, row_lower=lower), solver, options, self._start)
        if found.status in (Status.TIME_LIMIT, Status.INTERRUPTED, Status.ITERATION_LIMIT):
            return found.status, None
        if found.status not in (Status.OPTIMAL, Status.STALLED) or not np.isfinite(found.row_dual).all():
            raise SolverError(f"{solver} returned an unusable solution: {found.message}")
        self._start = found.start
        proposal = self.proposal(inverse.channel(found.x))
        multipliers = lift_multipliers(self.form, inverse.multipliers(found.row_dual))
        return found.status, PartAnswer(proposal, inverse.bound(found), multipliers)
