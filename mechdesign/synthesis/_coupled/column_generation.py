"""Dantzig–Wolfe decomposition: parts that only distortion floors couple, each priced by a program of its own.

The floors read Σ_k M_k d_ki >= D_i, with M_k the probability of part k and d_ki its distortion for floor i. Given a
price t_i >= 0 for each floor, each part is a separate program: minimise c_k − Σ_i t_i d_ki. A small master program
mixes the channels that the parts have proposed so that the floors are met at the least cost; its multipliers are the
next prices. Mixing adds up costs, and never loses distortion, as a minimum of sums is at least the sum of minima. Every
round gives the lower bound Σ_i t_i D_i + Σ_k M_k min(c_k − Σ_i t_i d_ki). (Dantzig and Wolfe, Decomposition principle
for linear programs, Operations Research, 1960.)
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
from mechdesign.synthesis._attempts import EXACT
from mechdesign.synthesis._coupled.pricing import Answer, Kind, Proposal
from mechdesign.synthesis._settings import SolveSettings

# Relative gaps are relative to the cost, or to this share of the largest one.
_UNIT = 1e-9


@dataclass(frozen=True)
class PartsTuning:
    """The constants of the decomposition.

    Attributes:
        max_rounds: Largest number of rounds.
        gap_share: Share of the tolerance that the decomposition may take; the rest is for rounding.
        solver_tolerance: Feasibility and relative gap of the linear programs.
    """

    max_rounds: int = 300
    gap_share: float = 0.3
    solver_tolerance: float = 1e-10


@dataclass(frozen=True, eq=False)
class PartColumns:
    """The working set: the channels that each kind of part has proposed, its constant channel first."""

    proposals: tuple[tuple[Proposal, ...], ...]

    def __len__(self) -> int:
        """Return the number of proposals."""
        return sum(map(len, self.proposals))

    def add(self, columns: Sequence[tuple[int, Proposal]]) -> Self:
        """Return the working set with more proposals, each with the number of its kind."""
        more = [tuple(one for kind, one in columns if kind == number) for number in range(len(self.proposals))]
        return type(self)(tuple(old + new for old, new in zip(self.proposals, more, strict=True)))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Proposals and their shares (one array for each kind), which meet the floors."""

    proposals: tuple[tuple[Proposal, ...], ...]
    shares: Sequence[Floats]


@dataclass(frozen=True, eq=False)
class PricedParts:
    """Prices of the floors, and the answers of all kinds, which prove a bound."""

    prices: Floats
    answers: Sequence[Answer]


PartsBest = Bracket[Mixture, PricedParts]


class PartMixtureMaster:
    """Solver of the mixtures of the parts' proposals."""

    def __init__(self, kinds: Sequence[Kind], minima: Floats, tolerance: float, deadline: Deadline) -> None:
        self.kinds, self.minima, self.deadline = kinds, minima, deadline
        self.options = Options(tolerance, deadline=deadline.quiet())

    def solve(self, working: PartColumns, number: int, best: PartsBest) -> RestrictedSolution[PartColumns, Floats]:
        """Mix the proposals so that the floors are met at the least cost; the first prices are 0."""
        cost = sum(kind.mass * kind.constant.cost for kind in self.kinds)
        if not number:
            best.offer_point(cost, Mixture(working.proposals, [np.ones(1) for _ in self.kinds]))
            return RestrictedSolution(working, np.zeros(self.minima.size))
        # Costs are divided by those of the constants, floors by their minima, so that all numbers are of order 1.
        scale = cost or 1.0
        found = solvers.solve(self._program(working, scale), EXACT, self.options)
        if found.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
            return RestrictedSolution(working, np.zeros(self.minima.size), found.status, found.message, -np.inf)
        if found.status is not Status.OPTIMAL:
            raise SolverError(f"the mixture of the parts' channels could not be computed: {found.message}")
        counts = [len(each) for each in working.proposals]
        shares = [np.clip(part, 0.0, None) for part in np.split(found.x, np.cumsum(counts)[:-1])]
        value = found.residuals.objective * scale
        best.offer_point(value, Mixture(working.proposals, [part / part.sum() for part in shares]))
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
    """Solver of the parts' own programs at given prices; `rounds` counts how often all of them were solved."""

    def __init__(self, kinds: Sequence[Kind], minima: Floats, solver: str, options: Options) -> None:
        self.kinds, self.minima, self.solver, self.options = kinds, minima, solver, options
        self.rounds = 0

    def price(self, found: RestrictedSolution[PartColumns, Floats], best: PartsBest) -> PricingResult:
        """Return the proposals that are new, and offer the bound of all parts."""
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
    kinds: Sequence[Kind],
    minima: Floats,
    solver: str,
    settings: SolveSettings,
    deadline: Deadline,
    tuning: PartsTuning | None = None,
) -> tuple[GenerationOutcome[PartColumns], PartsBest, int]:
    """Price all kinds and mix their proposals in turn, until cost and bound agree, or time is over.

    Args:
        kinds: The parts that differ.
        minima: The floors, positive, none above the distortion of the constant channels.
        solver: The solver of the parts' programs.
        settings: Tolerance, threads and options.
        deadline: When to end.
        tuning: The constants.

    Returns:
        How it ended, the best mixture with the best bound, and the number of rounds.

    Raises:
        SolverError: A solver fails.
    """
    tuning = tuning or PartsTuning()
    options = Options(
        tuning.solver_tolerance, deadline=deadline.quiet(), threads=settings.threads, extra=settings.options
    )
    best: PartsBest = Bracket(_UNIT * max(float(np.abs(kind.problem.cost).max()) for kind in kinds))
    pricer = PartPricer(kinds, minima, solver, options)
    outcome = generate_columns(
        PartMixtureMaster(kinds, minima, tuning.solver_tolerance, deadline), pricer,
        PartColumns(tuple((kind.constant,) for kind in kinds)), best, tuning.gap_share * settings.tolerance, deadline,
        max_rounds=tuning.max_rounds, min_entering=len(kinds),
    )  # fmt: skip
    return outcome, best, pricer.rounds
