"""`SolveSettings`: the solver, tolerance, limits and options of a design, as one value."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from mechdesign.base._deadline import Deadline, ProgressCallback
from mechdesign.base._errors import InputError
from mechdesign.base._values import ReadOnlyMapping
from mechdesign.certify._exact import exact
from mechdesign.solve._contract import Options

Rows = Literal["auto", "all", "reduced", "near", "lazy", "rays"]

TOLERANCE = 1e-6
"""The default relative gap: every solver reaches it on nearly every problem."""

# Share of the tolerance that the solver of a row program may use; violated rows and rounding may use the rest.
_SOLVER_SHARE = 0.1
# Smallest and largest relative gap given to solvers of row programs. Solvers ignore smaller gaps, and solutions at
# larger gaps are refused as too inaccurate.
_MIN_SOLVER_GAP, _MAX_SOLVER_GAP = 1e-10, 1e-3
# Smallest feasibility tolerance of rows: an absolute value, and a share of the tolerance for the gap. With a smaller
# feasibility tolerance, a first-order method never stops.
_MIN_VIOLATION, _MIN_VIOLATION_SHARE = 1e-7, 1e-3
# The block method may use this share of the tolerance. Rounding needs the rest, but at most `_MAX_ROUNDING_GAP`.
_BLOCK_SHARE, _MAX_ROUNDING_GAP = 0.5, 5e-6
# Smallest relative gap given to the block method; below it rounding errors dominate.
_MIN_BLOCK_GAP = 1e-9


@dataclass(frozen=True)
class SolveSettings:
    """The settings of `mechdesign.design`, as one value.

    Args:
        solver: "auto" (chosen by size), or a name that `mechdesign info` lists.
        tolerance: Relative gap (cost − lower bound) / cost at which to stop, in (0, 1).
        time_limit: Seconds; None means no limit.
        rows: Privacy rows that the solver receives: "auto", "all", "reduced", "lazy", "near" or "rays", as in
            `mechdesign.design`.
        threads: Largest number of threads that the solver may use; None leaves the choice to the solver.
        options: Further options, under the solver's own names.
        progress: Function that is called with a `Progress` from time to time.

    Raises:
        InputError: A value has the wrong type or is out of range; its path is the name of the argument. The name of
            the solver is checked only when the solver is needed.

    >>> SolveSettings(tolerance=1e-6, time_limit=60).tolerance
    1e-06
    """

    solver: str = "auto"
    tolerance: float = TOLERANCE
    time_limit: float | None = None
    rows: Rows = "auto"
    threads: int | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    progress: ProgressCallback | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.solver, str):
            bound = "auto, or a name that `mechdesign info` lists"
            raise InputError("solver", "must be a name", value=self.solver, bound=bound)
        if self.rows not in get_args(Rows):
            raise InputError("rows", "is not known", value=self.rows, bound="auto, all, reduced, near, lazy or rays")
        threads = self.threads
        if threads is not None:
            if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
                raise InputError("threads", "must be a number of threads", value=threads, bound="an integer >= 1")
            object.__setattr__(self, "threads", int(threads))
        options = {} if self.options is None else self.options
        if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
            bound = 'such as {"symmetry": False}'
            raise InputError("options", "must be a mapping of names to values", value=options, bound=bound)
        if self.progress is not None and not callable(self.progress):
            raise InputError("progress", "cannot be called", value=self.progress, bound="a function of a Progress")
        if self.progress is not None and not _accepts_one_argument(self.progress):
            raise InputError("progress", "takes other arguments", value=self.progress, bound="a function of a Progress")
        object.__setattr__(self, "options", ReadOnlyMapping(options))
        tolerance = _check_positive("tolerance", self.tolerance)
        if not tolerance < 1:
            raise InputError("tolerance", "must be below 1", value=self.tolerance, bound="between 0 and 1")
        object.__setattr__(self, "tolerance", tolerance)
        if self.time_limit is not None:
            object.__setattr__(self, "time_limit", _check_positive("time_limit", self.time_limit))

    def deadline(self) -> Deadline:
        """Return the deadline of a computation that begins now."""
        return Deadline(self.time_limit, self.progress)

    def options_for_rows(self, deadline: Deadline) -> Options:
        """Return the options for a solver of row programs.

        Args:
            deadline: Deadline of the design.

        Returns:
            Feasibility tolerance, relative gap, threads, options and deadline.
        """
        gap = min(_MAX_SOLVER_GAP, max(_MIN_SOLVER_GAP, self.tolerance * _SOLVER_SHARE))
        feasibility = min(gap, max(_MIN_VIOLATION, self.tolerance * _MIN_VIOLATION_SHARE))
        return self._options(feasibility, gap, deadline)

    def options_for_blocks(self, deadline: Deadline) -> Options:
        """Return the options for a solver of block programs.

        Args:
            deadline: Deadline of the design.

        Returns:
            Feasibility tolerance, relative gap, threads, options and deadline.
        """
        gap = max(self.tolerance * _BLOCK_SHARE, self.tolerance - _MAX_ROUNDING_GAP)
        return self._options(_MIN_VIOLATION, max(_MIN_BLOCK_GAP, gap), deadline)

    def _options(self, feasibility: float, gap: float, deadline: Deadline) -> Options:
        return Options(feasibility, gap, threads=self.threads, extra=self.options, deadline=deadline)


def _accepts_one_argument(function: Callable[..., object]) -> bool:
    """Return whether a function accepts one argument; also return true if its signature is unknown."""
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:
        # The signature of a function written in C may be unavailable.
        return True
    return True


def _check_positive(path: str, value: float) -> float:
    """Return a positive number as a float, capped at the largest float; raise InputError for any other value."""
    number = exact(value, path)
    if not number > 0:
        raise InputError(path, "must be positive", value=value, bound="greater than 0")
    return float(min(number, Fraction(sys.float_info.max)))
