"""Contradictory known counts, and the sets of moves that preserve all known counts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy import optimize

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError, SolverError
from mechdesign.tables._policies._known_counts import Constraint, kinds_of

# Above this bound a count times the solver's tolerance is no longer small.
_LARGEST_COUNT = 10**9


def check_consistent(constraints: Sequence[Constraint], size: int) -> None:
    """Raise `InputError` if no table has all known counts, naming a minimal contradictory set."""
    guilty = find_contradiction(constraints, size)
    if not guilty:
        return
    shown = ", ".join(f"constraints[{index}] = {constraints[index].known}" for index in guilty)
    problem = "counts no value" if len(guilty) == 1 else "contradict each other: no table has all these counts"
    path = f"constraints[{guilty[0]}]" if len(guilty) == 1 else "constraints"
    raise InputError(path, problem, value=shown, remedy="correct or leave out one of them")


def find_contradiction(constraints: Sequence[Constraint], size: int) -> tuple[int, ...]:
    """Return a minimal set of constraints whose known counts no table can have together.

    An integer program decides whether there are whole numbers n_a >= 0 of records of each kind with Σ_a Q[q, a] n_a =
    count of q. The set is minimised by leaving out one constraint after another.

    Args:
        constraints: the constraints.
        size: the number |T| of values.

    Returns:
        The numbers of the constraints, in order; empty if some table has all counts.

    Raises:
        InputError: A known count exceeds 10^9.
        SolverError: the integer program could not be solved.
    """
    known = [index for index, constraint in enumerate(constraints) if constraint.known is not None]
    for index in known:
        if constraints[index].known > _LARGEST_COUNT:  # type: ignore[operator]
            raise InputError(f"constraints[{index}]", "has too large a known count", value=constraints[index].known)
    if not known:
        return ()
    counted = kinds_of([constraints[index] for index in known], size)[1].T.astype(np.float64)
    answers = np.array([constraints[index].known for index in known], dtype=np.float64)
    if _possible(counted, answers):
        return ()
    kept = list(range(len(known)))
    for row in range(len(known)):
        without = [other for other in kept if other != row]
        if without and not _possible(counted[without], answers[without]):
            kept = without
    return tuple(known[row] for row in kept)


def _possible(counted: Floats, answers: Floats) -> bool:
    """Return whether some table has the counts; a table that is found is checked with integers."""
    result = optimize.milp(
        np.zeros(counted.shape[1]),
        integrality=np.ones(counted.shape[1], dtype=np.int64),
        bounds=optimize.Bounds(0, float(answers.max())),
        constraints=optimize.LinearConstraint(counted, answers, answers),
    )
    # Values that no constraint counts are free; their upper bound has no effect.
    if result.status == 2:
        return False
    if result.x is not None:
        records = np.rint(result.x).astype(np.int64)
        if (records >= 0).all() and (counted.astype(np.int64) @ records == answers.astype(np.int64)).all():
            return True
    raise SolverError(f"whether the known counts agree with any table could not be decided: {result.message}")


SEARCH_STEPS = 20_000
"""The largest number of partial sums that the search visits."""

_LONGEST = (0, 2, 4, 10)
# The search stores a square matrix of this size.
_MOST_VECTORS = 512


def minimal_zero_sums(vectors: Integers) -> tuple[Integers, bool]:
    """Return the multiplicity of each vector in each minimal zero sum, and whether all zero sums were found.

    Minimal zero sums are the minimal solutions of Σ n_f f = 0 in natural numbers. They are enumerated by length
    (Contejean and Devie 1994): a partial sum s is extended by f only if s·f < 0, which reaches all solutions.

    Args:
        vectors: the vectors, integers of shape (F, q).

    >>> minimal_zero_sums(np.array([[1], [-1], [2]]))[0].tolist()
    [[1, 1, 0], [0, 2, 1]]

    Returns:
        The zero sums, shape (k, F), the shortest first. The second value is False if the search stopped after
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


def bound_length(dimension: int) -> int:
    """Return an upper bound on the length of minimal zero sums of vectors with entries −1, 0 and 1 of rank q.

    Up to q = 3 the bound is the length of the longest zero sum: 2, 4 and 10, found by `minimal_zero_sums` for all
    vectors. For larger q it is (2q + 1)^q. By Steinitz's lemma the vectors have an order in which all partial sums have
    entries of at most q. Two equal partial sums would enclose a smaller zero sum. (In vectors with more entries, q of
    the entries determine the others.)
    """
    return _LONGEST[dimension] if dimension < len(_LONGEST) else int((2 * dimension + 1) ** dimension)


def find_rank(vectors: Integers) -> int:
    """Return the exact rank of the rows of an array of integers, by elimination in fractions.

    >>> find_rank(np.array([[1, 1, 0], [0, 1, 1], [1, 2, 1]]))
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
