"""Choose the attempts to solve a problem, in order; each attempt has rows, a solver and a reason.

The first attempt depends on the size. Until the certified gap is small enough, further attempts follow in this order:

1. After an exact solver with all rows, the same program with a magnified objective gives better multipliers. If the
   choice was automatic and the program is small, a program with the rows of all pairs follows.
2. If some exponents are below 1e-6, a program with merged secrets follows: exponents this small force nearly equal
   rows.
3. If the choice was automatic, the block method follows the simplex method. Lazy rows on HiGHS follow the block method
   if HiGHS solves them within seconds. If lazy rows take minutes, they follow only after a stall far from the optimum.
   Such stalls happen if floors are near the largest possible value.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._deadline import Deadline, OutOfTimeError
from mechdesign.base._errors import InputError
from mechdesign.solve import _registry as registry
from mechdesign.synthesis._normal import LARGEST_ROW_EXPONENT, NormalForm, find_bounded_pairs, normalise
from mechdesign.synthesis._rounding import has_tight_floor
from mechdesign.synthesis._settings import Rows

# The solvers that "auto" chooses from (`mechdesign.solve._registry`).
BLOCK_SOLVER = "block"
"""The solver for most programs: it uses the bounds of all pairs, and needs no further package."""
_SIMPLEX_SOLVERS = "highs-simplex", "scipy"
_LAZY_SOLVERS = "highs-ipx", "scipy"

RAYS = "rays"
"""The name of the ray method in `rows` and in summaries. The method solves neither row programs nor block programs."""

# Up to this number of rows the simplex method reaches an exact vertex in well under a second. With 20 secrets and 20
# observables, the simplex method is as fast as the block method. With 25 secrets, the simplex method takes two to ten
# times as long as the block method. However, the simplex method's solution is exact to the last digits. With 30
# secrets, beyond this limit, the simplex method takes five to fifty times as long.
MAX_SIMPLEX_ROWS = 12_000


# Largest sizes (pairs times observables) at which HiGHS solves lazy rows in seconds (about 100 secrets) and in minutes.
# The size of a problem with both bounds and floors is multiplied by `_FLOOR_SIZE_FACTOR` (50 secrets).
_MAX_QUICK_LAZY_SIZE = 1_100_000
_FLOOR_SIZE_FACTOR = 9
_MAX_LAZY_SIZE = 2_200_000
# Secrets are merged if a bound with a smaller exponent connects them: their rows may differ only by less than the
# accuracy of solvers.
_MAX_MERGED_EXPONENT = 1e-6
# Factor of the objective at which a reduced cost within the solver's tolerance is negligible in the certificate.
_MAGNIFICATION = 1e6


def choose_simplex_solver() -> str:
    """Return the installed solver for small programs, and for programs that are solved repeatedly: it is exact.

    HiGHS also supports warm starts; without the package highspy, SciPy's copy of HiGHS solves these programs.
    """
    return registry.choose_installed(*_SIMPLEX_SOLVERS)


def choose_lazy_solver() -> str:
    """Return the installed solver for large row programs: its interior points violate few of the omitted rows."""
    return registry.choose_installed(*_LAZY_SOLVERS)


@dataclass(frozen=True, eq=False)
class Attempt:
    """One way to solve a normal form.

    Attributes:
        form: The normal form.
        rows: Privacy rows that the solver receives.
        solver: Name of the solver.
        reason: Reason for the choice, for the summary.
        automatic: Whether both rows and solver were chosen automatically.
        small: Whether an exact solver takes well under a second.
        magnification: Factor of the objective.
    """

    form: NormalForm
    rows: Rows
    solver: str
    reason: str
    automatic: bool
    small: bool
    magnification: float = 1.0

    @property
    def name(self) -> str:
        """The name of the solver, followed by the rows if the objective is magnified."""
        if self.magnification == 1:
            return self.solver
        return f"{self.solver} with a magnified objective and {self.rows} rows"


def first_attempt(
    form: NormalForm, solver: str = "auto", rows: Rows = "auto", deadline: Deadline | None = None
) -> Attempt:
    """Choose rows and solver by size, unless the caller chose them.

    After the time limit, only a lower bound on the number of rows is computed.

    Args:
        form: The normal form.
        solver: "auto" or the name of a solver.
        rows: "auto" or the rows that the caller chose.
        deadline: Deadline of the design.

    Returns:
        The attempt, with a reason for the summary.

    Raises:
        InputError: The solver is not known, or does not support these rows or forbidden answers.
        MissingDependencyError: The solver is not installed.
    """
    check_choice(solver, rows)
    if rows == "rays":
        reason = f"{form.groups} secrets and {form.observables} observables, private by construction: rays"
        return Attempt(form, "rays", RAYS, reason, automatic=False, small=False)
    size, counted = _bound_rows_below(form), "at least "
    # The block method uses all pairs. For many secrets, counting the irreducible pairs takes too long and is avoided.
    if size <= MAX_SIMPLEX_ROWS or not _would_take_blocks(form, solver, rows):
        with contextlib.suppress(OutOfTimeError):
            size = (
                int(find_bounded_pairs(form, "all" if rows == "all" else "reduced", deadline).sum()) * form.observables
            )
            counted = ""
    floors = sum(floor.error.shape[0] * form.observables for floor in form.floors)
    automatic = solver == "auto" and rows == "auto"
    forbidden = bool(form.forbidden.any())
    if solver == "auto":
        solver = (
            choose_simplex_solver()
            if size + floors <= MAX_SIMPLEX_ROWS
            else choose_lazy_solver()
            if rows != "auto" or forbidden
            else BLOCK_SOLVER
        )
    if forbidden and takes_blocks(solver):
        raise InputError(
            "solver",
            "does not support different permitted answers per secret",
            value=solver,
            bound="auto, or a solver of row programs",
        )
    if takes_blocks(solver):
        chosen_rows: Rows = "all"
        size, counted = int(np.isfinite(form.exponents).sum()) * form.observables, ""
    else:
        chosen_rows = rows if rows != "auto" else "reduced" if size <= MAX_SIMPLEX_ROWS else "lazy"
    shape = f"{form.groups} secrets and {form.observables} observables"
    reason = f"{counted}{size} privacy rows over {shape}: {chosen_rows} rows, {solver}"
    return Attempt(form, chosen_rows, solver, reason, automatic, small=size + floors <= MAX_SIMPLEX_ROWS)


def _bound_rows_below(form: NormalForm) -> int:
    """Return a lower bound on the number of rows: each bounded secret needs the rows of its nearest neighbour."""
    bounded = form.exponents <= LARGEST_ROW_EXPONENT
    return int(bounded.any(axis=1).sum()) * form.observables


def _would_take_blocks(form: NormalForm, solver: str, rows: Rows) -> bool:
    """Return whether the block method solves a large program with this choice of solver and rows."""
    if solver == "auto":
        return rows == "auto" and not form.forbidden.any() and takes_blocks(BLOCK_SOLVER)
    return takes_blocks(solver)


def check_choice(solver: str, rows: Rows) -> None:
    """Raise InputError or MissingDependencyError if no attempt supports this choice of solver and rows."""
    if solver != "auto" and rows == "rays":
        raise InputError("solver", 'cannot be chosen with "rays"', value=solver, remedy="leave it out")
    if solver != "auto" and takes_blocks(solver) and rows not in ("auto", "all"):
        raise InputError(
            "rows",
            f"cannot be chosen for the {solver} solver",
            value=rows,
            remedy="leave it out: this solver uses all pairs",
        )


def takes_blocks(solver: str) -> bool:
    """Return whether a solver takes block programs, which contain the bounds of all pairs, instead of row programs."""
    return registry.find(solver).takes == "blocks"


def later_attempts(first: Attempt, *, stalled: bool) -> Iterator[Attempt]:
    """Yield the attempts after the first one; `stalled` is true if the first attempt ended far from the optimum."""
    form = first.form
    if first.rows == RAYS:
        return
    forbidden = bool(form.forbidden.any())
    # Secrets with different permitted answers cannot be merged.
    near_alike = bool((form.exponents < _MAX_MERGED_EXPONENT).any()) and not forbidden
    blocks = takes_blocks(first.solver)
    if registry.find(first.solver).exact and first.rows in ("all", "reduced") and not near_alike:
        yield replace(first, magnification=_MAGNIFICATION)
        everything = first_attempt(form, first.solver, "all")
        # A chain of many bounds with large exponents implies a bound only up to the rounding errors of the whole chain.
        if first.automatic and everything.small:
            yield replace(everything, automatic=True, magnification=_MAGNIFICATION)
    alike = (first.automatic or blocks) and near_alike
    merged = normalise(form.problem, _MAX_MERGED_EXPONENT) if alike else form
    if alike:
        yield _note_merging(first_attempt(merged, "auto" if first.automatic else first.solver))
    if not first.automatic:
        return
    if not forbidden and not blocks:
        yield first_attempt(form, BLOCK_SOLVER)
        if alike:
            yield _note_merging(first_attempt(merged, BLOCK_SOLVER))
        return
    lazy = choose_lazy_solver()
    if first.solver != lazy if forbidden else _is_worth_a_lazy_attempt(form, stalled):
        yield first_attempt(form, lazy)


def _is_worth_a_lazy_attempt(form: NormalForm, stalled: bool) -> bool:
    """Return whether to try lazy rows: if they take seconds, or take minutes after a stall far from the optimum."""
    bounds = int(np.isfinite(form.exponents).sum())
    size = max(bounds, *(floor.error.size for floor in form.floors), 0) * form.observables
    if size * (_FLOOR_SIZE_FACTOR if form.floors and bounds else 1) <= _MAX_QUICK_LAZY_SIZE:
        return True
    return (stalled or has_tight_floor(form)) and size <= _MAX_LAZY_SIZE


def _note_merging(attempt: Attempt) -> Attempt:
    return replace(attempt, reason=f"{attempt.reason}, secrets at exponents below {_MAX_MERGED_EXPONENT:g} made alike")
