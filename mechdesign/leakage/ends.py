"""Ends of chains: states that nobody was seen to leave (forward) or to enter (backward), and what their rows add."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse

from mechdesign.leakage.lines import Line
from mechdesign.leakage.matrices import row_scales
from mechdesign.model._markov import OpenChain
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers
from mechdesign.base._arrays import read_only

__all__ = ["as_open_rows", "emptied", "end_states", "known_rows", "line_of_any"]


def as_open_rows(chain: OpenChain, path: str) -> Floats:
    """Return the matrix (n, n) of an open chain, read-only; known rows are divided by their sums as other matrices'."""
    array = chain.matrix.copy()
    known = np.delete(np.arange(len(array)), chain.missing)
    array[known] /= np.array(row_scales([row.tolist() for row in array[known]], path))[:, None]
    read_only(array)
    return array


def end_states(matrix: Floats | sparse.csr_array) -> Integers:
    """Return the states of a checked matrix that are ends: rows of zeros, or with a 1 on the diagonal alone."""
    entries = np.diff(matrix.indptr) if sparse.issparse(matrix) else np.count_nonzero(matrix, axis=1)
    return np.flatnonzero((entries == 0) | ((entries == 1) & (matrix.diagonal() > 0))).astype(np.int64)


def emptied(matrix: Floats | sparse.csr_array, states: Integers) -> Floats | sparse.csr_array:
    """Return the matrix with rows of zeros for `states`."""
    kept = np.ones(matrix.shape[0])
    kept[states] = 0.0
    if not sparse.issparse(matrix):
        rows: Floats = matrix * kept[:, None]
        read_only(rows)
        return rows
    found = sparse.csr_array(matrix.multiply(kept[:, None]))
    found.eliminate_zeros()
    found.sort_indices()
    return found


def known_rows(matrix: Floats | sparse.csr_array) -> Floats | sparse.csr_array:
    """Return the rows that are not zero."""
    return matrix[np.diff(matrix.indptr) > 0] if sparse.issparse(matrix) else matrix[matrix.any(axis=1)]


def line_of_any(matrix: Floats | sparse.csr_array) -> Line:
    """Return the line of the loss where each row of zeros may be any row.

    Against a row that is 1 in column j, another row q has D = 0 and Q = 1 − q_j in all other columns: no pair of rows
    is worse. Two rows that may be any may be disjoint.
    """
    known = known_rows(matrix)
    least = float(known.min()) if known.shape[0] == matrix.shape[0] - 1 else 0.0
    return Line(1.0 - least, 0.0, least)
