"""Choose how to solve a problem: which rows, which solver, and why."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

import numpy as np

from mechdesign.base._errors import InputError
from mechdesign.solve import _registry as registry
from mechdesign.solve._blocks.parallel import LateError
from mechdesign.synthesis._normal import LARGEST_ROW_EXPONENT, NormalForm
from mechdesign.synthesis._pairs import bounded_pairs
from mechdesign.synthesis._settings import Rows

# What "auto" means, each with the features that the plans below rely on (`mechdesign.solve._registry`).
EXACT = "highs-simplex"
"""For small programs, and where one program is solved again and again: exact, with a warm start."""
LARGE = "block"
"""For all others: it takes the problem with all its pairs."""
LAZY = "highs-ipx"
"""For large programs of rows: its interior points violate few of the rows left out."""

RAYS = "rays"
"""Where rays are asked for: no solver of programs of rows or blocks, and the name that a summary has for it."""

# Up to this many rows the simplex method ends in an exact vertex in well under a second. It is as fast as the block
# method up to 20 secrets and as many observables; at 25 it takes two to ten times as long, but is exact to the last
# digits; at 30, beyond this limit, five to fifty times.
SMALL = 12_000


@dataclass(frozen=True)
class Plan:
    """How a normal form will be solved: rows, solver, and the reason in words.

    `chosen` by us alone, or with what the caller asked for; `small` where an exact solver takes well under a second;
    `magnification` is that of the objective.
    """

    rows: Rows
    solver: str
    reason: str
    chosen: bool
    small: bool
    magnification: float = 1.0


def plan(form: NormalForm, solver: str = "auto", rows: Rows = "auto", until: float = math.inf) -> Plan:
    """Choose rows and solver by size; a choice of the caller's is kept.

    Where it is later than `until`, a time of `time.perf_counter`, rows are no longer counted.

    Raises:
        InputError: The solver is not known, takes no choice of rows, or no forbidden answers.
        MissingDependencyError: The solver is not installed.
    """
    check_choice(solver, rows)
    if rows == "rays":
        reason = f"{form.groups} secrets and {form.observables} observables, private by construction: rays"
        return Plan("rays", RAYS, reason, chosen=False, small=False)
    size, counted = _least_size(form), "at least "
    # The block method has rows of its own; to count those that no others imply takes time for many secrets.
    if size <= SMALL or not _takes_blocks_if_large(form, solver, rows):
        with contextlib.suppress(LateError):
            size = int(bounded_pairs(form, "all" if rows == "all" else "reduced", until).sum()) * form.observables
            counted = ""
    floors = sum(floor.error.shape[0] * form.observables for floor in form.floors)
    chosen = solver == "auto" and rows == "auto"
    forbidden = bool(form.forbidden.any())
    if solver == "auto":
        solver = EXACT if size + floors <= SMALL else LAZY if rows != "auto" or forbidden else LARGE
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
        taken = rows if rows != "auto" else "reduced" if size <= SMALL else "lazy"
    shape = f"{form.groups} secrets and {form.observables} observables"
    reason = f"{counted}{size} privacy rows over {shape}: {taken} rows, {solver}"
    return Plan(taken, solver, reason, chosen, small=size + floors <= SMALL)


def _least_size(form: NormalForm) -> int:
    """Return a number of rows that no program has less of: nothing implies the bound on the nearest secret."""
    bounded = form.exponents <= LARGEST_ROW_EXPONENT
    return int(bounded.any(axis=1).sum()) * form.observables


def _takes_blocks_if_large(form: NormalForm, solver: str, rows: Rows) -> bool:
    if solver == "auto":
        return rows == "auto" and not form.forbidden.any() and takes_blocks(LARGE)
    return takes_blocks(solver)


def check_choice(solver: str, rows: Rows) -> None:
    """Raise InputError or MissingDependencyError for a choice that `plan` does not take."""
    if solver != "auto" and rows == "rays":
        raise InputError("solver", 'cannot be chosen with "rays"', value=solver, remedy="leave it out")
    if solver != "auto" and takes_blocks(solver) and rows not in ("auto", "all"):
        raise InputError(
            "rows", f"cannot be chosen for the {solver} solver", value=rows, remedy="leave it out: it takes all pairs"
        )


def takes_blocks(solver: str) -> bool:
    """Tell whether a solver takes block programs, with all pairs, and not programs of rows."""
    return registry.find(solver).takes == "blocks"
