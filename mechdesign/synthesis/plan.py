"""Choose how to solve a problem: which rows, which solver, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign import solvers
from mechdesign.errors import InputError
from mechdesign.synthesis.exponents import LARGEST_ROW_EXPONENT
from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.settings import Rows
from mechdesign.synthesis.spanner import irreducible

__all__ = ["BLOCK", "Plan", "bounded_pairs", "check_choice", "plan"]

BLOCK = "block"
"""The package's own interior-point method, which takes the problem with all its pairs and no program of rows."""

# Up to this many rows the simplex method ends in an exact vertex in well under a second. It is as fast as the block
# method up to 20 secrets and as many observables; at 25 it takes two to ten times as long, but is exact to the last
# digits; at 30, beyond this limit, five to fifty times.
_SMALL = 12_000


@dataclass(frozen=True)
class Plan:
    """How a normal form will be solved: rows, solver, and the reason in words.

    `chosen` by us alone, or with what the caller asked for.
    """

    rows: Rows
    solver: str
    reason: str
    chosen: bool


def plan(form: NormalForm, solver: str = "auto", rows: Rows = "auto") -> Plan:
    """Choose rows and solver by size; a choice of the caller's is kept.

    Raises InputError for an unknown solver or row policy, or rows for the block method, which has none to choose;
    MissingDependencyError for a solver that is not installed.
    """
    check_choice(solver, rows)
    size = int(bounded_pairs(form, "all" if rows == "all" else "reduced").sum()) * form.observables
    floors = sum(floor.error.shape[0] * form.observables for floor in form.floors)
    chosen = solver == "auto" and rows == "auto"
    if solver == "auto":
        solver = "highs-simplex" if size + floors <= _SMALL else "highs-ipx" if rows != "auto" else BLOCK
    if solver == BLOCK:
        taken: Rows = "all"
        size = int(np.isfinite(form.exponents).sum()) * form.observables
    else:
        taken = rows if rows != "auto" else "reduced" if size <= _SMALL else "lazy"
    shape = f"{form.groups} secrets and {form.observables} observables"
    return Plan(taken, solver, f"{size} privacy rows over {shape}: {taken} rows, {solver}", chosen)


def check_choice(solver: str, rows: Rows) -> None:
    """Raise InputError or MissingDependencyError for a choice that `plan` does not take."""
    if solver == BLOCK and rows not in ("auto", "all"):
        raise InputError("rows", "cannot be chosen for the block solver", value=rows, remedy="it takes all of them")
    if solver not in ("auto", BLOCK):
        solvers.find(solver)


def bounded_pairs(form: NormalForm, rows: Rows) -> NDArray[np.bool_]:
    """Return the pairs (k, k) that may get a row: all of them, or those that no others imply."""
    bounded = form.exponents <= LARGEST_ROW_EXPONENT
    return bounded if rows == "all" else irreducible(form.exponents) & bounded
