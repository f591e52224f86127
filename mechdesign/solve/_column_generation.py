"""Column generation: solve with a few columns, price the others, take in those that improve, until the bracket closes.

The restricted problem has the columns of a working set. Its prices give every column left out a reduced cost, and all
together a lower bound of the whole problem (Dantzig and Wolfe, Operations Research, 1960). Point and bound need not
come from the same round, or from the same solver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import SolverError
from mechdesign.solve._contract import STATUS_OF_STOP, Status

# Relative gap below 0 that rounding may leave.
_MAX_CROSSING = 1e-6

Point = TypeVar("Point")
Proof = TypeVar("Proof")
Prices = TypeVar("Prices")


class Bracket(Generic[Point, Proof]):
    """The best point and the best lower bound so far.

    Args:
        unit: Least denominator of relative gaps, in the unit of the cost.
    """

    def __init__(self, unit: float = 1e-300) -> None:
        self.unit = unit
        self.upper, self.lower = math.inf, -math.inf
        self.point: Point | None = None
        self.proof: Proof | None = None

    def offer_point(self, value: float, point: Point) -> bool:
        """Keep a point and its cost if it is the cheapest; return whether it is."""
        better = value < self.upper
        if better:
            self.upper, self.point = value, point
        return better

    def offer_bound(self, value: float, proof: Proof) -> bool:
        """Keep a lower bound and its proof if it is the largest; return whether it is."""
        better = value > self.lower
        if better:
            self.lower, self.proof = value, proof
        return better

    @property
    def gap(self) -> float:
        """The relative gap: upper − lower over the cost, or over `unit`; infinite until both are known."""
        if self.point is None or self.proof is None:
            return math.inf
        return (self.upper - self.lower) / max(abs(self.upper), self.unit)

    def is_within(self, gap: float) -> bool:
        """Tell whether the relative gap is at most `gap`; ends that cross by more than rounding close nothing."""
        return -_MAX_CROSSING <= self.gap <= gap


class WorkingSet(Protocol):
    """The columns of a restricted problem."""

    def __len__(self) -> int:
        """Return the number of columns."""

    def add(self, columns: Sequence[Any]) -> Self:
        """Return the working set with more columns."""


Working = TypeVar("Working", bound=WorkingSet)


@dataclass(frozen=True, eq=False)
class RestrictedSolution(Generic[Working, Prices]):
    """A solved restricted problem.

    Attributes:
        working: Its working set, from which the solver may have removed columns.
        prices: Its dual prices, as the pricer takes them.
        status: OPTIMAL, or why the solver ended early.
        message: The same in words.
        lower: Lower bound of the restricted problem; its prices prove no larger one over all columns.
        complete: False if the master has changed the restricted problem, so that another round may help.
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
        improving: Columns with a negative reduced cost, the least first.
        unproved: Columns whose reduced cost is not proved to be non-negative: they weaken the bound.
        status: OPTIMAL, or why the pricer ended early.
    """

    improving: Sequence[Any] = ()
    unproved: Sequence[Any] = ()
    status: Status = Status.OPTIMAL


class Master(Protocol[Working, Prices, Point, Proof]):
    """Solver of restricted problems."""

    def solve(self, working: Working, number: int, best: Bracket[Point, Proof]) -> RestrictedSolution[Working, Prices]:
        """Solve the restricted problem of a round, and offer its point."""


class Pricer(Protocol[Working, Prices, Point, Proof]):
    """Solver of pricing problems."""

    def price(self, found: RestrictedSolution[Working, Prices], best: Bracket[Point, Proof]) -> PricingResult:
        """Price the columns left out at the prices of a restricted problem, and offer the bound that they prove."""


@dataclass(frozen=True, eq=False)
class GenerationOutcome(Generic[Working]):
    """How the rounds ended: the status, in words, the number of rounds, and the last working set."""

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
    min_entering: int,
) -> GenerationOutcome[Working]:
    """Solve and price in turn until the relative gap of `best` is at most `gap`, or nothing improves it.

    A round takes in the columns that improve; without any, those that lower the bound.

    Args:
        master: Solver of restricted problems.
        pricer: Solver of pricing problems.
        working: The first working set.
        best: The bracket; point and proof stay there whatever ends the rounds.
        gap: Relative gap to reach.
        deadline: When to end. Master and pricer have theirs, which are parts of it.
        max_rounds: Largest number of rounds.
        min_entering: A round adds at most this many columns, or as many as the working set has if that is more.

    Raises:
        SolverError: The first restricted problem, or the first pricing problem, cannot be solved; later ones end the
            rounds.
    """
    for number in range(max_rounds):
        try:
            found = master.solve(working, number, best)
        except SolverError as error:
            if best.point is None:
                raise
            return GenerationOutcome(Status.STALLED, str(error), number, working)
        working, priced, proved = found.working, PricingResult(), best.proof is not None
        # A restricted problem that was stopped is priced only if its bound exceeds the best one.
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
        working = working.add(entering[: max(min_entering, len(working))])
    return GenerationOutcome(Status.ITERATION_LIMIT, f"no end after {max_rounds} rounds", max_rounds, working)


def _find_status(
    found: RestrictedSolution[Any, Any], priced: PricingResult, deadline: Deadline, *, closed: bool, stuck: bool
) -> Status | None:
    """Return why the rounds end here, or None."""
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
