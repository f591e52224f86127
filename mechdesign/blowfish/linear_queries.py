"""Sensitivity of linear queries: the largest difference of two columns of their matrix over the edges."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.blowfish.numbers import Lattice
from mechdesign.blowfish.secret_graphs import Edge, Largest, SecretGraph, as_scalar
from mechdesign.validation import Integers

__all__ = ["Found", "linear"]

# Up to this many entries of differences are computed edge by edge; beyond, equal columns are merged first.
_ENTRIES_TO_WALK = 200_000_000
_DISTINCT_COLUMNS = 4096
_ENTRIES_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Found:
    """A largest change over single edges.

    Attributes:
        power: the norm of the change to the power of the norm, never below the truth.
        edge: an edge that attains it, or None.
        exact: whether it is the truth itself rather than a bound.
        floats: whether numbers that are no integers are to be shown as floats.
    """

    power: Fraction
    edge: Edge | None
    exact: bool = True
    floats: bool = False


def linear(graph: SecretGraph, matrix: Lattice, norm: int, within: Integers | None = None) -> Found:
    """Return the largest ‖A_x − A_y‖ over the edges, to the power `norm`; the null node's column is 0.

    Args:
        graph: the secret graph.
        matrix: A, shape (q, |T|).
        norm: 1 or 2.
        within: labels of the values; only edges between values of one label then count, and those to the null node.
    """
    entries = matrix.entries
    if len(entries) == 1 and entries.dtype.kind != "O":
        largest = graph.spread(entries[0], within)
        largest = Largest(abs(largest.value) ** norm, largest.edge)
    else:
        largest = _over_edges(graph, entries, norm, within)
    power = Fraction(largest.value)
    if matrix.rounded and power:
        # A difference is rounded once, a sum of q terms q − 1 times and a square once more; each relative error is at
        # most 2^-53, and a square that underflows is off by at most the least normal number.
        q = len(entries)
        power = power * (1 + Fraction(2 * q + 4, 1 << 53)) + Fraction(q, 1 << 1022)
    return Found(power * matrix.unit**norm, largest.edge, not matrix.rounded, matrix.floats)


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
    """Return blocks of edges, one for each two distinct columns where there are few of them and many edges."""
    if within is None and columns.dtype.kind != "O" and graph.edge_count * columns.shape[1] > _ENTRIES_TO_WALK:
        distinct, labels = np.unique(columns[:-1], axis=0, return_inverse=True)
        if len(distinct) <= _DISTINCT_COLUMNS:
            return [graph.joined(labels.ravel())]
    return graph.edge_blocks()
