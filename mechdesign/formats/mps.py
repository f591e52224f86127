"""MPS: the linear program that the channel solves, for solvers elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mechdesign.formats.format import Exported, Format
from mechdesign.model.problem import Problem
from mechdesign.programs.mps import to_mps
from mechdesign.synthesis.exponents import LARGEST_ROW_EXPONENT
from mechdesign.synthesis.normal import normalise
from mechdesign.synthesis.row_program import RowReduction, all_triples
from mechdesign.synthesis.spanner import irreducible

__all__ = ["MPS", "mps"]


def mps(problem: Problem, all_rows: bool = False) -> Iterator[str]:
    """Yield the lines of the program of `problem` in free MPS format.

    It has the privacy rows that no others imply, or those of every pair with `all_rows`; either way not those of pairs
    at an exponent above `LARGEST_ROW_EXPONENT`. Its objective is the cost itself; blocks are named as in
    `RowReduction`.
    """
    form = normalise(problem)
    pairs = np.isfinite(form.exponents) if all_rows else irreducible(form.exponents)
    triples = all_triples(pairs & (form.exponents <= LARGEST_ROW_EXPONENT), form.observables)
    program, _ = RowReduction(triples, scaled=False).apply(form)
    yield from to_mps(program)


def _contents(exported: Exported, all_rows: bool = False) -> Iterator[bytes]:
    return (line.encode() for line in mps(exported.problem, all_rows))


MPS = Format("mps", "the linear program that the channel solves", (".mps",), _contents, options=("all_rows",))
