"""The interface of back ends, and solutions with recomputed residuals."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import NOT_BEGUN, Deadline, ProgressCallback, Stop
from mechdesign.solve._linear import LinearProgram, Residuals, residuals, scale


class Status(enum.StrEnum):
    """The outcome of a solve; the values are the texts that users read."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible: no point meets all rows and bounds"
    UNBOUNDED = "unbounded: the objective falls without end"
    TIME_LIMIT = "stopped at the time limit"
    INTERRUPTED = "stopped by the user"
    ITERATION_LIMIT = "stopped at an iteration limit"
    STALLED = "stalled: rounding ended the progress before the tolerance was reached"
    FAILED = "failed: the solver gave no usable answer"
    STATED = "stated"
    """The channel was given by the caller."""


STATUS_OF_STOP = {
    Stop.TIME: Status.TIME_LIMIT,
    Stop.USER: Status.INTERRUPTED,
    Stop.USER_AGAIN: Status.INTERRUPTED,
}


@dataclass(frozen=True)
class Options:
    """Options for any back end.

    Attributes:
        feasibility: Tolerance for the absolute violation of a row, a bound or the sign of a reduced cost.
        gap: Relative gap at which interior-point and first-order methods may stop; the simplex method ignores it. If it
            is None, the value of `feasibility` is used.
        time_limit: Time limit of each solve [s], or None for no limit; a back end receives the remaining seconds.
        threads: Largest number of threads of the solver, or None for its default.
        vertex: Whether an interior-point method should return a vertex, if it supports crossover.
        extra: Options under the solver's own names; unknown names are refused.
        progress: Function that is called with a `Progress` object at intervals.
        deadline: A running deadline that replaces `time_limit` and `progress`; by default each solve starts its own.

    >>> from mechdesign.solve import Options
    >>> Options(time_limit=60.0).relative_gap
    1e-09
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
        """Return the options for a solve that starts now, with a running deadline and the remaining time."""
        given = self.deadline is not NOT_BEGUN
        deadline = self.deadline if given else Deadline(self.time_limit, self.progress)
        return replace(self, deadline=deadline, time_limit=deadline.left(), progress=deadline.progress)

    @property
    def relative_gap(self) -> float:
        """The relative gap at which to stop."""
        return self.feasibility if self.gap is None else self.gap


@dataclass(frozen=True, eq=False)
class Answer:
    """The unchecked answer of a back end, which `solve` turns into a `Solution`.

    Attributes:
        status: The solver's status.
        x: Values (columns,), or None.
        row_dual: Multipliers (rows,), positive on rows that are active at their lower bound, or None.
        iterations: Number of iterations.
        message: The solver's message.
        version: Name and version of the solver.
        start: A starting point for the next solve by the same back end, or None.

    >>> from mechdesign.solve import Answer, Status
    >>> Answer(Status.FAILED, None, None, 0, "no answer", "toy 1.0").x is None
    True
    """

    status: Status
    x: Floats | None
    row_dual: Floats | None
    iterations: int
    message: str
    version: str
    start: object = None


class BackEnd(Protocol):
    """A solver of linear programs: a function in its own file that is imported on first use.

    >>> from mechdesign.solve._registry import find
    >>> solver: BackEnd = find("highs-simplex").load()
    """

    def __call__(self, program: LinearProgram, options: Options, start: object = None) -> Answer:
        """Solve `program`; return the status of a failed solve instead of raising."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A primal-dual pair with recomputed residuals.

    Attributes:
        status: OPTIMAL only if the recomputed numbers confirm it.
        x: Values (columns,).
        row_dual: Multipliers (rows,).
        residuals: Recomputed residuals, objective, bound and gap.
        solver: Name of the solver.
        version: Name and version of the back end.
        iterations: Number of iterations.
        seconds: Duration of the solve [s].
        message: The solver's message.
        start: A starting point for the next solve by the same back end, or None.

    >>> import numpy as np
    >>> from mechdesign.solve._solve import solve
    >>> program = LinearProgram([1.0], np.ones((1, 1)), [2.0], [np.inf], [0.0], [np.inf])
    >>> solve(program, "scipy").x
    array([2.])
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


# A stalled solution is reported as optimal if its recomputed residuals are at most this value.
_OPTIMAL_RESIDUAL = 1e-8

FAILED_RESIDUAL = 1e-3
"""If the recomputed residuals exceed this value, an answer that the solver reports as optimal is rejected."""

# Absolute gap that is treated as zero, in units of the costs, because the relative gap is meaningless if the optimum is
# zero.
_ZERO_GAP = 1e-6


def measure(program: LinearProgram, answer: Answer, *, solver: str, seconds: float) -> Solution:
    """Turn the answer of a back end into a solution whose status and residuals are recomputed.

    Args:
        program: The program.
        answer: The answer.
        solver: Name of the solver.
        seconds: Duration of the solve [s].

    Returns:
        The solution, with recomputed status and residuals.

    >>> import numpy as np
    >>> program = LinearProgram([1.0], np.ones((1, 1)), [2.0], [np.inf], [0.0], [np.inf])
    >>> answer = Answer(Status.OPTIMAL, np.array([1.0]), np.array([1.0]), 1, "done", "toy 1.0")
    >>> measure(program, answer, solver="toy", seconds=0.0).status.name
    'FAILED'
    """
    x = np.full(program.columns, np.nan) if answer.x is None else np.asarray(answer.x, dtype=np.float64)
    row_dual = (
        np.full(program.rows, np.nan) if answer.row_dual is None else np.asarray(answer.row_dual, dtype=np.float64)
    )
    status, message = answer.status, answer.message
    if x.shape != (program.columns,) or row_dual.shape != (program.rows,):
        status, message = Status.FAILED, f"the solver returned shapes {x.shape} and {row_dual.shape}"
        x, row_dual = np.full(program.columns, np.nan), np.full(program.rows, np.nan)
    quality = residuals(program, x, row_dual)
    scaled = scale(program)
    judged = quality if scaled.program is program else residuals(scaled.program, *scaled.convert(x, row_dual))
    unit = float(np.max(np.abs(scaled.program.cost), initial=0.0)) or 1.0
    if status is Status.STALLED and max(judged.primal, judged.dual / unit, judged.gap) <= _OPTIMAL_RESIDUAL:
        status = Status.OPTIMAL
    elif status is Status.OPTIMAL:
        near = abs(judged.objective - judged.bound) <= _ZERO_GAP * unit or judged.gap <= FAILED_RESIDUAL
        if not (judged.primal <= FAILED_RESIDUAL and judged.dual <= FAILED_RESIDUAL * unit and near):
            status = Status.FAILED
            message = (
                f"the solver reported optimal, but rows are violated by {quality.primal:.3g}, reduced costs by "
                f"{quality.dual:.3g}, and the objectives differ by {quality.gap:.3g}; its message: {answer.message}"
            )
    return Solution(
        status, x, row_dual, quality, solver, answer.version, answer.iterations, seconds, message, answer.start
    )
