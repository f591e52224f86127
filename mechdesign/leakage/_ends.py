"""Ends of chains, and bounds that rest on smoothed counts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._arrays import Floats, Integers, read_only
from mechdesign.base._errors import SmoothedChainWarning
from mechdesign.base._warnings import warn
from mechdesign.leakage._support import Line
from mechdesign.leakage._transitions import row_scales
from mechdesign.model._open_chain import OpenChain


def as_open_rows(chain: OpenChain, path: str) -> Floats:
    """Return the matrix (n, n) of an open chain, read-only; known rows are divided by their sums as other matrices'."""
    array = chain.matrix.copy()
    known = np.delete(np.arange(len(array)), chain.missing)
    array[known] /= np.array(row_scales([row.tolist() for row in array[known]], path))[:, None]
    return read_only(array)


def end_states(matrix: Floats | sparse.csr_array) -> Integers:
    """Return the states of a checked matrix that are ends: rows of zeros, or with a 1 on the diagonal alone."""
    entries = np.diff(matrix.indptr) if sparse.issparse(matrix) else np.count_nonzero(matrix, axis=1)
    return np.flatnonzero((entries == 0) | ((entries == 1) & (matrix.diagonal() > 0))).astype(np.int64)


def emptied(matrix: Floats | sparse.csr_array, states: Integers) -> Floats | sparse.csr_array:
    """Return the matrix with rows of zeros for `states`."""
    kept = np.ones(matrix.shape[0])
    kept[states] = 0.0
    if not sparse.issparse(matrix):
        return read_only(matrix * kept[:, None])
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


def warn_of_smoothing(path: str, smoothing: float, loss: float, seen: float, identity: bool) -> None:
    """Warn with `SmoothedChainWarning` that a loss function was made of a chain that was smoothed.

    Args:
        path: the argument that the chain is.
        smoothing: what was added to each count.
        loss: L(1) of the chain.
        seen: L(1) by the counts alone.
        identity: whether these carry on all that was leaked, so that no positive budget lasts for ever.
    """
    for_ever = ", by which no positive budget lasts for ever" if identity else ""
    warn(
        f"{path} was counted with smoothing {smoothing:g}, which makes leakage smaller than what was seen: L(1) is "
        f"{loss:.6g}, and {seen:.6g} by the counts alone{for_ever}. Smoothing is for beliefs. For bounds count without "
        'it, with ends="stay" for states that nobody was seen to leave, or give chain.unsmoothed()',
        SmoothedChainWarning,
        stacklevel=4,
    )
