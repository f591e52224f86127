"""How many changes of known counts can depend on each other: longest minimal zero sums of integer vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechdesign.blowfish.constraint_effects import Effect
from mechdesign.model._arrays import Integers

__all__ = ["SEARCH_STEPS", "longest_zero_sum"]

SEARCH_STEPS = 20_000
"""Number of partial sums that the search visits before it gives up and a bound is returned."""


def longest_zero_sum(effects: Sequence[Effect]) -> tuple[list[Effect], int]:
    """Return a longest sequence of effects that add up to nothing while no smaller part of them does, and a bound.

    The sequences are the minimal solutions of Σ n_f f = 0 in natural numbers, enumerated by length after Contejean and
    Devie (1994): a partial sum s is extended by f only if s·f < 0, which reaches all of them. Where that takes more
    than `SEARCH_STEPS` steps the longest found so far is returned with the bound (2r + 1)^r, r the rank of the effects:
    by Steinitz's lemma the effects can be put in an order in which all partial sums lie in a cube with (2r + 1)^r
    integer points, and two equal ones would enclose a smaller zero sum.
    """
    constraints = sorted({index for effect in effects for part in effect for index in part})
    place = {index: row for row, index in enumerate(constraints)}
    vectors = np.zeros((len(effects), len(constraints)), dtype=np.int64)
    for row, (lifted, lowered) in enumerate(effects):
        vectors[row, [place[index] for index in lifted]] = 1
        vectors[row, [place[index] for index in lowered]] = -1
    longest, finished = _minimal_solution(vectors)
    rank = int(np.linalg.matrix_rank(vectors.astype(np.float64)))
    bound = int(longest.sum()) if finished else (2 * rank + 1) ** rank
    return [effects[row] for row, times in enumerate(longest.tolist()) for _ in range(times)], bound


def _minimal_solution(vectors: Integers) -> tuple[Integers, bool]:
    """Return the longest minimal solution found, and whether all have been seen."""
    products = vectors @ vectors.T
    minimal = np.zeros((0, len(vectors)), dtype=np.int64)
    level = np.eye(len(vectors), dtype=np.int64)
    steps = 0
    while len(level):
        solved = ~(level @ vectors).any(axis=1)
        minimal = np.concatenate((minimal, level[solved]))
        level = level[~solved]
        wanted = level @ products < 0
        steps += int(wanted.sum())
        if steps > SEARCH_STEPS:
            return _longest(minimal, len(vectors)), False
        rows, columns = np.nonzero(wanted)
        level = level[rows]
        level[np.arange(len(rows)), columns] += 1
        level = np.unique(level, axis=0)
        # A sequence that contains a zero sum is not minimal.
        contains = np.zeros(len(level), dtype=bool)
        for solution in minimal:
            contains |= (level >= solution).all(axis=1)
        level = level[~contains]
    return _longest(minimal, len(vectors)), True


def _longest(minimal: Integers, length: int) -> Integers:
    return minimal[int(np.argmax(minimal.sum(axis=1)))] if len(minimal) else np.zeros(length, dtype=np.int64)
