"""How many changes of known counts can depend on each other: longest minimal zero sums of integer vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechdesign.blowfish.constraint_effects import Effect
from mechdesign.validation import Integers

__all__ = ["SEARCH_STEPS", "longest_zero_sum", "minimal_zero_sums"]

SEARCH_STEPS = 5_000
"""Number of partial sums that the search visits before it gives up."""


def longest_zero_sum(effects: Sequence[Effect]) -> tuple[list[Effect], int]:
    """Return a longest sequence of effects that add up to nothing while no smaller part of them does, and a bound.

    Where `minimal_zero_sums` does not finish, the bound is (2r + 1)^r, r the rank of the effects: by Steinitz's lemma
    they can be put in an order in which all partial sums lie in a cube with (2r + 1)^r integer points, and two equal
    ones would enclose a smaller zero sum.
    """
    found, finished = minimal_zero_sums(effects)
    longest = found[0] if found else []
    if finished:
        return longest, len(longest)
    rank = int(np.linalg.matrix_rank(_vectors(effects).astype(np.float64)))
    return longest, (2 * rank + 1) ** rank


def minimal_zero_sums(effects: Sequence[Effect]) -> tuple[list[list[Effect]], bool]:
    """Return the sequences of effects that add up to nothing while no smaller part does, the longest first.

    They are the minimal solutions of Σ n_f f = 0 in natural numbers, enumerated by length after Contejean and Devie
    (1994): a partial sum s is extended by f only if s·f < 0, which reaches all of them.

    Returns:
        The sequences, and whether they are all: the search stops after `SEARCH_STEPS` steps.
    """
    vectors = _vectors(effects)
    products = vectors @ vectors.T
    minimal = np.zeros((0, len(vectors)), dtype=np.int64)
    level = np.eye(len(vectors), dtype=np.int64)
    steps = 0
    while len(level) and steps <= SEARCH_STEPS:
        solved = ~(level @ vectors).any(axis=1)
        minimal = np.concatenate((minimal, level[solved]))
        level = level[~solved]
        rows, columns = np.nonzero(level @ products < 0)
        steps += len(rows)
        level = level[rows]
        level[np.arange(len(rows)), columns] += 1
        level = np.unique(level, axis=0)
        # A sequence that contains a zero sum is not minimal.
        contains = np.zeros(len(level), dtype=bool)
        for solution in minimal:
            contains |= (level >= solution).all(axis=1)
        level = level[~contains]
    found = [[effects[row] for row in np.repeat(np.arange(len(times)), times).tolist()] for times in minimal]
    return found[::-1], not len(level)


def _vectors(effects: Sequence[Effect]) -> Integers:
    constraints = sorted({index for effect in effects for part in effect for index in part})
    place = {index: row for row, index in enumerate(constraints)}
    vectors = np.zeros((len(effects), len(constraints)), dtype=np.int64)
    for row, (lifted, lowered) in enumerate(effects):
        vectors[row, [place[index] for index in lifted]] = 1
        vectors[row, [place[index] for index in lowered]] = -1
    return vectors
