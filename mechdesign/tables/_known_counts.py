"""Constraints: publicly known counts of a table, their contradictions, and the sets of moves that preserve them all."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from mechdesign.base._arrays import Flags, Floats, Integers, read_only
from mechdesign.base._check import as_list, require_kind, require_unmasked
from mechdesign.base._errors import InputError, SolverError
from mechdesign.base._names import named
from mechdesign.tables._domain import Domain
from mechdesign.tables._values import in_order_of_values


@dataclass(frozen=True, eq=False)
class Constraint:
    """A count query whose answer is publicly known.

    Attributes:
        counted: for each value, whether the query counts it, bool of shape (|T|,), read-only.
        known: the known count, or None if the count is publicly known but not given.

    >>> Constraint(np.array([True, False, True]), 3).known
    3
    """

    counted: Flags
    known: int | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraint):
            return NotImplemented
        return self.known == other.known and np.array_equal(self.counted, other.counted)

    def __hash__(self) -> int:
        return hash((self.known, self.counted.tobytes()))


def as_constraints(given: Iterable[object], domain: Domain) -> tuple[Constraint, ...]:
    """Return constraints, each given as a 0/1 array over the values, a pair (array, known count) or a `Constraint`."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError("constraints", "is not a list", value=given, bound="0/1 arrays, or pairs (array, count)")
    return tuple(_constraint(entry, domain, f"constraints[{index}]") for index, entry in enumerate(given))


def kinds_of(constraints: Sequence[Constraint], size: int, *, null: bool = False) -> tuple[Integers, Flags]:
    """Return the kind of each value, and a table that shows which constraints count each kind.

    Two values have the same kind if the same constraints count them. With `null`, the null node follows the values; no
    constraint counts the null node. The kinds have shape (|T|,), or (|T| + 1,) with `null`; the table has shape (kinds,
    constraints).
    """
    labels = np.zeros(size + null, dtype=np.int64)
    for constraint in constraints:
        member = np.append(constraint.counted, False) if null else constraint.counted
        labels = np.unique(2 * labels + member, return_inverse=True)[1].astype(np.int64)
    first = np.unique(labels, return_index=True)[1]
    counted = np.zeros((len(first), len(constraints)), dtype=bool)
    for index, constraint in enumerate(constraints):
        values = first < size
        counted[values, index] = constraint.counted[first[values]]
    return labels, counted


def marginal_constraints(
    domain: Domain, names: Sequence[str], table: ArrayLike | None = None
) -> list[Flags | tuple[Flags, int]]:
    """Return the constraints of a publicly known marginal table.

    >>> domain = Domain({"age": range(3), "sex": ["f", "m"]})
    >>> [array.astype(int).tolist() for array in marginal_constraints(domain, ["sex"])]
    [[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]]

    Args:
        domain: the domain of the records.
        names: the attributes of the marginal table.
        table: the counts, with one axis for each attribute. By default the counts are known but not given.

    Returns:
        One boolean array of shape (|T|,) for each cell, or a pair (array, known count), in the order of the cells.

    Raises:
        InputError: An attribute is unknown, or `table` has the wrong shape.
    """
    names = as_list(names, "names", "a list of attributes, at least one")
    require_kind(domain, Domain, "domain", "a Domain")
    if isinstance(names, str) or not names:
        raise InputError("names", "is not a list of attributes", value=names, bound="at least one")
    axes = [domain.names.index(domain.attribute(name).name) for name in names]
    shape = tuple(domain.shape[axis] for axis in axes)
    codes = np.unravel_index(np.arange(domain.size), domain.shape)
    cells = np.ravel_multi_index([codes[axis] for axis in axes], shape)
    arrays = [cells == cell for cell in range(int(np.prod(shape)))]
    if table is None:
        return list(arrays)
    known = named(table, "table", dtype=object)
    if known.shape != shape:
        raise InputError("table", "has the wrong shape", value=known.shape, bound=str(shape))
    return list(zip(arrays, known.ravel().tolist(), strict=True))


def _constraint(entry: object, domain: Domain, path: str) -> Constraint:
    size = domain.size
    if isinstance(entry, Constraint):
        entry = (entry.counted, entry.known)
    known: int | None = None
    # A pair must start with an array: a plain list of two numbers is a constraint on a domain of two values.
    if isinstance(entry, tuple | list) and len(entry) == 2 and np.ndim(entry[0]) == 1:
        entry, answer = entry
        known = None if answer is None else _check_count(answer, path)
    require_unmasked(entry, path)
    try:
        array = np.asarray(in_order_of_values(domain, entry, path))
    except ValueError as error:
        raise InputError(path, f"is not an array ({error})", bound=f"0/1 of shape ({size},)") from error
    if array.shape != (size,):
        remedy = "write constraints=[(array, count)], a list of pairs" if array.ndim == 0 else ""
        bound = f"({size},), one entry for each value"
        raise InputError(path, "has the wrong shape", value=array.shape, bound=bound, remedy=remedy)
    if array.dtype.kind not in "biuf":
        raise InputError(path, f"contains entries of type {array.dtype}", bound="only 0 and 1")
    good = (array == 0) | (array == 1)
    if not good.all():
        index = int(np.argmin(good))
        raise InputError(f"{path}[{index}]", "is neither 0 nor 1", value=array[index].item(), bound="0 or 1")
    counted = array.astype(bool)
    read_only(counted)
    return Constraint(counted, known)


def _check_count(answer: object, path: str) -> int:
    try:
        if isinstance(answer, bool | np.bool_):
            raise TypeError
        number = operator.index(answer)  # type: ignore[arg-type]
    except TypeError as error:
        raise InputError(path, "has a known count that is not an integer", value=answer, bound=">= 0") from error
    if number < 0:
        raise InputError(path, "has a negative known count", value=number, bound=">= 0")
    return number


# For counts above this bound, the solver's relative tolerance would allow errors that are too large.
_LARGEST_COUNT = 10**9


def check_consistent(constraints: Sequence[Constraint], size: int) -> None:
    """Raise `InputError` with a minimal contradictory set of constraints if no table has all known counts."""
    guilty = find_contradiction(constraints, size)
    if not guilty:
        return
    shown = ", ".join(f"constraints[{index}] = {constraints[index].known}" for index in guilty)
    problem = "counts no value" if len(guilty) == 1 else "contradict each other: no table has all these counts"
    path = f"constraints[{guilty[0]}]" if len(guilty) == 1 else "constraints"
    remedy = "correct one of these counts, or give its constraint without a count"
    raise InputError(path, problem, value=shown, remedy=remedy)


def find_contradiction(constraints: Sequence[Constraint], size: int) -> tuple[int, ...]:
    """Return a minimal set of constraints whose known counts contradict each other.

    An integer program decides whether nonnegative integers n_a, the numbers of records of each kind, satisfy Σ_a Q[q,
    a] n_a = count of q. The set is minimised by leaving out one constraint after another.

    Args:
        constraints: the constraints.
        size: the number |T| of values.

    Returns:
        The indices of the constraints, in ascending order; empty if some table has all counts.

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
    """Return whether some table has the counts; the solver's table is checked in integer arithmetic."""
    result = optimize.milp(
        np.zeros(counted.shape[1]),
        integrality=np.ones(counted.shape[1], dtype=np.int64),
        bounds=optimize.Bounds(0, float(answers.max())),
        constraints=optimize.LinearConstraint(counted, answers, answers),
    )
    # Kinds that no constraint counts may have any number of records, so their upper bound is irrelevant.
    if result.status == 2:
        return False
    if result.x is not None:
        records = np.rint(result.x).astype(np.int64)
        if (records >= 0).all() and (counted.astype(np.int64) @ records == answers.astype(np.int64)).all():
            return True
    raise SolverError(f"the solver could not decide whether any table has the known counts: {result.message}")


SEARCH_STEPS = 20_000
"""The largest number of partial sums that the search visits."""

_LONGEST = (0, 2, 4, 10)
# The search stores a square matrix with a row for each vector, so it accepts at most this number of vectors.
_MOST_VECTORS = 512


def minimal_zero_sums(vectors: Integers) -> tuple[Integers, bool]:
    """Return the multiplicity of each vector in each minimal zero sum, and whether all zero sums were found.

    Minimal zero sums are the minimal nonzero solutions of Σ n_f f = 0 in nonnegative integers n_f. The search
    enumerates minimal zero sums by length: it extends a partial sum s by a vector f only if s·f < 0. This search
    reaches all solutions (Contejean and Devie 1994).

    Args:
        vectors: the vectors, integers of shape (F, q).

    >>> minimal_zero_sums(np.array([[1], [-1], [2]]))[0].tolist()
    [[1, 1, 0], [0, 2, 1]]

    Returns:
        The zero sums, shape (k, F), in ascending order of length. The second value is False if the search stopped after
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
    """Return an upper bound on the length of minimal zero sums of vectors of rank q with entries −1, 0 and 1.

    For q = 1, 2 and 3 the longest minimal zero sums have lengths 2, 4 and 10, computed with `minimal_zero_sums` from
    all vectors. For larger q the bound is (2q + 1)^q. By Steinitz's lemma, the vectors can be ordered so that the
    entries of all partial sums are between −q and q. If two partial sums were equal, the vectors between them would be
    a smaller zero sum. (If the vectors have more than q entries, q of the entries determine the others.)
    """
    return _LONGEST[dimension] if dimension < len(_LONGEST) else int((2 * dimension + 1) ** dimension)


def find_rank(vectors: Integers) -> int:
    """Return the exact rank of an integer matrix, computed by elimination in fractions.

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
