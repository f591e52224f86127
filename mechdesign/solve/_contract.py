"""Contract of back ends; measured solutions."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import NOT_BEGUN, Deadline, ProgressCallback, Stop
from mechdesign.solve._linear import LinearProgram, Residuals, residuals


class Status(enum.StrEnum):
    """How a solve ended; the values are the words that users read, and a status equals its words."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible: no point meets all rows and bounds"
    UNBOUNDED = "unbounded: the objective falls without end"
    TIME_LIMIT = "stopped at the time limit"
    INTERRUPTED = "stopped by the user"
    ITERATION_LIMIT = "stopped at an iteration limit"
    STALLED = "stalled: rounding ended the progress before the tolerance was reached"
    FAILED = "failed: the solver gave no usable answer"
    STATED = "stated"
    """A channel that was given, and not searched for."""


STATUS_OF_STOP = {
    Stop.TIME: Status.TIME_LIMIT,
    Stop.USER: Status.INTERRUPTED,
    Stop.USER_AGAIN: Status.INTERRUPTED,
}


@dataclass(frozen=True)
class Options:
    """What a caller may ask of any back end.

    Attributes:
        feasibility: Largest violation of a row, a bound or a reduced cost that the solver should aim for, absolute.
        gap: Relative distance of the two objectives at which methods that approach an optimum from within, or by first
            derivatives, may stop; that of the simplex method is always 0. Where None, it is `feasibility`.
        time_limit: Seconds for each solve, or None for no limit; a back end is given those that are left.
        threads: Most threads that the solver may use, or None for its own choice.
        vertex: Whether interior-point methods are to end in a vertex, where they can.
        extra: Options under the solver's own names; one that it does not know is refused, never ignored.
        progress: Called with a `Progress` now and then.
        deadline: When to stop, and where progress is reported, in place of `time_limit` and `progress`; unless given,
            it begins with each solve.
    """

    feasibility: float = 1e-9
    gap: float | None = None
    time_limit: float | None = None
    threads: int | None = None
    vertex: bool = True
    extra: Mapping[str, object] = field(default_factory=dict)
    progress: ProgressCallback | None = None
    deadline: Deadline = NOT_BEGUN

    def begun(self) -> Options:
        """Return these options once a solve begins: with a deadline, and its time and progress for back ends."""
        given = self.deadline is not NOT_BEGUN
        deadline = self.deadline if given else Deadline(self.time_limit, self.progress)
        return replace(self, deadline=deadline, time_limit=deadline.left(), progress=deadline.progress)

    @property
    def relative_gap(self) -> float:
        """The relative gap to stop at."""
        return self.feasibility if self.gap is None else self.gap


@dataclass(frozen=True, eq=False)
class Answer:
    """What a back end says. Nothing of it is believed: `solvers.solve` recomputes it into a `Solution`.

    `x` has shape (columns,) and `row_dual` shape (rows,), positive on rows that hold at their lower bound; either is
    None when the solver gave none. `start` is whatever the same back end can start from next time.
    """

    status: Status
    x: Floats | None
    row_dual: Floats | None
    iterations: int
    message: str
    version: str
    start: object = None


class BackEnd(Protocol):
    """A solver: a function of one file, imported when first used."""

    def __call__(self, program: LinearProgram, options: Options, start: object = None) -> Answer:
        """Solve `program`; never raise for an unlucky program, return its status instead."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A primal-dual pair with its quality, measured by us.

    `status` is OPTIMAL only when the numbers say so, whatever the solver says; `residuals` are recomputed.
    """

    status: Status
    x: Floats
    row_dual: Floats
    residuals: Residuals
    solver: str
    version: str
    iterations: int
    seconds: float
    message: str
    start: object = None


# A pair that a solver is in doubt about passes when its own numbers are this close to optimal.
_FINE = 1e-8

GROSS = 1e-3
"""A pair that a solver calls optimal is demoted when its own numbers are further off than this."""

# Where the optimum is zero no relative distance of the objectives is small; this much, in units of the costs, is.
_NEGLIGIBLE = 1e-6


def measure(program: LinearProgram, answer: Answer, *, solver: str, seconds: float) -> Solution:
    """Turn what a back end says into a Solution, believing only the numbers."""
    x = np.full(program.columns, np.nan) if answer.x is None else np.asarray(answer.x, dtype=np.float64)
    row_dual = (
        np.full(program.rows, np.nan) if answer.row_dual is None else np.asarray(answer.row_dual, dtype=np.float64)
    )
    status, message = answer.status, answer.message
    if x.shape != (program.columns,) or row_dual.shape != (program.rows,):
        status, message = Status.FAILED, f"the solver returned shapes {x.shape} and {row_dual.shape}"
        x, row_dual = np.full(program.columns, np.nan), np.full(program.rows, np.nan)
    quality = residuals(program, x, row_dual)
    scale = 1.0 + float(np.max(np.abs(program.cost), initial=0.0))
    if status is Status.STALLED and max(quality.primal, quality.dual / scale, quality.gap) <= _FINE:
        status = Status.OPTIMAL
    elif status is Status.OPTIMAL:
        near = abs(quality.objective - quality.bound) <= _NEGLIGIBLE * scale or quality.gap <= GROSS
        if not (quality.primal <= GROSS and quality.dual <= GROSS * scale and near):
            status = Status.FAILED
            message = (
                f"the solver said optimal, but rows are violated by {quality.primal:.3g}, reduced costs by "
                f"{quality.dual:.3g}, and the objectives differ by {quality.gap:.3g}; its own words: {answer.message}"
            )
    return Solution(
        status, x, row_dual, quality, solver, answer.version, answer.iterations, seconds, message, answer.start
    )
