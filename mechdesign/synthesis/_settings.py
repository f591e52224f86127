"""How a problem is to be solved, as one value."""

from __future__ import annotations

import inspect
import sys
import warnings
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
"""The relative gap that is asked for unless one is given: every solver reaches it on nearly every problem."""

# The solver's share of the gap asked for; the rest is for what its rows are violated by, and for rounding.
_SOLVER_SHARE = 0.1
# Solvers of rows take no smaller one seriously, and with a larger one their answers are refused as gross.
_MIN_SOLVER_GAP, _MAX_SOLVER_GAP = 1e-10, 1e-3
# What rows may be violated by, absolute or as a part of the gap asked for; with less a first-order method never ends.
_MIN_VIOLATION, _MIN_VIOLATION_SHARE = 1e-7, 1e-3
# The block method proves its gap by its own numbers: half is left for rounding, but no more than rounding can take.
_BLOCK_SHARE, _MAX_ROUNDING_GAP = 0.5, 5e-6
# Below this relative gap rounding wins.
_MIN_BLOCK_GAP = 1e-9


@dataclass(frozen=True)
class SolveSettings:
    """How a problem is to be solved: the arguments of `mechdesign.design`.

    Args:
        solver: "auto" (chosen by size), or a name that `mechdesign info` lists.
        tolerance: Relative gap asked for, (cost − lower bound) / cost: between 0 and 1.
        time_limit: Seconds, or None for no limit.
        rows: Which privacy rows the solver sees: "auto", "all" (a row for every pair), "reduced" (pairs that no others
            imply), "lazy" (near pairs first, violated ones as they show), "near" (a spanner of the pairs, at ε
            divided by its dilation) or "rays" (none: columns are mixed of private ones).
        threads: Most threads that the solver may use, or None for its own choice.
        options: Further options, under the solver's own names.
        progress: Called with a `Progress` now and then.

    Raises:
        InputError: A value is of the wrong kind or out of range; its path is the name of the argument. Whether there
            is a solver of that name is found out when it is asked for.

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
        """Return what a solver of rows is asked for."""
        gap = min(_MAX_SOLVER_GAP, max(_MIN_SOLVER_GAP, self.tolerance * _SOLVER_SHARE))
        feasibility = min(gap, max(_MIN_VIOLATION, self.tolerance * _MIN_VIOLATION_SHARE))
        return self._options(feasibility, gap, deadline)

    def options_for_blocks(self, deadline: Deadline) -> Options:
        """Return what a solver of block programs is asked for."""
        gap = max(self.tolerance * _BLOCK_SHARE, self.tolerance - _MAX_ROUNDING_GAP)
        return self._options(_MIN_VIOLATION, max(_MIN_BLOCK_GAP, gap), deadline)

    def _options(self, feasibility: float, gap: float, deadline: Deadline) -> Options:
        return Options(feasibility, gap, threads=self.threads, extra=self.options, deadline=deadline)


def _accepts_one_argument(function: Callable[..., object]) -> bool:
    """Tell whether a function can be called with one argument, as far as is known."""
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:
        # Functions in C need not say what they take.
        return True
    return True


def resolve_progress(
    progress: ProgressCallback | None, report: ProgressCallback | None, stacklevel: int = 3
) -> ProgressCallback | None:
    """Return `progress`, or `report`, the name that it had before, with a DeprecationWarning."""
    if report is None:
        return progress
    warnings.warn("report= is now called progress=", DeprecationWarning, stacklevel=stacklevel)
    return report if progress is None else progress


def _check_positive(path: str, value: float) -> float:
    """Return a number above 0 as a float, at most the largest; raise InputError, with its path, for anything else."""
    number = exact(value, path)
    if not number > 0:
        raise InputError(path, "must be positive", value=value, bound="greater than 0")
    return float(min(number, Fraction(sys.float_info.max)))
