"""Column generation: alternate between a restricted problem and its pricing problems until the gap is small enough.

The restricted problem contains the columns of a working set. The dual prices of the restricted problem determine the
reduced cost of each omitted column. All reduced costs together prove a lower bound on the optimum of the full problem
(Dantzig and Wolfe, Operations Research, 1960). The best point and the best bound may come from different rounds, or
from different solvers.

Theory: block_method, Rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import SolverError
from mechdesign.solve._contract import STATUS_OF_STOP, Status

# Because of rounding, the relative gap may be negative. Rounding does not explain a gap below minus this value.
_MAX_CROSSING = 1e-6

Point = TypeVar("Point")
Proof = TypeVar("Proof")
Prices = TypeVar("Prices")


class Bracket(Generic[Point, Proof]):
    """The best point and the best lower bound so far.

    Args:
        unit: Smallest denominator of a relative gap, in the unit of the cost.
    """

    def __init__(self, unit: float = 1e-300) -> None:
        self.unit = unit
        self.upper, self.lower = math.inf, -math.inf
        self.point: Point | None = None
        self.proof: Proof | None = None

    def offer_point(self, value: float, point: Point) -> bool:
        """Keep a point if its cost `value` is the lowest so far; return whether the point was kept."""
        better = value < self.upper
        if better:
            self.upper, self.point = value, point
        return better

    def offer_bound(self, value: float, proof: Proof) -> bool:
        """Keep a lower bound and its proof if the bound is the largest so far; return whether the bound was kept."""
        better = value > self.lower
        if better:
            self.lower, self.proof = value, proof
        return better

    @property
    def gap(self) -> float:
        """The relative gap (upper − lower) / max(|upper|, unit); infinite until a point and a bound exist."""
        if self.point is None or self.proof is None:
            return math.inf
        return (self.upper - self.lower) / max(abs(self.upper), self.unit)

    def is_within(self, gap: float) -> bool:
        """Return whether the relative gap is at most `gap`, and not more negative than rounding explains."""
        return -_MAX_CROSSING <= self.gap <= gap


class WorkingSet(Protocol):
    """The columns of a restricted problem."""

    def __len__(self) -> int:
        """Return the number of columns."""

    def add(self, columns: Sequence[Any]) -> Self:
        """Return the working set extended by the given columns."""


Working = TypeVar("Working", bound=WorkingSet)


@dataclass(frozen=True, eq=False)
class RestrictedSolution(Generic[Working, Prices]):
    """The solution of a restricted problem.

    Attributes:
        working: Working set of the restricted problem. The master may have removed columns from this set.
        prices: Dual prices, in the form that the pricer expects.
        status: OPTIMAL, or the reason for an early end.
        message: The status in words.
        lower: Lower bound of the restricted problem. The dual prices cannot prove a larger bound for the program with
            all columns.
        complete: False if the master has extended the restricted problem, so another round may improve the result.
    """

    working: Working
    prices: Prices
    status: Status = Status.OPTIMAL
    message: str = ""
    lower: float = math.inf
    complete: bool = True


@dataclass(frozen=True, eq=False)
class PricingResult:
    """The columns that a pricer proposes.

    Attributes:
        improving: Columns with a negative reduced cost, the most negative first.
        unproved: Columns whose reduced cost may be negative. These columns weaken the lower bound.
        status: OPTIMAL, or the reason for an early end.
    """

    improving: Sequence[Any] = ()
    unproved: Sequence[Any] = ()
    status: Status = Status.OPTIMAL


class Master(Protocol[Working, Prices, Point, Proof]):
    """Solver of restricted problems."""

    def solve(self, working: Working, number: int, best: Bracket[Point, Proof]) -> RestrictedSolution[Working, Prices]:
        """Solve the restricted problem of round `number`, and offer its point to the bracket `best`."""


class Pricer(Protocol[Working, Prices, Point, Proof]):
    """Solver of pricing problems."""

    def price(self, found: RestrictedSolution[Working, Prices], best: Bracket[Point, Proof]) -> PricingResult:
        """Price the omitted columns at the dual prices of `found`, and offer the resulting lower bound to `best`."""


@dataclass(frozen=True, eq=False)
class GenerationOutcome(Generic[Working]):
    """The result of column generation.

    Attributes:
        status: Reason for the end.
        message: The status in words.
        rounds: Number of rounds.
        working: Last working set.
    """

    status: Status
    message: str
    rounds: int
    working: Working


def generate_columns(
    master: Master[Working, Prices, Point, Proof],
    pricer: Pricer[Working, Prices, Point, Proof],
    working: Working,
    best: Bracket[Point, Proof],
    gap: float,
    deadline: Deadline,
    *,
    max_rounds: int,
    min_entering_limit: int,
) -> GenerationOutcome[Working]:
    """Solve restricted problems and price columns in turn until the relative gap of `best` is at most `gap`.

    Each round adds columns with negative reduced costs. If no column has a negative reduced cost, the round adds
    columns that weaken the lower bound. The rounds also end if no column can be added, at the deadline, and after
    `max_rounds` rounds.

    Args:
        master: Solver of restricted problems.
        pricer: Solver of pricing problems.
        working: The first working set.
        best: The bracket. The bracket contains the best point and the best proof, even after an early end.
        gap: Relative gap to reach.
        deadline: Deadline of the whole solve. The master and the pricer set earlier deadlines for each of their solves.
        max_rounds: Maximum number of rounds.
        min_entering_limit: A round adds at most max(`min_entering_limit`, size of the working set) columns.

    Returns:
        The reason why the rounds ended, the number of rounds, and the last working set.

    Raises:
        SolverError: If the first restricted problem or the first pricing problem cannot be solved. Later failures end
            the rounds instead.
    """
    for number in range(max_rounds):
        try:
            found = master.solve(working, number, best)
        except SolverError as error:
            if best.point is None:
                raise
            return GenerationOutcome(Status.STALLED, str(error), number, working)
        working, priced, proved = found.working, PricingResult(), best.proof is not None
        # After an early stop, pricing can improve the bracket only if the bound of the restricted problem exceeds
        # `best.lower`.
        stopped = found.status in (Status.INTERRUPTED, Status.TIME_LIMIT)
        if not best.is_within(gap) and (not stopped or found.lower > best.lower):
            try:
                priced = pricer.price(found, best)
            except SolverError as error:
                if not proved:
                    raise
                return GenerationOutcome(Status.STALLED, str(error), number, working)
        entering = priced.improving or priced.unproved
        status = _find_status(
            found, priced, deadline, closed=best.is_within(gap), stuck=not entering and found.complete
        )
        if status is not None:
            words = f"relative gap {best.gap:.1e} after {number + 1} rounds, {len(working)} columns"
            return GenerationOutcome(
                status, found.message if status is Status.INTERRUPTED else words, number + 1, working
            )
        working = working.add(entering[: max(min_entering_limit, len(working))])
    return GenerationOutcome(Status.ITERATION_LIMIT, f"gap not reached after {max_rounds} rounds", max_rounds, working)


def _find_status(
    found: RestrictedSolution[Any, Any], priced: PricingResult, deadline: Deadline, *, closed: bool, stuck: bool
) -> Status | None:
    """Return the final status if the rounds must end now, or None to continue."""
    if found.status is Status.INTERRUPTED:
        return found.status
    if closed:
        return Status.OPTIMAL
    if priced.status is not Status.OPTIMAL:
        return priced.status
    stop = deadline.stop()
    if stop is not None:
        return STATUS_OF_STOP[stop]
    if stuck:
        return Status.TIME_LIMIT if found.status is Status.TIME_LIMIT else Status.STALLED
    return None
