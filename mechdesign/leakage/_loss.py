"""The loss function L(α).

A piece is a line (G, D, rest) of `mechdesign.leakage._support`, with Q = G + D and 1 − Q = rest. The paper is
Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential Privacy in Continuous Data Release Under Temporal Correlations
(2019).
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike

from mechdesign.base import _cache as caching
from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_floats, read_only
from mechdesign.base._check import as_path, as_truth
from mechdesign.base._errors import InputError, SmoothedChainWarning, StateError
from mechdesign.base._names import Names, labels_of, named, opened
from mechdesign.base._warnings import warn
from mechdesign.leakage._bounds import as_bounds, close
from mechdesign.leakage._loss_file import RESTORE, lines_in, read_loss, write_loss
from mechdesign.leakage._support import DensePairs, Line, SparseRows, Support, are_pieces, envelope
from mechdesign.leakage._transitions import (
    as_alphas,
    as_not_negative,
    as_transition,
    disjoint_rows,
    distinct_rows,
    matrix_digest,
    unknown_rows,
)
from mechdesign.leakage._transport import Rows, step
from mechdesign.model._markov import MarkovChain

# For larger ratios log1p(r) = log(r) to the last bit, and the logarithms do not overflow.
_HUGE = 1e17

# Relative size of a difference that counts as rounding.
_INDISTINCT = 4 * np.finfo(np.float64).eps


def log_ratio(G: ArrayLike, D: ArrayLike, alpha: ArrayLike) -> Floats:
    """Return ln[(QA + 1)/(DA + 1)] with A = e^α − 1, the loss of a piece (Equation 24), for every α ≥ 0.

    The arguments broadcast; with u = e^−α and e = 1 − u it is ln(1 + Ge/(De + u)).
    """
    G, D, alpha = np.broadcast_arrays(*(named(values, "values", dtype=np.float64) for values in (G, D, alpha)))
    u, e = np.exp(-alpha), -np.expm1(-alpha)
    below = D * e + u
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        ratio = G * e / below
        loss = np.log1p(ratio)
        huge = ~(ratio < _HUGE) & (G > 0)
        if huge.any():
            # If D = 0, ln(De + u) is −α, even if u is too small for a float.
            log_below = np.where(D > 0, np.log(below), -alpha)
            loss = np.where(huge, np.log(G * e + below) - log_below, loss)
    loss = np.where(G > 0, loss, 0.0)
    capped: Floats = np.minimum(loss, alpha)
    return capped


def breakpoint_between(G: Floats, D: Floats, next_G: Floats, next_D: Floats) -> Floats:
    """Return the α > 0 with equal losses of two pieces, for G > next_G and D > next_D; inf if they never meet.

    From (QA + 1)(D'A + 1) = (Q'A + 1)(DA + 1): A = (G − G')/(G'D − GD').
    """
    faster = next_G * D - G * next_D
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        A = (G - next_G) / faster
        # A may overflow; its logarithm does not.
        apart = np.where(faster > 0, np.log(G - next_G) - np.log(faster), np.inf)
        return np.where(np.isfinite(A) & (A > 0), np.log1p(A), apart)


def limit_of(G: ArrayLike, D: ArrayLike, rest: ArrayLike, epsilon: float) -> Floats:
    """Return the smallest x ≥ 0 with x = ln[(QA + 1)/(DA + 1)] + ε, A = e^x − 1, or inf (Theorem 11 corrected).

    A solves DA² + bA − E = 0 with E = e^ε − 1 and b = 1 + D − e^ε Q = rest + D − EQ. For D = 0 it diverges if
    ε ≥ ln(1/Q). An ε that equals this bound up to rounding counts as diverging.
    """
    G, D, rest = np.broadcast_arrays(*(named(values, "values", dtype=np.float64) for values in (G, D, rest)))
    if epsilon == 0:
        return np.zeros(G.shape)
    Q = G + D
    # All terms are divided by max(1, E) to avoid overflow.
    large = epsilon > 1.0
    inverse = np.exp(-epsilon) / -np.expm1(-epsilon) if large else 1.0
    E = 1.0 if large else np.expm1(epsilon)
    b = (rest + D) * inverse - E * Q
    b = np.where(np.abs(b) <= _INDISTINCT * ((rest + D) * inverse + E * Q), 0.0, b)
    root = np.sqrt(b * b + 4.0 * D * inverse * E)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        # The two forms of the positive root; each avoids a difference of nearly equal numbers.
        A = np.where(b > 0, 2.0 * E / (b + root), (root - b) / (2.0 * D * inverse))
        limit = np.log1p(A)
        # If A overflows, the factor 1/inverse = e^ε − 1 becomes a term of the logarithm.
        apart = epsilon + np.log(-np.expm1(-epsilon)) + np.log((root - b) / (2.0 * D)) if large else limit
    limit = np.where(np.isfinite(A) | ~(D > 0), limit, apart)
    # Only rounding could give a limit below ε.
    limit = np.where((D == 0) & (b <= 0), np.inf, np.maximum(limit, epsilon))
    # If G = 0, Q = D, and no leakage is passed on.
    return np.where(G > 0, limit, epsilon)


# With fewer states, computing the function is faster than reading it from a file.
_SMALLEST_CACHED = 32

# Sparse matrices up to the first size are treated as dense, and matrices with many entries up to the second size.
_DENSE_UP_TO = 1500
_FILLED_DENSE_UP_TO = 4000
_WELL_FILLED = 0.1

_BLOCK = 1 << 13


class Pieces(NamedTuple):
    """The pieces of a loss function in order of α: read-only arrays of shape (k,).

    For α from start[i] to start[i + 1], L(α) = ln[(Q[i]A + 1)/(D[i]A + 1)] with A = e^α − 1.

    Attributes:
        Q: Sum of the entries of one row over a set of columns.
        D: Sum of the entries of the other row over the same columns.
        start: Least α of the piece, in nats.

    >>> LossFunction([[0.8, 0.2], [0.2, 0.8]]).pieces.start.tolist()
    [0.0]
    """

    Q: Floats
    D: Floats
    start: Floats


@dataclass(frozen=True, init=False, eq=False, repr=False)
class LossFunction:
    """The loss L(α) = max over rows q ≠ d of P and over e^−α ≤ x_j/x_k ≤ e^α of ln(q·x / d·x).

    Equation (18) of Cao, Yoshikawa, Xiao and Xiong (2019). The function accepts a number α ≥ 0 or an array of any
    shape, in nats. One computation covers all α.

    A row of zeros is unknown, and the maximum is over all rows that it may be. With one unknown row,
    L(α) = ln(1 + (1 − m)(e^α − 1)), where m is the least entry of the known rows. With several, L(α) = α.

    A chain with smoothed counts causes a `SmoothedChainWarning`, because smoothing lowers the leakage.

    Args:
        P: Row-stochastic matrix of shape (n, n): an array, a SciPy sparse matrix, a `MarkovChain` or an `OpenChain`.
            Some rows may be zeros.
        cache: Whether to store the function in the cache; by default from 32 states on.
        path: Name of the matrix in messages.

    Attributes:
        n: Number of states.
        digest: SHA-256 of the matrix.
        lines: The pieces in full precision, see `Line`.
        pieces: The pieces as arrays.
        identity: Whether L(α) = α, because two rows have or may have disjoint supports.
        matrix: The matrix; None if the function was made from lines.
        unknown: The states with unknown rows, ascending, int64.
        cached: Whether the pieces came from the cache.
        misfits: For each digest of a forward correlation, the reason why it does not fit, or an empty text.
        smoothing: The number that was added to each count of a chain.
        names: The names of the states, if a frame was given; otherwise empty.

    >>> L = LossFunction([[0.8, 0.2], [0.2, 0.8]])
    >>> round(L(1.0), 6)
    0.569445
    >>> round(L.supremum(0.1), 6)
    0.248772
    """

    n: int
    digest: str
    lines: tuple[Line, ...]
    pieces: Pieces
    identity: bool
    matrix: Floats | sparse.csr_array | None
    unknown: Integers
    cached: bool
    # For each digest of a forward correlation, the reason why it does not fit, or an empty text. See
    # `mechdesign.leakage._correlations`.
    misfits: dict[str, str]
    _gains: Floats
    _rests: Floats
    _starts: tuple[float, ...]
    smoothing: float = 0.0
    names: Names = ()

    def __init__(self, P: Any, cache: bool | None = None, *, path: str = "P") -> None:
        given = P if sparse.issparse(P) else opened(P, path).settled(path)
        matrix = as_transition(given, path, unknown=True)
        object.__setattr__(self, "names", getattr(given, "rows", ()))
        keep = matrix.shape[0] >= _SMALLEST_CACHED if cache is None else as_truth(cache, "cache")
        if isinstance(P, MarkovChain) and P.smoothing:
            object.__setattr__(self, "smoothing", P.smoothing)
            warn(
                f"{path} was counted with smoothing {P.smoothing:g}, so its leakage is lower than that of the data. "
                "Smoothing is for beliefs. For bounds, count without smoothing, or give chain.unsmoothed()",
                SmoothedChainWarning,
                stacklevel=2,
            )
        treated = _as_treated(matrix)
        digest = matrix_digest(treated)
        lines = _load_lines(digest) if keep else None
        cached = lines is not None
        if lines is None:
            lines = _lines(treated)
            if keep:
                caching.store(digest, dict(zip(Line._fields, _columns(lines), strict=True)))
        self._fill(matrix.shape[0], digest, lines, matrix, cached=cached)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the matrix and the pieces to an archive .npz, which only its owner can read.

        Args:
            path: The file; an existing file is replaced.

        Raises:
            InputError: The function was made from lines, without its matrix, or its chain was smoothed.
            ExportError: The file cannot be written; an old file is unchanged.

        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "loss.npz")
        ...     LossFunction([[0.8, 0.2], [0.2, 0.8]]).save(file)
        ...     round(LossFunction.load(file)(1.0), 6)
        0.569445
        """
        target = as_path(path, "path")
        if self.matrix is None:
            bound, remedy = "a function with a matrix", "save the function of the matrix itself"
            raise InputError("loss", "was made from lines, without its matrix", bound=bound, remedy=remedy)
        if self.smoothing:
            remedy = "save LossFunction(chain.unsmoothed())"
            raise InputError("loss", "is that of a smoothed chain", bound="a chain without smoothing", remedy=remedy)
        write_loss(target, self.matrix, self.digest, self.lines)

    @classmethod
    def load(cls, path: str | PathLike[str], P: Any = None) -> LossFunction:
        """Read a function that `save` wrote.

        The digest of the matrix in the file is computed again, and the pieces must be those of some loss function. The
        digests detect damage, not forgery: with `P`, the file must contain this matrix, but its pieces are trusted.

        Args:
            path: The file.
            P: The matrix that the file must contain, in any form that `LossFunction` accepts; None for any matrix.

        Returns:
            The function.

        Raises:
            InputError: The file cannot be read or is of another kind, or P is another matrix.
            StateError: The file is damaged or was changed.
        """
        source = as_path(path, "path")
        saved = read_loss(source)
        rows = as_transition(saved.matrix, str(source), unknown=True)
        digest = _digest_of(rows)
        if digest != saved.digest:
            raise StateError(f"{source}: the matrix does not have the stored digest; {RESTORE}")
        if P is not None:
            _require_matrix(P, source, rows.shape[0], digest)
        made = object.__new__(cls)
        made._fill(rows.shape[0], digest, saved.lines, rows)
        return made

    @classmethod
    def from_lines(cls, n: int, digest: str, lines: list[Line]) -> LossFunction:
        """Return the function of given lines, without its matrix.

        Args:
            n: Number of states.
            digest: SHA-256 of the matrix.
            lines: The lines by falling D.

        Returns:
            The loss function.
        """
        made = object.__new__(cls)
        made._fill(n, digest, lines)
        return made

    def _fill(
        self,
        n: int,
        digest: str,
        lines: list[Line],
        matrix: Floats | sparse.csr_array | None = None,
        *,
        cached: bool = False,
    ) -> None:
        G, D, rest = _columns(lines)
        start = np.zeros(len(lines))
        start[1:] = np.maximum.accumulate(breakpoint_between(G[:-1], D[:-1], G[1:], D[1:]))
        pieces = Pieces(G + D, D, start)
        for array in (G, rest, *pieces):
            read_only(array)
        values = {
            "n": n,
            "digest": digest,
            "lines": tuple(lines),
            "pieces": pieces,
            "identity": any(line.D == 0 and line.rest == 0 for line in lines),
            "matrix": matrix,
            "unknown": read_only(np.zeros(0, dtype=np.int64) if matrix is None else unknown_rows(matrix)),
            "cached": cached,
            "misfits": {},
            "_gains": G,
            "_rests": rest,
            "_starts": tuple(start.tolist()),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @overload
    def __call__(self, alpha: float) -> float: ...
    @overload
    def __call__(self, alpha: ArrayLike) -> Floats | float: ...
    def __call__(self, alpha: ArrayLike) -> Floats | float:
        """Return L(α) in nats: a float for a number, and an array of the same shape for an array.

        α = inf gives the limit, ln of the largest ratio. Raises `InputError` for a negative α and for other types.
        """
        if type(alpha) is float and alpha >= 0:
            return self.at(alpha)
        values = as_alphas(alpha)
        if values.ndim == 0:
            return self.at(float(values))
        flat = values.ravel()
        out = np.empty(flat.shape)
        for begin in range(0, flat.size, _BLOCK):
            part = slice(begin, begin + _BLOCK)
            out[part] = self._several(flat[part])
        return out.reshape(values.shape)

    def at(self, alpha: float) -> float:
        """Return L(α) for one float, without checks.

        Args:
            alpha: A number ≥ 0 in nats.

        Returns:
            L(α) in nats.
        """
        if self.identity:
            return alpha
        u, e = math.exp(-alpha), -math.expm1(-alpha)
        ratio = 0.0
        for G, D, _ in self._around(alpha):
            below = D * e + u
            if below < 1e-200:
                return float(self._several(np.array([alpha]))[0])
            ratio = max(ratio, G * e / below)
        return min(math.log1p(ratio), alpha)

    @in_own_arithmetic
    def pairs(self, bounds: ArrayLike) -> Floats:
        """Return the leakage T(B) that one step passes on for each pair of states, for a matrix B of bounds of pairs.

        T(B)(s, s') = max ln (P_s·x)/(P_s'·x) over x ≥ 0 with x_j ≤ e^{B(j,k)} x_k: Equation (18) of Cao et al. (2019)
        with a bound for each pair. If B is α for all pairs, T(B)(s, s') is the result of Algorithm 1 for rows s and s',
        and the largest entry is L(α). The result is an upper bound, rounded up, above T(B) by at most 1e-9 (1 + T(B)).

        Args:
            bounds: B in nats, shape (n, n): entries ≥ 0, possibly infinite or asymmetric, with a diagonal of 0. It is
                first closed along paths, which changes T(B) nowhere.

        Returns:
            The bounds in nats, shape (n, n); 0 on the diagonal.

        Raises:
            InputError: The bounds are invalid, or the function was made from lines, without its matrix.
            SolverError: The programs of a pair of states do not determine its leakage within 1e-9 relative.

        >>> LossFunction([[0.8, 0.2], [0.0, 1.0]]).pairs([[0, 0.1], [0.1, 0]]).round(4).tolist()
        [[0.0, 0.0808], [0.0792, 0.0]]
        """
        if self.matrix is None:
            bound, remedy = "a function with a matrix", "compute LossFunction(P) of the matrix itself"
            raise InputError("loss", "was made from lines, without its matrix", bound=bound, remedy=remedy)
        matrix = as_bounds(bounds, "bounds", labels_of(self.names, "loss"))
        if len(matrix) != self.n:
            bound = f"{self.n}, as in the matrix of the function"
            raise InputError("bounds", "has another number of states", value=len(matrix), bound=bound)
        return step(Rows(self.matrix), close(matrix))[0]

    def split(self, alpha: float) -> tuple[float, float]:
        """Return L(α) and α − L(α) for one float, both computed accurately, without checks.

        If α − L(α) is smaller than L(α), it is ln[1 + A(DA + D + 1 − Q)/(QA + 1)]. The difference is 0.0 if this
        formula overflows.

        Args:
            alpha: A number ≥ 0 in nats.

        Returns:
            L(α) and α − L(α), in nats.
        """
        value = self.at(alpha)
        if value < alpha / 2 or self.identity:
            return value, alpha - value
        u, e = math.exp(-alpha), -math.expm1(-alpha)
        if u == 0:
            return value, 0.0
        ratio = min([e * (D / u + rest) / ((G + D) * e + u) for G, D, rest in self._around(alpha)])
        return value, math.log1p(ratio) if ratio < math.inf else 0.0

    def _around(self, alpha: float) -> tuple[Line, ...]:
        """Return the maximal line at α and its neighbours; a neighbour may be higher near a rounded breakpoint."""
        index = bisect.bisect_right(self._starts, alpha) - 1
        return self.lines[max(index - 1, 0) : index + 2]

    @property
    def adds(self) -> bool:
        """Whether L(α) > 0 for some α."""
        return self.lines[0].G > 0

    @in_own_arithmetic
    def _several(self, alpha: Floats) -> Floats:
        if self.identity:
            return alpha.copy()
        G, D = self._gains, self.pieces.D
        index = np.searchsorted(self.pieces.start, alpha, side="right") - 1
        u, e = np.exp(-alpha), -np.expm1(-alpha)
        ratio = np.zeros(alpha.shape)
        last = len(D) - 1
        with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
            # A neighbour may be higher near a rounded breakpoint.
            for neighbour in (-1, 0, 1):
                piece = np.clip(index + neighbour, 0, last)
                np.fmax(ratio, G[piece] * e / (D[piece] * e + u), out=ratio)
            loss = np.minimum(np.log1p(ratio), alpha)
        beyond = np.flatnonzero(~(ratio < 1e15))
        if beyond.size:
            around = np.clip(index[beyond][:, None] + np.array([-1, 0, 1]), 0, last)
            loss[beyond] = log_ratio(G[around], D[around], alpha[beyond][:, None]).max(axis=1)
        return loss

    @in_own_arithmetic
    def supremum(self, epsilon: float) -> float:
        """Return the limit of the leakage under a constant budget ε: the smallest x = L(x) + ε, or `math.inf`.

        The limit is that of Theorem 11 for the piece that is maximal at the fixed point x; no iteration is needed. The
        relative error is at most 1e-14 x/ε, because a change of L by 1e-14 changes x by that amount. The error is 1e-15
        if no sets of columns nearly tie.

        Args:
            epsilon: Budget of every release in nats, at least 0.

        Returns:
            The limit in nats; `math.inf` if the leakage diverges.

        Raises:
            InputError: If ε is negative.
        """
        epsilon = as_not_negative(epsilon, "epsilon")
        return float(limit_of(self._gains, self.pieces.D, self._rests, epsilon).max())

    def __repr__(self) -> str:
        unknown = f", {len(self.unknown)} with an unknown row" if len(self.unknown) else ""
        cached = ", cached" if self.cached else ""
        return f"LossFunction({self.n} states{unknown}, {len(self.lines)} pieces, digest {self.digest[:12]}…{cached})"


def _digest_of(matrix: Floats | sparse.csr_array) -> str:
    """Return the digest of checked rows: that of the dense form, unless the matrix is treated as sparse."""
    return matrix_digest(_as_treated(matrix))


def _columns(lines: list[Line]) -> tuple[Floats, Floats, Floats]:
    """Return G, D and rest, each of shape (k,)."""
    G, D, rest = as_floats(lines, "lines", "(k, 3)").reshape(-1, 3).T.copy()
    return G, D, rest


def _load_lines(digest: str) -> list[Line] | None:
    """Return the cached lines, or None if the cache does not contain valid lines."""
    stored = caching.load(digest)
    lines = None if stored is None or set(stored) != set(Line._fields) else lines_in(stored)
    return lines if lines is not None and are_pieces(lines) else None


def _require_matrix(P: Any, source: Path, n: int, digest: str) -> None:
    """Raise `InputError` if P is not the matrix of the file."""
    rows = as_transition(P, "P", unknown=True)
    remedy = "compute LossFunction(P), or load the file of this matrix"
    if rows.shape[0] != n:
        problem, bound = "has another number of states than the saved function", f"of shape ({n}, {n}), as in {source}"
        raise InputError("P", problem, value=rows.shape, bound=bound, remedy=remedy)
    if _digest_of(rows) != digest:
        problem = "is not the matrix of the saved function"
        raise InputError("P", problem, bound=f"the matrix in {source}", remedy=remedy)


def _lines(matrix: Floats | sparse.csr_array) -> list[Line]:
    unknown = unknown_rows(matrix)
    if len(unknown):
        return [_line_of_any(matrix, unknown)]
    rows = distinct_rows(matrix)
    if len(rows) == 1:
        return [Line(0.0, 0.0, 1.0)]
    if disjoint_rows(matrix) is not None:
        return [Line(1.0, 0.0, 0.0)]
    support: Support = (
        SparseRows(matrix[rows]) if sparse.issparse(matrix) else DensePairs(np.ascontiguousarray(matrix[rows]))
    )
    return envelope(support)


def _line_of_any(matrix: Floats | sparse.csr_array, unknown: Integers) -> Line:
    """Return the line of the loss function if each unknown row may be any row.

    Let m be the least entry of the known rows, in column j. The columns S of a pair with a loss are some, not all. If
    row q of the pair is known, Q ≤ 1 − m, because a column is missing in S, and (QA + 1)/(DA + 1) ≤ 1 + (1 − m)A. If
    only row d is known, D ≥ m, and (A + 1)/(mA + 1) ≤ 1 + (1 − m)A. The row of m as q, the unit row of column j as d,
    and all columns but j attain the bound. Two unknown rows may have disjoint supports.
    """
    known = np.setdiff1d(np.arange(matrix.shape[0]), unknown)
    least = float(matrix[known].min()) if len(unknown) == 1 else 0.0
    return Line(1.0 - least, 0.0, least)


def _as_treated(matrix: Floats | sparse.csr_array) -> Floats | sparse.csr_array:
    """Return a sparse matrix as a dense one if that is faster, so that both forms share one digest."""
    if not sparse.issparse(matrix):
        return matrix
    n = matrix.shape[0]
    stays_sparse = n > (_FILLED_DENSE_UP_TO if matrix.nnz > _WELL_FILLED * n * n else _DENSE_UP_TO)
    return matrix if stays_sparse else matrix.toarray()
