"""Minimal zero sums: vectors that add up to nothing while no smaller part of them does."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mechdesign.base._arrays import Integers

__all__ = ["SEARCH_STEPS", "longest", "minimal_zero_sums", "rank"]

SEARCH_STEPS = 20_000
"""Number of partial sums that the search visits before it gives up."""

_LONGEST = (0, 2, 4, 10)
# The search holds a square of so many numbers.
_MOST_VECTORS = 512


def minimal_zero_sums(vectors: Integers) -> tuple[Integers, bool]:
    """Return how often each vector, a row of (F, q), occurs in each minimal zero sum, and whether these are all.

    They are the minimal solutions of Σ n_f f = 0 in natural numbers, enumerated by length after Contejean and Devie
    (1994): a partial sum s is extended by f only if s·f < 0, which reaches all of them.

    >>> minimal_zero_sums(np.array([[1], [-1], [2]]))[0].tolist()
    [[1, 1, 0], [0, 2, 1]]

    Returns:
        The zero sums, shape (k, F), the shortest first, and whether they are all: the search stops after
        `SEARCH_STEPS` steps.
    """
    minimal = np.zeros((0, len(vectors)), dtype=np.int64)
    if len(vectors) > _MOST_VECTORS:
        return minimal, False
    products = vectors @ vectors.T
    level = np.eye(len(vectors), dtype=np.int64)
    steps = 0
    while len(level):
        solved = ~(level @ vectors).any(axis=1)
        minimal = np.concatenate((minimal, level[solved]))
        level = level[~solved]
        rows, columns = np.nonzero(level @ products < 0)
        steps += len(rows)
        if steps > SEARCH_STEPS:
            return minimal, False
        level = level[rows]
        level[np.arange(len(rows)), columns] += 1
        level = np.unique(level, axis=0)
        # A sum that contains a zero sum is not minimal.
        contains = np.zeros(len(level), dtype=bool)
        for solution in minimal:
            contains |= (level >= solution).all(axis=1)
        level = level[~contains]
    return minimal, True


def longest(dimension: int) -> int:
    """Return a length that no minimal zero sum of vectors with entries −1, 0 and 1 passes that span q dimensions.

    Up to q = 3 it is that of the longest one: 2, 4 and 10, found by `minimal_zero_sums` for all vectors at once. Beyond
    it is (2q + 1)^q: by Steinitz's lemma the vectors can be put in an order in which all partial sums have entries of
    at most q. Two equal partial sums would enclose a smaller zero sum. (Vectors of more entries are told apart by q of
    them.)
    """
    return _LONGEST[dimension] if dimension < len(_LONGEST) else int((2 * dimension + 1) ** dimension)


def rank(vectors: Integers) -> int:
    """Return the exact rank of the rows of an array of integers, by elimination in fractions.

    >>> rank(np.array([[1, 1, 0], [0, 1, 1], [1, 2, 1]]))
    2
    """
    pivots: dict[int, dict[int, Fraction]] = {}
    for row in vectors.tolist():
        if len(pivots) == vectors.shape[1]:
            break
        left = {column: Fraction(entry) for column, entry in enumerate(row) if entry}
        while left and (lead := min(left)) in pivots:
            factor = left[lead]
            for column, entry in pivots[lead].items():
                if reduced := left.get(column, Fraction(0)) - factor * entry:
                    left[column] = reduced
                else:
                    left.pop(column, None)
        if left:
            lead = min(left)
            pivots[lead] = {column: entry / left[lead] for column, entry in left.items()}
    return len(pivots)
