"""The largest changes of linear queries over the edges, where each change is a difference of two columns.

The weights are matrices of integers times one unit; roots and floats are rounded up.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.certify._exact import as_decimal, exact, float_up, is_flushing, least_float, nearest
from mechdesign.tables._secret_graphs import Edge, Largest, SecretGraph, as_scalar, require_room
from mechdesign.tables._values import refuse_names

# The sum of the squared differences of two columns must be below 2^62.
_LARGEST_BITS = 62
# Norms of differences of two floats up to this bound do not overflow.
_LARGEST = 1e300
# For floats up to this bound, squares of the floats, of their reciprocals and of their differences neither overflow nor
# underflow. The magnitude of a nonzero difference is at least 2**-53 times its subtrahend.
_LARGEST_FLOAT = 2.0**400


@dataclass(frozen=True, eq=False)
class LatticeMatrix:
    """The matrix `entries` × `unit`.

    Attributes:
        entries: an array of shape (q, |T|) of int64, Python integers or floats; sums and squares of int64 entries
            cannot overflow.
        unit: a positive unit.
        floats: whether the matrix was given as floats.
    """

    entries: NDArray[Any]
    unit: Fraction = Fraction(1)
    floats: bool = False

    @property
    def rounded(self) -> bool:
        """Return whether the entries are floats, so that arithmetic on them is rounded."""
        return bool(self.entries.dtype.kind == "f")


def as_lattice(matrix: Any, size: int) -> LatticeMatrix:
    """Return a matrix, or a single row over the values, as integers times a unit if the conversion is exact.

    Floats are converted by their exact binary values, or stay floats if the integers would not fit into an int64.
    Fractions, Decimals and strings in object arrays are converted exactly.
    """
    refuse_names(matrix, "query")
    array = named(matrix, "query", dtype=object)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != size or array.shape[0] == 0:
        raise InputError("query", "has the wrong shape", value=np.shape(matrix), bound=f"({size},) or (q, {size})")
    if array.dtype.kind in "biu":
        return LatticeMatrix(_small(array.astype(object) if array.dtype.kind == "u" else array.astype(np.int64)))
    if array.dtype.kind == "f":
        return _from_floats(array.astype(np.float64))
    if array.dtype.kind == "O":
        return _from_objects(array)
    raise InputError("query", f"contains entries of type {array.dtype}", bound="an array of real numbers")


def plain(power: Fraction, norm: int, floats: bool) -> int | float | Fraction:
    """Return Δ, given Δ^norm, as an int if it is an integer, else as a Fraction or as a float rounded up."""
    if norm == 2:
        numerator, denominator = math.isqrt(power.numerator), math.isqrt(power.denominator)
        if Fraction(numerator, denominator) ** 2 != power:
            return root_up(power)
        power = Fraction(numerator, denominator)
    if power.denominator == 1:
        return power.numerator
    return float_up(power) if floats else power


def root_up(power: Fraction) -> float:
    """Return nearly the least float whose square is at least `power`, as is the square of its printed decimal."""
    # The fraction is scaled to a value near 1, so the fraction and its root are in the range of floats.
    shift = (power.denominator.bit_length() - power.numerator.bit_length()) // 2
    number = math.ldexp(math.sqrt(nearest(power * Fraction(4) ** shift)), -shift)
    if not power:
        return 0.0
    if number < sys.float_info.min and is_flushing():
        return sys.float_info.min
    for _ in range(2):
        number = math.nextafter(number, 0)
    return least_float(number, lambda tried: Fraction(tried) ** 2 >= power and as_decimal(tried) ** 2 >= power)


def _small(array: NDArray[Any]) -> NDArray[Any]:
    """Return integers as int64 if sums of their squared differences cannot overflow, else as Python integers."""
    largest = max(abs(int(array.max())), abs(int(array.min())))
    fits = 4 * largest * largest * len(array) < 1 << _LARGEST_BITS
    return array.astype(np.int64 if fits else object)


def _from_floats(array: Floats) -> LatticeMatrix:
    good = np.abs(array) <= _LARGEST
    if not good.all():
        place = np.unravel_index(int(np.argmin(good)), array.shape)
        row, column = (int(index) for index in place)
        raise InputError(
            f"query[{row},{column}]", "is not accepted", value=float(array[place]), bound="a number of at most 1e300"
        )
    for bits in (0, 8, 24):
        scaled = np.ldexp(array, bits)
        if np.abs(scaled).max() >= 2.0**53:
            break
        if (scaled == np.rint(scaled)).all() and (integers := _small(scaled.astype(np.int64))).dtype.kind == "i":
            return LatticeMatrix(integers, Fraction(1, 1 << bits), floats=True)
    sizes = np.abs(array[array != 0])
    if sizes.max() > _LARGEST_FLOAT or sizes.min() < 1 / _LARGEST_FLOAT:
        fractions = [[Fraction(value) for value in values] for values in array.tolist()]
        return replace(_from_fractions(fractions), floats=True)
    return LatticeMatrix(array, floats=True)


def _from_objects(array: NDArray[Any]) -> LatticeMatrix:
    fractions = [
        [exact(value, f"query[{row},{column}]") for column, value in enumerate(values)]
        for row, values in enumerate(array.tolist())
    ]
    return replace(_from_fractions(fractions), floats=any(isinstance(value, float) for value in array.ravel()))


def _from_fractions(rows: list[list[Fraction]]) -> LatticeMatrix:
    denominator = math.lcm(*{value.denominator for values in rows for value in values})
    integers = np.empty((len(rows), len(rows[0])), dtype=object)
    for row, values in enumerate(rows):
        integers[row] = [value.numerator * (denominator // value.denominator) for value in values]
    return LatticeMatrix(_small(integers), Fraction(1, denominator))


FEW_ROWS = 6
"""The largest number of rows for which the exact matrix of a query is stored."""

ALL = slice(None)
Extremes = Callable[[Integers, bool], tuple[NDArray[Any], NDArray[Any]]]

# Up to this number of entries, differences are computed for each edge; above it, equal columns are merged first.
_ENTRIES_TO_WALK = 200_000_000
_DISTINCT_COLUMNS = 4096
_ENTRIES_AT_ONCE = 4_000_000
# The largest number of entries for which a matrix of floats is converted to fractions.
_FLOATS_TO_READ = 20_000


@dataclass(frozen=True)
class LargestChange:
    """The largest change of the answers by a move along one edge.

    Attributes:
        power: the ℓ1 norm or the squared ℓ2 norm of the change, never below the true value.
        edge: an edge that attains the largest change, or None.
        exact: whether `power` is the true value rather than a bound.
        floats: whether a sensitivity that is not an integer is shown as a float.
    """

    power: Fraction
    edge: Edge | None
    exact: bool = True
    floats: bool = False


@dataclass(frozen=True, eq=False)
class Additive:
    """Linear queries: every record adds the weight of its value to the answers, and an absent record adds nothing.

    Attributes:
        change: a function of a graph, a norm and optionally an array `members`. It returns the largest change by one
            move along an edge, to the power of the norm; node i of the graph represents the value `members[i]`.
        matrix: the weights in steps of `unit`, as integers or fractions in an object array of shape (q, |T|). For too
            many queries, `matrix` is None.
        extremes: a function that returns the largest and the least weight among some values, in steps of `unit`, shape
            (q,). The values may include an absent record with weight 0. For rounded weights, `extremes` is None.
        unit: the step of the weights.
        whole: whether the query is the histogram of all values.
    """

    change: Callable[..., LargestChange]
    matrix: NDArray[Any] | None = field(repr=False)
    extremes: Extremes | None
    unit: Fraction = Fraction(1)
    whole: bool = False


def histogram(size: int, blocks: Integers | None) -> Additive:
    """Return the queries that count the records with each value, or in each block of values."""
    number = size if blocks is None else int(blocks.max()) + 1

    def extremes(members: Integers, absent: bool) -> tuple[NDArray[Any], NDArray[Any]]:
        inside = np.bincount(members if blocks is None else blocks[members], minlength=number)
        return (inside > 0).astype(np.int64), ((inside == len(members)) & (len(members) > 0) & (not absent)).astype(
            np.int64
        )

    def change(graph: SecretGraph, norm: int, members: Integers | slice = ALL) -> LargestChange:
        return counts(graph, None if blocks is None else blocks[members])

    few = None
    if number <= FEW_ROWS:
        few = (np.arange(number)[:, None] == (np.arange(size) if blocks is None else blocks)).astype(object)
    return Additive(change, few, extremes, whole=blocks is None)


def cumulative(size: int) -> Additive:
    """Return the queries that count the records with at most each value."""

    def extremes(members: Integers, absent: bool) -> tuple[NDArray[Any], NDArray[Any]]:
        first, last = (members[0], members[-1]) if len(members) else (size, size)
        numbers = np.arange(size)
        return (numbers >= first).astype(np.int64), ((numbers >= last) & (not absent)).astype(np.int64)

    # A record with value x contributes to all cumulative counts from x on, so a move to y changes |x − y| counts by 1.
    weights = (size - np.arange(size))[None]

    def change(graph: SecretGraph, norm: int, members: Integers | slice = ALL) -> LargestChange:
        return linear(graph, LatticeMatrix(weights[:, members]), 1)

    few = np.tri(size, dtype=np.int64).astype(object) if size <= FEW_ROWS else None
    return Additive(change, few, extremes)


def from_weights(lattice: LatticeMatrix) -> Additive:
    """Return the linear queries whose weights are the rows of a matrix."""
    entries = lattice.entries

    def extremes(members: Integers, absent: bool) -> tuple[NDArray[Any], NDArray[Any]]:
        columns = entries[:, members]
        if absent:
            columns = np.column_stack((columns, np.zeros(len(entries), dtype=entries.dtype)))
        return columns.max(axis=1), columns.min(axis=1)

    def change(graph: SecretGraph, norm: int, members: Integers | slice = ALL) -> LargestChange:
        return linear(graph, replace(lattice, entries=entries[:, members]), norm)

    few = None
    if len(entries) <= FEW_ROWS and not lattice.rounded:
        few = entries.astype(object)
    elif len(entries) <= FEW_ROWS and entries.size <= _FLOATS_TO_READ:
        few = np.array([[Fraction(weight) for weight in row] for row in entries.tolist()], dtype=object)
    known = None if lattice.rounded else extremes
    return Additive(change, few, known, lattice.unit)


def counts(graph: SecretGraph, labels: Integers | None) -> LargestChange:
    """Return the largest change of the counts of labels; its ℓ1 norm equals its squared ℓ2 norm."""
    if (edge := graph.crossing(labels)) is not None:
        return LargestChange(Fraction(2), edge)
    if graph.has_null:
        require_room(graph.size, "counts of records that may be absent")
        return LargestChange(Fraction(1), graph.spread(np.ones(graph.size, dtype=np.int64)).edge)
    return LargestChange(Fraction(0), None)


def linear(graph: SecretGraph, matrix: LatticeMatrix, norm: int, within: Integers | None = None) -> LargestChange:
    """Return the largest ‖A_x − A_y‖ over the edges, to the power `norm`; the null node's column is 0.

    Args:
        graph: the secret graph.
        matrix: A, shape (q, |T|).
        norm: 1 or 2.
        within: labels of the values. If given, only edges to the null node and between values with equal labels are
            considered.

    Returns:
        The largest change.
    """
    entries = matrix.entries
    if len(entries) == 1 and entries.dtype.kind != "O":
        largest = graph.spread(entries[0], within)
        largest = Largest(abs(largest.value) ** norm, largest.edge)
    else:
        largest = _over_edges(graph, entries, norm, within)
    power = Fraction(largest.value)
    if matrix.rounded and power:
        # A difference is rounded once, a sum of q terms is rounded q − 1 times, and a square is rounded once more. Each
        # relative error is at most 2^-53. If a square underflows, its error is at most the least normal number.
        q = len(entries)
        power = power * (1 + Fraction(2 * q + 4, 1 << 53)) + Fraction(q, 1 << 1022)
    return LargestChange(power * matrix.unit**norm, largest.edge, not matrix.rounded, matrix.floats)


def _over_edges(graph: SecretGraph, entries: NDArray[Any], norm: int, within: Integers | None) -> Largest:
    q = len(entries)
    columns = np.zeros((graph.size + 1, q), dtype=entries.dtype)
    columns[:-1] = entries.T
    labels = None if within is None else np.append(within, -1)
    best = Largest(0, None)
    for block in _edges_that_matter(graph, columns, within):
        if labels is not None:
            block = block[(labels[block[:, 0]] == labels[block[:, 1]]) | (block[:, 1] == graph.size)]
        for start in range(0, len(block), rows := max(1, _ENTRIES_AT_ONCE // q)):
            edges = block[start : start + rows]
            differences = columns[edges[:, 0]] - columns[edges[:, 1]]
            sums = np.abs(differences).sum(axis=1) if norm == 1 else (differences * differences).sum(axis=1)
            top = int(np.argmax(sums))
            if best.edge is None or sums[top] > best.value:
                best = Largest(as_scalar(sums[top]), (int(edges[top, 0]), int(edges[top, 1])))
    return best


def _edges_that_matter(graph: SecretGraph, columns: NDArray[Any], within: Integers | None) -> Any:
    """Return blocks of edges; many edges between few distinct columns are reduced to one edge per pair of columns."""
    if within is None and columns.dtype.kind != "O" and graph.edge_count * columns.shape[1] > _ENTRIES_TO_WALK:
        distinct, labels = np.unique(columns[:-1], axis=0, return_inverse=True)
        if len(distinct) <= _DISTINCT_COLUMNS:
            return [graph.joined(labels.ravel())]
    return graph.edge_blocks()
