"""The attempts at a problem, in order: which rows, which solver, and why.

The first one is chosen by size. The others follow while the certificate is not good enough. After an exact solver that
saw all its rows comes the same program with its objective magnified, for better multipliers, and, where we chose it and
its rows are few, a program with the rows of all pairs. Secrets that bounds with exponents below 1e-6 make nearly alike
are then made alike. Where we chose the solver, the block method follows the simplex method. Lazy rows on HiGHS follow
the block method where they take seconds, or where they take minutes and it stalled far from the optimum, as it does at
floors near the largest possible.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._deadline import Deadline, OutOfTimeError
from mechdesign.base._errors import InputError
from mechdesign.solve import _registry as registry
from mechdesign.synthesis._normal import LARGEST_ROW_EXPONENT, NormalForm, normalise
from mechdesign.synthesis._pairs import find_bounded_pairs
from mechdesign.synthesis._rounding import has_tight_floor
from mechdesign.synthesis._settings import Rows

# What "auto" means, each with the features that the attempts below rely on (`mechdesign.solve._registry`).
SIMPLEX_SOLVER = "highs-simplex"
"""For small programs, and where one program is solved again and again: exact, with a warm start."""
BLOCK_SOLVER = "block"
"""For all others: it takes the problem with all its pairs."""
LAZY_SOLVER = "highs-ipx"
"""For large programs of rows: its interior points violate few of the rows left out."""

RAYS = "rays"
"""Where rays are asked for: no solver of programs of rows or blocks, and the name that a summary has for it."""

# Up to this many rows the simplex method ends in an exact vertex in well under a second. It is as fast as the block
# method up to 20 secrets and as many observables; at 25 it takes two to ten times as long, but is exact to the last
# digits; at 30, beyond this limit, five to fifty times.
MAX_SIMPLEX_ROWS = 12_000


# Pairs times observables up to which lazy rows take HiGHS seconds (about 100 secrets, 50 with floors), and minutes;
# floors alone, with estimates for one end of the pairs, are as quick as bounds alone.
_MAX_QUICK_LAZY_SIZE = 1_100_000
_FLOOR_SIZE_FACTOR = 9
_MAX_LAZY_SIZE = 2_200_000
# Bounds with smaller exponents hardly let two rows differ, by less than solvers resolve: they are made equal.
_MAX_MERGED_EXPONENT = 1e-6
# The factor of the objective at which reduced costs that a solver takes for 0 are 0 for the certificate, too.
_MAGNIFICATION = 1e6


@dataclass(frozen=True, eq=False)
class Attempt:
    """One way to solve a normal form.

    Attributes:
        form: The normal form.
        rows: Which privacy rows the solver sees.
        solver: Name of the solver.
        reason: Why, in words.
        chosen: Whether the choice is ours alone; otherwise the caller asked for some of it.
        small: Whether an exact solver takes well under a second.
        magnification: Factor of the objective.
    """

    form: NormalForm
    rows: Rows
    solver: str
    reason: str
    chosen: bool
    small: bool
    magnification: float = 1.0

    @property
    def name(self) -> str:
        """The solver, with what else distinguishes the attempt."""
        if self.magnification == 1:
            return self.solver
        return f"{self.solver} with a magnified objective and {self.rows} rows"


def first_attempt(
    form: NormalForm, solver: str = "auto", rows: Rows = "auto", deadline: Deadline | None = None
) -> Attempt:
    """Choose rows and solver by size; a choice of the caller's is kept.

    At the time limit rows are no longer counted.

    Raises:
        InputError: The solver is not known, takes no choice of rows, or no forbidden answers.
        MissingDependencyError: The solver is not installed.
    """
    check_choice(solver, rows)
    if rows == "rays":
        reason = f"{form.groups} secrets and {form.observables} observables, private by construction: rays"
        return Attempt(form, "rays", RAYS, reason, chosen=False, small=False)
    size, counted = _bound_rows_below(form), "at least "
    # The block method has rows of its own; to count those that no others imply takes time for many secrets.
    if size <= MAX_SIMPLEX_ROWS or not _would_take_blocks(form, solver, rows):
        with contextlib.suppress(OutOfTimeError):
            size = (
                int(find_bounded_pairs(form, "all" if rows == "all" else "reduced", deadline).sum()) * form.observables
            )
            counted = ""
    floors = sum(floor.error.shape[0] * form.observables for floor in form.floors)
    chosen = solver == "auto" and rows == "auto"
    forbidden = bool(form.forbidden.any())
    if solver == "auto":
        solver = (
            SIMPLEX_SOLVER
            if size + floors <= MAX_SIMPLEX_ROWS
            else LAZY_SOLVER
            if rows != "auto" or forbidden
            else BLOCK_SOLVER
        )
    if forbidden and takes_blocks(solver):
        raise InputError(
            "solver",
            "takes no secrets that are permitted different answers",
            value=solver,
            bound="auto, or a solver that takes programs of rows",
        )
    if takes_blocks(solver):
        taken: Rows = "all"
        size, counted = int(np.isfinite(form.exponents).sum()) * form.observables, ""
    else:
        taken = rows if rows != "auto" else "reduced" if size <= MAX_SIMPLEX_ROWS else "lazy"
    shape = f"{form.groups} secrets and {form.observables} observables"
    reason = f"{counted}{size} privacy rows over {shape}: {taken} rows, {solver}"
    return Attempt(form, taken, solver, reason, chosen, small=size + floors <= MAX_SIMPLEX_ROWS)


def _bound_rows_below(form: NormalForm) -> int:
    """Return a number of rows that no program has less of: nothing implies the bound on the nearest secret."""
    bounded = form.exponents <= LARGEST_ROW_EXPONENT
    return int(bounded.any(axis=1).sum()) * form.observables


def _would_take_blocks(form: NormalForm, solver: str, rows: Rows) -> bool:
    if solver == "auto":
        return rows == "auto" and not form.forbidden.any() and takes_blocks(BLOCK_SOLVER)
    return takes_blocks(solver)


def check_choice(solver: str, rows: Rows) -> None:
    """Raise InputError or MissingDependencyError for a choice that no attempt serves."""
    if solver != "auto" and rows == "rays":
        raise InputError("solver", 'cannot be chosen with "rays"', value=solver, remedy="leave it out")
    if solver != "auto" and takes_blocks(solver) and rows not in ("auto", "all"):
        raise InputError(
            "rows", f"cannot be chosen for the {solver} solver", value=rows, remedy="leave it out: it takes all pairs"
        )


def takes_blocks(solver: str) -> bool:
    """Tell whether a solver takes block programs, with all pairs, and not programs of rows."""
    return registry.find(solver).takes == "blocks"


def later_attempts(first: Attempt, *, stalled: bool) -> Iterator[Attempt]:
    """Yield the attempts after the first one; `stalled` says whether that ended far from the optimum."""
    form = first.form
    if first.rows == RAYS:
        return
    forbidden = bool(form.forbidden.any())
    # Secrets with different permitted answers cannot be made alike.
    near_alike = bool((form.exponents < _MAX_MERGED_EXPONENT).any()) and not forbidden
    blocks = takes_blocks(first.solver)
    if registry.find(first.solver).exact and first.rows in ("all", "reduced") and not near_alike:
        yield replace(first, magnification=_MAGNIFICATION)
        everything = first_attempt(form, first.solver, "all")
        # Chains of many steep bounds imply a bound only up to the rounding of each.
        if first.chosen and everything.small:
            yield replace(everything, chosen=True, magnification=_MAGNIFICATION)
    alike = (first.chosen or blocks) and near_alike
    merged = normalise(form.problem, _MAX_MERGED_EXPONENT) if alike else form
    if alike:
        yield _note_merging(first_attempt(merged, "auto" if first.chosen else first.solver))
    if not first.chosen:
        return
    if not forbidden and not blocks:
        yield first_attempt(form, BLOCK_SOLVER)
        if alike:
            yield _note_merging(first_attempt(merged, BLOCK_SOLVER))
    elif first.solver != LAZY_SOLVER if forbidden else _is_worth_a_lazy_attempt(form, stalled):
        yield first_attempt(form, LAZY_SOLVER)


def _is_worth_a_lazy_attempt(form: NormalForm, stalled: bool) -> bool:
    """Tell whether rows that are added one by one take seconds; or minutes, where blocks ended far from the optimum."""
    bounds = int(np.isfinite(form.exponents).sum())
    size = max(bounds, *(floor.error.size for floor in form.floors), 0) * form.observables
    if size * (_FLOOR_SIZE_FACTOR if form.floors and bounds else 1) <= _MAX_QUICK_LAZY_SIZE:
        return True
    return (stalled or has_tight_floor(form)) and size <= _MAX_LAZY_SIZE


def _note_merging(attempt: Attempt) -> Attempt:
    return replace(attempt, reason=f"{attempt.reason}, secrets at exponents below {_MAX_MERGED_EXPONENT:g} made alike")
