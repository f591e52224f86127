"""End states of chains, and warnings about bounds from smoothed counts."""

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
    """Return the matrix (n, n) of an open chain, read-only, with its known rows normalised."""
    array = chain.matrix.copy()
    known = np.delete(np.arange(len(array)), chain.missing)
    array[known] /= np.array(row_scales([row.tolist() for row in array[known]], path))[:, None]
    return read_only(array)


def end_states(matrix: Floats | sparse.csr_array) -> Integers:
    """Return the end states of a checked matrix: rows of zeros, or rows whose only entry is on the diagonal."""
    entries = np.diff(matrix.indptr) if sparse.issparse(matrix) else np.count_nonzero(matrix, axis=1)
    return np.flatnonzero((entries == 0) | ((entries == 1) & (matrix.diagonal() > 0))).astype(np.int64)


def zero_rows(matrix: Floats | sparse.csr_array, states: Integers) -> Floats | sparse.csr_array:
    """Return the matrix with the rows of `states` replaced by zeros."""
    kept = np.ones(matrix.shape[0])
    kept[states] = 0.0
    if not sparse.issparse(matrix):
        return read_only(matrix * kept[:, None])
    found = sparse.csr_array(matrix.multiply(kept[:, None]))
    found.eliminate_zeros()
    found.sort_indices()
    return found


def select_known_rows(matrix: Floats | sparse.csr_array) -> Floats | sparse.csr_array:
    """Return the rows of a matrix that are not zero."""
    return matrix[np.diff(matrix.indptr) > 0] if sparse.issparse(matrix) else matrix[matrix.any(axis=1)]


def line_of_any(matrix: Floats | sparse.csr_array) -> Line:
    """Return the line of the loss function if each row of zeros stands for an arbitrary row.

    For a row q and the unit row d of column j, the columns other than j give D = 0 and Q = 1 − q_j. No other pair of
    rows leaks more. Two unknown rows may have disjoint supports, so that Q = 1.
    """
    known = select_known_rows(matrix)
    least = float(known.min()) if known.shape[0] == matrix.shape[0] - 1 else 0.0
    return Line(1.0 - least, 0.0, least)


def warn_of_smoothing(path: str, smoothing: float, loss: float, seen: float, identity: bool) -> None:
    """Warn with `SmoothedChainWarning` that the chain of a loss function was smoothed.

    Args:
        path: The argument that holds the chain.
        smoothing: The amount added to each count.
        loss: L(1) of the chain.
        seen: L(1) of the unsmoothed counts.
        identity: Whether the unsmoothed loss is L(α) = α, so that no positive constant budget bounds the leakage.
    """
    for_ever = ", for which no positive constant budget bounds the leakage" if identity else ""
    warn(
        f"{path} was counted with smoothing {smoothing:g}, which lowers the leakage: L(1) is {loss:.6g}, and "
        f"{seen:.6g} by the counts alone{for_ever}. Smoothing is for beliefs. For bounds, count without "
        'smoothing, with ends="stay" for states without an observed departure, or give chain.unsmoothed()',
        SmoothedChainWarning,
        stacklevel=4,
    )
