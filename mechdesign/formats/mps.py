"""MPS: the linear program that the channel solves, for solvers elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sparse

from mechdesign.formats.format import Exported
from mechdesign.formats.format import Format
from mechdesign.model._problem import Problem
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._linear import to_mps
from mechdesign.synthesis.exponents import LARGEST_ROW_EXPONENT
from mechdesign.synthesis.normal import NormalForm
from mechdesign.synthesis.normal import normalise
from mechdesign.synthesis.row_program import RowReduction
from mechdesign.synthesis.row_program import all_triples
from mechdesign.synthesis.spanner import irreducible

__all__ = ["MPS", "mps"]

# Magnitudes from 1/32 to 16 stay as they are: the objective is then the cost itself.
_NEAR_ONE_BITS = 4


def mps(problem: Problem, all_rows: bool = False) -> Iterator[str]:
    """Yield the lines of the program of `problem` in free MPS format.

    It has the privacy rows that no others imply, or those of every pair with `all_rows`; either way not those of pairs
    at an exponent above `LARGEST_ROW_EXPONENT`. Its objective is the cost, times a power of two where it would be far
    from 1: solvers stop at an absolute tolerance, and take small costs for zero. Comments state that factor, and those
    of floors on the adversary's error. Blocks are named as in `RowReduction`.
    """
    form = normalise(problem)
    pairs = np.isfinite(form.exponents) if all_rows else irreducible(form.exponents)
    triples = all_triples(pairs & (form.exponents <= LARGEST_ROW_EXPONENT), form.observables)
    program, _ = RowReduction(triples, scaled=False).apply(form)
    scaled, comments = _scale(program, form)
    yield from to_mps(scaled, comments)


def _scale(program: LinearProgram, form: NormalForm) -> tuple[LinearProgram, list[str]]:
    """Return the program in units in which its cost and the errors of its floors are about 1, and what to say of them.

    Powers of two round nothing. The columns of a floor i and the worst cost are in the new units.
    """
    rows, columns = np.ones(program.rows), np.ones(program.columns)
    cost = _power(_magnitude(form))
    comments = [_said("the objective is the cost", cost)]
    if "theta" in program.column_blocks:
        rows[program.row_blocks["worst"]] = cost
        columns[program.column_blocks["theta"]] = 1 / cost
    for index, floor in enumerate(form.floors):
        unit = _power(floor.minimum)
        rows[program.row_blocks[f"floor{index}"]] = unit
        columns[program.column_blocks[f"x{index}"]] = 1 / unit
        comments.append(_said(f"x{index} and floor{index} are errors of the adversary", unit))
    matrix = sparse.diags_array(rows) @ program.matrix @ sparse.diags_array(columns)
    changed = replace(
        program,
        cost=program.cost * columns * cost,
        matrix=sparse.csr_array(matrix),
        row_lower=program.row_lower * rows,
        row_upper=program.row_upper * rows,
    )
    return changed, comments


def _magnitude(form: NormalForm) -> float:
    """Return a cost that the optimum does not exceed by much: that of the best constant answer, or of a usual one."""
    problem = form.problem
    if problem.objective == "worst":
        return float(form.finite_cost.max())
    if form.forbidden.any():
        permitted = np.isfinite(problem.cost).sum(axis=1)
        return float(problem.prior @ (form.finite_cost.sum(axis=1) / permitted))
    return float((problem.prior @ problem.cost).min())


def _power(magnitude: float) -> float:
    """Return the power of two that brings a magnitude into [1/2, 1); 1 for 0 and for what is about 1 as it is."""
    exponent = math.frexp(magnitude)[1]
    return 1.0 if abs(exponent) <= _NEAR_ONE_BITS else 2.0 ** -min(max(exponent, -1000), 1000)


def _said(what: str, factor: float) -> str:
    return f"{what} times {factor:.17g} (2^{round(math.log2(factor))})"


def _contents(exported: Exported, all_rows: bool = False) -> Iterator[bytes]:
    return (line.encode() for line in mps(exported.problem, all_rows))


MPS = Format("mps", "the linear program that the channel solves", (".mps",), _contents, options=("all_rows",))
