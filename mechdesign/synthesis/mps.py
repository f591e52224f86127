"""The linear program of a problem as an MPS file, for solvers elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mechdesign.model.problem import Problem
from mechdesign.programs.mps import to_mps
from mechdesign.synthesis.exponents import LARGEST_ROW_EXPONENT
from mechdesign.synthesis.normal import normalise
from mechdesign.synthesis.row_program import all_triples, formulate
from mechdesign.synthesis.spanner import irreducible

__all__ = ["mps"]


def mps(problem: Problem, all_rows: bool = False) -> Iterator[str]:
    """Yield the lines of the program of `problem` in free MPS format.

    It has the privacy rows that no others imply, or those of every pair with `all_rows`; either way not those of pairs
    at an exponent above `LARGEST_ROW_EXPONENT`. Its objective is the cost itself; blocks are named as in
    `ChannelProgram`.
    """
    form = normalise(problem)
    pairs = np.isfinite(form.exponents) if all_rows else irreducible(form.exponents)
    triples = all_triples(pairs & (form.exponents <= LARGEST_ROW_EXPONENT), form.observables)
    yield from to_mps(formulate(form, triples, scaled=False).program)
