"""Dantzig–Wolfe decomposition of parts that only distortion floors couple; each part has its own pricing problem.

The floors are Σ_k M_k d_ki >= D_i, where M_k is the probability of part k and d_ki its distortion for floor i. Given a
price t_i >= 0 for each floor, each part is a separate program: minimise c_k − Σ_i t_i d_ki. A small master program
mixes the proposed channels of the parts so that the floors are met at the least cost. The multipliers of the master
program are the prices of the next round. The cost of a mixture is the mean of its channels' costs. A mixture's
distortion is at least the mean of its channels' distortions: a minimum of sums is at least the sum of the minima. Every
round gives the lower bound Σ_i t_i D_i + Σ_k M_k min(c_k − Σ_i t_i d_ki).

Source: Dantzig and Wolfe, Decomposition principle for linear programs, Operations Research, 1960.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import SolverError
from mechdesign.solve import _solve as solvers
from mechdesign.solve._column_generation import (
    Bracket,
    GenerationOutcome,
    PricingResult,
    RestrictedSolution,
    generate_columns,
)
from mechdesign.solve._contract import Options, Status
from mechdesign.solve._linear import LinearProgram
from mechdesign.synthesis._attempts import choose_simplex_solver
from mechdesign.synthesis._coupled.pricing import PartAnswer, PartClass, PartProposal
from mechdesign.synthesis._settings import SolveSettings

# Gaps are relative to the cost or, if the cost is smaller, to this share of the largest entry of the cost matrix.
_UNIT = 1e-9


_MAX_ROUNDS = 300
# Share of the tolerance that the decomposition may use; rounding may use the rest.
_GAP_SHARE = 0.3
# Feasibility tolerance and relative gap of the linear programs.
_SOLVER_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class PartColumns:
    """The working set: the proposed channels for each class of equal parts, starting with the constant channel."""

    proposals: tuple[tuple[PartProposal, ...], ...]

    def __len__(self) -> int:
        """Return the number of proposals."""
        return sum(map(len, self.proposals))

    def add(self, columns: Sequence[tuple[int, PartProposal]]) -> Self:
        """Return the working set with additional proposals, each given with the index of its class."""
        more = [tuple(one for kind, one in columns if kind == number) for number in range(len(self.proposals))]
        return type(self)(tuple(old + new for old, new in zip(self.proposals, more, strict=True)))


@dataclass(frozen=True, eq=False)
class PartMixture:
    """A mixture that meets the floors: for each class of parts, the proposals and an array of their shares."""

    proposals: tuple[tuple[PartProposal, ...], ...]
    shares: Sequence[Floats]


@dataclass(frozen=True, eq=False)
class PricedParts:
    """Prices of the floors, and the solutions of all pricing problems, which prove a lower bound."""

    prices: Floats
    answers: Sequence[PartAnswer]


PartsBest = Bracket[PartMixture, PricedParts]


class PartMixtureMaster:
    """The master program, which mixes the proposals of the parts."""

    def __init__(self, kinds: Sequence[PartClass], minima: Floats, tolerance: float, deadline: Deadline) -> None:
        self.kinds, self.minima, self.deadline = kinds, minima, deadline
        self.options = Options(tolerance, deadline=deadline.quiet())

    def solve(self, working: PartColumns, number: int, best: PartsBest) -> RestrictedSolution[PartColumns, Floats]:
        """Mix the proposals so that the floors are met at the least cost; round 0 mixes nothing and has prices of 0."""
        cost = sum(kind.mass * kind.constant.cost for kind in self.kinds)
        if not number:
            best.offer_point(cost, PartMixture(working.proposals, [np.ones(1) for _ in self.kinds]))
            return RestrictedSolution(working, np.zeros(self.minima.size))
        # Costs are divided by the cost of the constant channels, and floors by their minima, so that all numbers are of
        # order 1.
        scale = cost or 1.0
        found = solvers.solve(self._program(working, scale), choose_simplex_solver(), self.options)
        if found.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
            return RestrictedSolution(working, np.zeros(self.minima.size), found.status, found.message, -np.inf)
        if found.status is not Status.OPTIMAL:
            raise SolverError(f"the master program of the parts could not be solved: {found.message}")
        counts = [len(each) for each in working.proposals]
        shares = [np.clip(part, 0.0, None) for part in np.split(found.x, np.cumsum(counts)[:-1])]
        value = found.residuals.objective * scale
        best.offer_point(value, PartMixture(working.proposals, [part / part.sum() for part in shares]))
        self.deadline.tell(f"round {number}", number, best.lower, value)
        prices = np.maximum(found.row_dual[: self.minima.size], 0.0) * scale / self.minima
        return RestrictedSolution(working, prices)

    def _program(self, working: PartColumns, scale: float) -> LinearProgram:
        weighted = [(kind.mass, one) for kind, each in zip(self.kinds, working.proposals, strict=True) for one in each]
        width = len(weighted)
        distortions = np.array([mass * one.distortions / self.minima for mass, one in weighted])
        owners = np.repeat(np.arange(len(self.kinds)), [len(each) for each in working.proposals])
        sums = sparse.coo_array((np.ones(width), (owners, np.arange(width))), shape=(len(self.kinds), width))
        count = self.minima.size
        return LinearProgram(
            cost=np.array([mass * one.cost for mass, one in weighted]) / scale,
            matrix=sparse.csr_array(sparse.vstack([sparse.csr_array(distortions.T), sums])),
            row_lower=np.ones(count + len(self.kinds)),
            row_upper=np.concatenate([np.full(count, np.inf), np.ones(len(self.kinds))]),
            lower=np.zeros(width),
            upper=np.full(width, np.inf),
            name="mixture",
        )


class PartPricer:
    """Solves the pricing problems of all classes of parts; `rounds` counts the rounds in which all were solved."""

    def __init__(self, kinds: Sequence[PartClass], minima: Floats, solver: str, options: Options) -> None:
        self.kinds, self.minima, self.solver, self.options = kinds, minima, solver, options
        self.rounds = 0

    def price(self, found: RestrictedSolution[PartColumns, Floats], best: PartsBest) -> PricingResult:
        """Return the new proposals, and offer the whole problem's lower bound to `best`, which keeps the largest."""
        prices, answers = found.prices, []
        for kind in self.kinds:
            status, answer = kind.ask(prices, self.solver, self.options)
            if answer is None:
                return PricingResult(status=status)
            answers.append(answer)
        self.rounds += 1
        bound = float(prices @ self.minima)
        bound += sum(kind.mass * one.bound for kind, one in zip(self.kinds, answers, strict=True))
        best.offer_bound(bound, PricedParts(prices, answers))
        known = found.working.proposals
        return PricingResult(
            [
                (number, one.proposal)
                for number, one in enumerate(answers)
                if not any(np.array_equal(one.proposal.matrix, other.matrix) for other in known[number])
            ]
        )


def decompose(
    kinds: Sequence[PartClass],
    minima: Floats,
    solver: str,
    settings: SolveSettings,
    deadline: Deadline,
) -> tuple[GenerationOutcome[PartColumns], PartsBest, int]:
    """Alternate between pricing and mixing until cost and lower bound agree, or until the time limit.

    Args:
        kinds: The classes of equal parts.
        minima: The floors, positive; none exceeds the distortion of the constant channels.
        solver: Name of the solver of the pricing problems.
        settings: Tolerance, threads and options.
        deadline: Deadline of the design.

    Returns:
        The outcome, the best mixture with the best bound, and the number of rounds.

    Raises:
        SolverError: A solver fails.
    """
    options = Options(_SOLVER_TOLERANCE, deadline=deadline.quiet(), threads=settings.threads, extra=settings.options)
    best: PartsBest = Bracket(_UNIT * max(float(np.abs(kind.problem.cost).max()) for kind in kinds))
    pricer = PartPricer(kinds, minima, solver, options)
    outcome = generate_columns(
        PartMixtureMaster(kinds, minima, _SOLVER_TOLERANCE, deadline), pricer,
        PartColumns(tuple((kind.constant,) for kind in kinds)), best, _GAP_SHARE * settings.tolerance, deadline,
        max_rounds=_MAX_ROUNDS, min_entering_limit=len(kinds),
    )  # fmt: skip
    return outcome, best, pricer.rounds
