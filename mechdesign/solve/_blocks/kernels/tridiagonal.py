"""Block tridiagonal forms of sparse symmetric matrices: levels of their graphs, factors and inverses.

In a breadth-first order, each row has entries only in its own level and in the two adjacent levels. Let A_i be the
diagonal blocks, and let C_i be the blocks below them. The factors are D_1 = A_1 and D_i+1 = A_i+1 − C_i D_i⁻¹ C_iᵀ.
With K_i = −D_i⁻¹ C_iᵀ, the inverse P has the blocks

    P_ij = K_i P_i+1,j for j > i,     P_ii = D_i⁻¹ + K_i P_i+1,i+1 K_iᵀ.

The matrices are positive definite, and their off-diagonal entries are at most 0. Therefore, all entries of D_i⁻¹, K_i
and P are at least 0, and the formulas for P involve no cancellation.

Near the end, a matrix is given by its negated off-diagonal entries and by its row sums e, its *excess*; no diagonal is
subtracted from. Eliminating level i adds K_iᵀ e_i to the excess of level i + 1, and the diagonal of D_i+1 is the sum of
its excess and of its negated entries (Grassmann, Taksar and Heyman). A group of rows with tight bonds inside and loose
bonds outside is a nearly null direction, whose pivot is the sum of small numbers, and keeps all its digits.

Theory: block_method, Sparse blocks.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import csgraph

from mechdesign.base._arrays import Floats, Integers, Singles

Panels = Floats | Singles

# Largest size of a matrix that LAPACK inverts; larger matrices are split [rows].
_LEAF_ROWS = 16


@dataclass(frozen=True, eq=False)
class Levels:
    """An order of the rows in which a matrix is block tridiagonal.

    Attributes:
        order: The rows (n,) level by level.
        position: The position of each row in the order (n,).
        starts: The first position of each level (k + 1,); the last entry is n.
    """

    order: Integers
    position: Integers
    starts: Integers

    @property
    def widths(self) -> Integers:
        """Number of rows of each level (k,)."""
        return np.diff(self.starts)

    @property
    def slices(self) -> list[slice]:
        """The positions of the rows of each level."""
        return [slice(start, stop) for start, stop in itertools.pairwise(self.starts.tolist())]


def find_levels(size: int, sources: Integers, targets: Integers) -> Levels:
    """Return narrow levels of the graph with the edges (`sources`, `targets`), one component after the other."""
    graph = sparse.coo_array((np.ones(sources.size), (sources, targets)), shape=(size, size)).tocsr()
    graph = (graph + graph.T).tocsr()
    order = csgraph.reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64)
    position = np.empty(size, dtype=np.int64)
    position[order] = np.arange(size)
    # `reach[i]` is the last position of all neighbours of the rows at positions up to i.
    reach = np.arange(size)
    np.maximum.at(reach, position[sources], position[targets])
    np.maximum.at(reach, position[targets], position[sources])
    reach = np.maximum.accumulate(reach)
    starts = [0]
    end = 1
    while end < size:
        starts.append(end)
        end = max(int(reach[end - 1]) + 1, end + 1)
    starts.append(size)
    return Levels(order, position, np.array(starts))


class Shape:
    """The positions at which the entries of sparse matrices with a given graph are stored in blocks.

    Attributes:
        levels: The levels.
    """

    def __init__(self, levels: Levels, rows: Integers, columns: Integers) -> None:
        """Compute the positions of entries below the diagonal (rows > columns), given in the order of the levels."""
        widths, starts = levels.widths, levels.starts
        self.levels = levels
        level = np.repeat(np.arange(widths.size), widths)
        place = np.arange(starts[-1]) - starts[level]
        self._own = np.concatenate([[0], np.cumsum(widths**2)])
        self._next = np.concatenate([[0], np.cumsum(widths[1:] * widths[:-1])])
        within = level[rows] == level[columns]
        self._within = np.flatnonzero(within)
        self._between = np.flatnonzero(~within)
        r, c = rows[within], columns[within]
        base, width = self._own[level[r]], widths[level[r]]
        self._inside = np.concatenate([base + place[r] * width + place[c], base + place[c] * width + place[r]])
        r, c = rows[~within], columns[~within]
        # The block C_iᵀ at (i, i + 1) has one row for each row of level i.
        self._beside = self._next[level[c]] + place[c] * widths[level[r]] + place[r]

    @property
    def size(self) -> int:
        """Number of entries of the factors of one matrix."""
        return int(self._own[-1] + self._next[-1])

    def spread(self, entries: Floats, own: Floats, beside: Floats) -> tuple[list[Floats], list[Floats]]:
        """Store the negated entries (e, b) of b matrices as blocks −A_i, with diagonals 0, and −C_iᵀ.

        The buffers `own` and `beside`, which have b · `size` entries together, contain the result.
        """
        blocks = entries.shape[1]
        own = own[: blocks * self._own[-1]].reshape(blocks, -1)
        beside = beside[: blocks * self._next[-1]].reshape(blocks, -1)
        own[:] = 0.0
        beside[:] = 0.0
        within = entries[self._within].T
        own[:, self._inside] = np.hstack([within, within])
        beside[:, self._beside] = entries[self._between].T
        widths = self.levels.widths.tolist()
        ends = zip(itertools.pairwise(self._own.tolist()), widths, strict=True)
        nexts = zip(itertools.pairwise(self._next.tolist()), widths[:-1], widths[1:], strict=True)
        return (
            [own[:, a:b].reshape(blocks, width, width) for (a, b), width in ends],
            [beside[:, a:b].reshape(blocks, width, after) for (a, b), width, after in nexts],
        )


class Factors:
    """The factors D_i⁻¹ (b, w_i, w_i) and K_i (b, w_i, w_i+1) of b matrices with the same levels, in one precision."""

    def __init__(self, levels: Levels, blocks: int, kind: type[np.floating[Any]] = np.float64) -> None:
        self.levels, self.kind = levels, kind
        widths = levels.widths.tolist()
        self.inverses = [np.empty((blocks, width, width), dtype=kind) for width in widths]
        self.carries = [np.empty((blocks, width, after), dtype=kind) for width, after in itertools.pairwise(widths)]

    def factor(self, own: list[Floats], beside: list[Floats], sums: Floats, *, exact: bool = True) -> bool:
        """Factor matrices with blocks −A_i and −C_iᵀ and row sums `sums` (b, n); overwrite −A_i and the row sums.

        Return whether the factorisation succeeds. If `exact` is false, `sums` are the diagonals, which is faster.
        """
        parts = [sums[:, rows] for rows in self.levels.slices]
        try:
            for i, block in enumerate(own):
                if not exact:
                    np.einsum("bii->bi", block)[:] = -parts[i]
                elif i:
                    parts[i] += (parts[i - 1][:, None] @ self.carries[i - 1])[:, 0]
                if i:
                    block += beside[i - 1].swapaxes(1, 2) @ self.carries[i - 1]
                after = beside[i].sum(axis=2) if exact and i < len(beside) else 0.0
                _invert(block, parts[i] + after if exact else None, self.inverses[i])
                if not (self.inverses[i].diagonal(axis1=1, axis2=2) > 0).all():
                    return False
                if i < len(beside):
                    np.matmul(self.inverses[i], beside[i], out=self.carries[i])
        except np.linalg.LinAlgError:
            return False
        return True

    def solve(self, right: Floats) -> None:
        """Replace right-hand sides (b, n, k), in the order of the levels, by solutions."""
        parts = [right[:, rows] for rows in self.levels.slices]
        for i, carry in enumerate(self.carries):
            parts[i + 1] += carry.swapaxes(1, 2) @ parts[i]
        for inverse, part in zip(self.inverses, parts, strict=True):
            part[:] = inverse @ part
        for i in range(len(self.carries) - 1, -1, -1):
            parts[i] += self.carries[i] @ parts[i + 1]

    def add_inverse(self, scale: Floats, total: Floats, panels: Panels, some: slice = slice(None)) -> None:
        """Add the sum of the inverses P of `some` blocks to the upper triangle of `total` (n, n).

        Rows and columns of P are multiplied by `scale` (b, n), which is positive except for rows without off-diagonal
        entries. The array `panels` contains two buffers (2, b, widest level, n) with the precision of the inverses.
        """
        slices, blocks = self.levels.slices, len(scale)
        unscale = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        for i in range(len(slices) - 1, -1, -1):
            rows = slices[i]
            width, start, stop = rows.stop - rows.start, rows.start, rows.stop
            mine, after = panels[i % 2][:blocks, :width], panels[1 - i % 2][:blocks]
            left = scale[:, rows, None]
            corner = mine[:, :, start:stop]
            np.multiply(self.inverses[i][some] * left, scale[:, None, rows], out=corner, casting="same_kind")
            if i + 1 < len(slices):
                carry = self.carries[i][some] * left
                carry *= unscale[:, None, slices[i + 1]]
                carry = carry.astype(mine.dtype, copy=False)
                np.matmul(carry, after[:, : carry.shape[2], stop:], out=mine[:, :, stop:])
                corner += mine[:, :, stop : slices[i + 1].stop] @ carry.swapaxes(1, 2)
            part = total[rows, start:]
            part += mine[:, :, start:].sum(axis=0)


def _invert(links: Floats, excess: Floats | None, out: Floats) -> None:
    """Write the inverses of symmetric matrices, with negated entries `links` (b, w, w) and row sums `excess`, to `out`.

    The diagonals of `links` are ignored, unless `excess` is None. Let [[A, −B], [−Bᵀ, C]] be the matrix in four blocks,
    K = A⁻¹ B and T = (C − Bᵀ K)⁻¹. The inverse is [[A⁻¹ + K T Kᵀ, K T], [T Kᵀ, T]]. The entries of this inverse are
    sums of terms of one sign. These matrix products take about half the time of a direct inversion. A singular matrix
    raises `LinAlgError`, or its inverse has a diagonal entry that is not positive.
    """
    width = links.shape[1]
    if width <= _LEAF_ROWS:
        if excess is None:
            out[:] = np.linalg.inv(-links)
        else:
            _eliminate(links, excess, out)
        return
    half = width // 2
    first, second, beside = out[:, :half, :half], out[:, half:, half:], out[:, :half, half:]
    across = links[:, :half, half:]
    _invert(links[:, :half, :half], None if excess is None else excess[:, :half] + across.sum(axis=2), first)
    along = first @ across
    rest = None if excess is None else excess[:, half:] + (excess[:, None, :half] @ along)[:, 0]
    _invert(links[:, half:, half:] + across.swapaxes(1, 2) @ along, rest, second)
    np.matmul(along, second, out=beside)
    out[:, half:, :half] = beside.swapaxes(1, 2)
    first += beside @ along.swapaxes(1, 2)


def _eliminate(links: Floats, excess: Floats, out: Floats) -> None:
    """Invert matrices (b, w, w) row by row: each pivot is the excess of its row and the links to the rows after it."""
    size = links.shape[1]
    # The last column contains the row sums.
    left = np.concatenate([links, excess[:, :, None]], axis=2).transpose(1, 2, 0).copy()
    found = np.empty((size, size, len(links)), dtype=left.dtype)
    for k in range(size):
        row = left[k, k + 1 :]
        found[k, k] = 1 / row.sum(axis=0)
        carry = row * found[k, k]
        left[k + 1 :, k + 1 :] += row[:-1, None] * carry
        row[:] = carry
    if not (found[np.arange(size), np.arange(size)] > 0).all():
        raise np.linalg.LinAlgError
    for k in range(size - 2, -1, -1):
        carry, beside = left[k, k + 1 : -1], found[k, k + 1 :]
        np.einsum("ib,ijb->jb", carry, found[k + 1 :, k + 1 :], out=beside)
        found[k + 1 :, k] = beside
        found[k, k] += (carry * beside).sum(axis=0)
    out[:] = found.transpose(2, 0, 1)
