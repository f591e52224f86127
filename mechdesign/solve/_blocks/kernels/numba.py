"""The kernel with passes compiled by Numba: every pass reads and writes each large array once, without temporaries.

The passes recompute ρ, z and q, because that takes less time than reading them from memory.

Theory: block_method, Single precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numba
import numpy as np

from mechdesign.base._arrays import Floats, Integers, Singles
from mechdesign.solve._blocks.kernels.contract import BETA_MAX, BETA_MIN, MIN_MULTIPLIER_SHARE, UNBOUNDED_TARGET
from mechdesign.solve._blocks.kernels.lapack import address
from mechdesign.solve._blocks.kernels.numpy import SINGLE_FACTORS_GAP, Dense
from mechdesign.solve._blocks.layout import BlockLayout

_COMPILE_OPTIONS: dict[str, Any] = {
    "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "nsz", "contract", "nnan"}
}  # fmt: skip


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function on its first call, and cache the result on disk if a folder is writable."""
    try:
        compiled: Callable[..., Any] = numba.njit(cache=True, **_COMPILE_OPTIONS)(function)
    except RuntimeError:
        compiled = numba.njit(**_COMPILE_OPTIONS)(function)
    return compiled


# Size of the square tiles in which a matrix is transposed [rows].
_SQUARE_ROWS = 16
# Smallest relative gap with multipliers in single precision, which halve the memory traffic.
_MULTIPLIERS_GAP = 1e-5
# Multipliers are stored in single precision up to this largest exp(ε·d). They are roughly proportional to exp(−ε·d), so
# that small multipliers would underflow beyond it.
_MAX_SINGLE_RATIO = 1e15


@_compile
def _least(values: Floats) -> float:
    """Return the least value, without NumPy's function, which takes seconds to compile."""
    least = np.inf
    for value in values:
        least = min(least, value)
    return least


@_compile
def _start(ratios: Floats, weight_per_ratio: Floats, x: Floats, mu: float, y: Floats) -> None:
    blocks, n = x.shape
    for b in range(blocks):
        for s in range(n):
            for t in range(n):
                grown = ratios[s, t] * x[b, t]
                y[b, s, t] = mu * weight_per_ratio[s, t] * grown / ((grown - x[b, s]) * x[b, t])


@_compile
def _assemble(ratios: Floats, x: Floats, y: Floats, adjoint: Floats, products: Floats, hessian: Floats) -> float:
    """Assemble the Hessians, Bᵀy and Σ y z; return the least slack."""
    blocks, n = x.shape
    least = np.empty(n)
    least[:] = np.inf
    received, column = np.empty(n), np.empty(n)
    for b in range(blocks):
        received[:] = 0.0
        column[:] = 0.0
        total = 0.0
        for s in range(n):
            own = x[b, s]
            given, row = 0.0, 0.0
            for t in range(n):
                grown = ratios[s, t] * x[b, t]
                z = grown - own
                least[t] = min(least[t], z)
                value = y[b, s, t]
                total += value * z
                given += value
                received[t] += ratios[s, t] * value
                entry = -own * value * grown / z
                row += entry
                column[t] += entry
                hessian[b, s, t] = entry
            received[s] -= given
            column[s] += row
        products[b] += total
        for t in range(n):
            adjoint[b, t] += received[t]
            column[t] = received[t] * x[b, t] - column[t] + 2 * hessian[b, t, t]
        _symmetrise(hessian[b], n)
        for t in range(n):
            hessian[b, t, t] = column[t]
    smallest: float = _least(least)
    return smallest


@_compile
def _symmetrise(matrix: Floats, n: int) -> None:
    """Add the transpose to the leading n rows and columns of a matrix, one square tile at a time."""
    square = np.empty((_SQUARE_ROWS, _SQUARE_ROWS))
    for first in range(0, n, _SQUARE_ROWS):
        rows = min(_SQUARE_ROWS, n - first)
        for start in range(first, n, _SQUARE_ROWS):
            columns = min(_SQUARE_ROWS, n - start)
            for j in range(columns):
                for i in range(rows):
                    square[i, j] = matrix[start + j, first + i]
            for i in range(rows):
                for j in range(columns):
                    square[i, j] += matrix[first + i, start + j]
                    matrix[first + i, start + j] = square[i, j]
            if start > first:
                for j in range(columns):
                    for i in range(rows):
                        matrix[start + j, first + i] = square[i, j]


@_compile
def _weigh(error: Floats, some: Integers, x: Floats, ratio: Floats, weighted: Floats, part: Floats) -> None:
    """Write the rows √ratio · error ∘ x to `weighted` (j, n), and the sum of √ratio times these rows to `part` (n,)."""
    part[:] = 0.0
    for j in range(some.size):
        root = math.sqrt(ratio[some[j]])
        for s in range(x.size):
            value = root * error[some[j], s] * x[s]
            weighted[j, s] = value
            part[s] += root * value


@_compile
def _mirror(matrix: Floats, n: int) -> None:
    """Copy the upper triangle of the leading n rows and columns to the lower triangle, one square tile at a time."""
    for first in range(0, n, _SQUARE_ROWS):
        for start in range(first, n, _SQUARE_ROWS):
            for i in range(first, min(first + _SQUARE_ROWS, n)):
                for j in range(max(start, i + 1), min(start + _SQUARE_ROWS, n)):
                    matrix[j, i] = matrix[i, j]


@_compile
def _accumulate(inverse: Floats, root: int, scale: Floats, count: float, total: Floats, column: Floats) -> None:
    n = scale.size
    for s in range(n):
        column[s] = inverse[min(s, root), max(s, root)]
    for s in range(n):
        if s != root:
            factor = count * scale[s]
            inverse[s, root] = 0.0
            for t in range(s, n):
                total[s, t] += factor * scale[t] * inverse[s, t]


@_compile
def _substitute(factors: Floats, right: Floats) -> None:
    """Solve UᵀU x = b for right-hand sides (b, N), with packed upper triangles U (b, N (N + 1) / 2).

    Four rows are processed at a time. Only the factors are read from memory, and the results remain in the first-level
    cache.
    """
    blocks, n = right.shape
    first = n % 4
    for b in range(blocks):
        factor, found = factors[b], right[b]
        place = 0
        for s in range(first):
            value = found[s] / factor[place]
            found[s] = value
            for t in range(s + 1, n):
                found[t] -= value * factor[place + t - s]
            place += n - s
        for s in range(first, n, 4):
            size = n - s
            row0, place = factor[place : place + size], place + size
            row1, place = factor[place : place + size - 1], place + size - 1
            row2, place = factor[place : place + size - 2], place + size - 2
            row3, place = factor[place : place + size - 3], place + size - 3
            value0 = found[s] / row0[0]
            value1 = (found[s + 1] - value0 * row0[1]) / row1[0]
            value2 = (found[s + 2] - value0 * row0[2] - value1 * row1[1]) / row2[0]
            value3 = (found[s + 3] - value0 * row0[3] - value1 * row1[2] - value2 * row2[1]) / row3[0]
            found[s], found[s + 1], found[s + 2], found[s + 3] = value0, value1, value2, value3
            rest, row0, row1, row2, row3 = found[s + 4 :], row0[4:], row1[3:], row2[2:], row3[1:]
            for t in range(size - 4):
                rest[t] -= value0 * row0[t] + value1 * row1[t] + value2 * row2[t] + value3 * row3[t]
        for s in range(n - 4, first - 1, -4):
            size = n - s
            place -= 4 * size - 6
            row0, row1 = factor[place : place + size], factor[place + size : place + 2 * size - 1]
            row2 = factor[place + 2 * size - 1 : place + 3 * size - 3]
            row3 = factor[place + 3 * size - 3 : place + 4 * size - 6]
            rest, far0, far1, far2, far3 = found[s + 4 :], row0[4:], row1[3:], row2[2:], row3[1:]
            total0 = total1 = total2 = total3 = 0.0
            for t in range(size - 4):
                value = rest[t]
                total0 += far0[t] * value
                total1 += far1[t] * value
                total2 += far2[t] * value
                total3 += far3[t] * value
            value3 = (found[s + 3] - total3) / row3[0]
            value2 = (found[s + 2] - total2 - row2[1] * value3) / row2[0]
            value1 = (found[s + 1] - total1 - row1[1] * value2 - row1[2] * value3) / row1[0]
            value0 = (found[s] - total0 - row0[1] * value1 - row0[2] * value2 - row0[3] * value3) / row0[0]
            found[s], found[s + 1], found[s + 2], found[s + 3] = value0, value1, value2, value3
        for s in range(first - 1, -1, -1):
            place -= n - s
            total = 0.0
            for t in range(s + 1, n):
                total += factor[place + t - s] * found[t]
            found[s] = (found[s] - total) / factor[place]


@_compile
def _affine_ratio_test(ratios: Floats, x: Floats, u: Floats) -> tuple[float, float]:
    blocks, n = x.shape
    # A separate minimum for each column takes almost no time; a single minimum over all columns would be slow.
    low, high = np.empty(n), np.empty(n)
    low[:] = np.inf
    high[:] = -np.inf
    for b in range(blocks):
        for s in range(n):
            for t in range(n):
                grown = ratios[s, t] * x[b, t]
                q = u[b, s] + grown / (grown - x[b, s]) * (u[b, t] - u[b, s])
                low[t], high[t] = min(low[t], q), max(high[t], q)
    return _least(low), -_least(-high)


@_compile
def _mehrotra(
    ratios: Floats,
    weight_per_ratio: Floats,
    x: Floats,
    u: Floats,
    y: Floats,
    centre: float,
    targets: Singles,
    adjoint: Floats,
) -> None:
    blocks, n = x.shape
    received = np.empty(n)
    for b in range(blocks):
        received[:] = 0.0
        for s in range(n):
            given = 0.0
            for t in range(n):
                grown = ratios[s, t] * x[b, t]
                rho = grown / (grown - x[b, s])
                q = u[b, s] + rho * (u[b, t] - u[b, s])
                value = np.float64(y[b, s, t])
                kappa = centre * weight_per_ratio[s, t] * rho / (x[b, t] * value)
                target = np.float32(kappa + q * (1.0 + q) if value > 0.0 else UNBOUNDED_TARGET)
                targets[b, s, t] = target
                value *= target
                given += value
                received[t] += ratios[s, t] * value
            received[s] -= given
        for t in range(n):
            adjoint[b, t] += received[t]


@_compile
def _ratio_test(ratios: Floats, x: Floats, u: Floats, targets: Singles) -> tuple[float, float]:
    blocks, n = x.shape
    primal, dual = np.empty(n), np.empty(n)
    primal[:] = np.inf
    dual[:] = np.inf
    for b in range(blocks):
        for s in range(n):
            for t in range(n):
                grown = ratios[s, t] * x[b, t]
                q = u[b, s] + grown / (grown - x[b, s]) * (u[b, t] - u[b, s])
                primal[t], dual[t] = min(primal[t], q), min(dual[t], targets[b, s, t] - q)
    return _least(primal), _least(dual) - 1.0


@_compile
def _centrality(
    ratios: Floats, weight_per_ratio: Floats, x: Floats, u: Floats, y: Floats, steps: tuple[float, float],
    centre: float, targets: Singles, others: Singles, adjoint: Floats,
) -> None:  # fmt: skip
    blocks, n = x.shape
    received = np.empty(n)
    primal, dual = steps
    for b in range(blocks):
        received[:] = 0.0
        for s in range(n):
            given = 0.0
            for t in range(n):
                grown = ratios[s, t] * x[b, t]
                rho = grown / (grown - x[b, s])
                q = u[b, s] + rho * (u[b, t] - u[b, s])
                value = np.float64(y[b, s, t])
                kappa = centre * weight_per_ratio[s, t] * rho / (x[b, t] * value)
                target = np.float64(targets[b, s, t])
                product = (1.0 + primal * q) * (1.0 + dual * (target - 1.0 - q))
                target += min(max(product, BETA_MIN * kappa), BETA_MAX * kappa) - min(product, 2 * BETA_MAX * kappa)
                changed = np.float32(target if value > 0.0 else UNBOUNDED_TARGET)
                others[b, s, t] = changed
                value *= changed
                given += value
                received[t] += ratios[s, t] * value
            received[s] -= given
        for t in range(n):
            adjoint[b, t] += received[t]


@_compile
def _advance(ratios: Floats, x: Floats, u: Floats, targets: Singles, dual: float, y: Floats) -> None:
    blocks, n = x.shape
    for b in range(blocks):
        for s in range(n):
            for t in range(n):
                grown = ratios[s, t] * x[b, t]
                q = u[b, s] + grown / (grown - x[b, s]) * (u[b, t] - u[b, s])
                y[b, s, t] *= max(1.0 - dual + dual * (targets[b, s, t] - q), MIN_MULTIPLIER_SHARE)


def _keeps_singles(layout: BlockLayout, gap: float) -> bool:
    """Return whether the multipliers are stored in single precision at this relative gap."""
    largest = layout.ratios.max(initial=0.0, where=layout.weights > 0)
    return gap > _MULTIPLIERS_GAP and not layout.floors and bool(largest <= _MAX_SINGLE_RATIO)


def is_compiled() -> bool:
    """Return whether the passes are compiled already, here or on disk, since this file changed."""
    if _advance.signatures:  # type: ignore[attr-defined]
        return True
    folder, changed = _advance.stats.cache_path, Path(__file__).stat().st_mtime  # type: ignore[attr-defined]
    kept = Path(folder).glob(f"*.{_advance.__name__}-*.nbi") if folder is not None else ()
    return any(index.stat().st_mtime >= changed for index in kept)


class NumbaKernel(Dense):
    """A dense kernel that also stores two sets of targets in single precision and, after `keep`, a copy of y."""

    LIBRARY_BYTES: ClassVar[int] = 95_000_000

    @classmethod
    def entry_bytes(cls, layout: BlockLayout, gap: float) -> int:
        if not _keeps_singles(layout, gap):
            return 28
        return 14 if gap > SINGLE_FACTORS_GAP else 16

    def __init__(self, layout: BlockLayout, threads: int) -> None:
        super().__init__(layout, threads)
        self._targets = [np.empty(self.y.shape, dtype=np.float32) for _ in range(2)]
        self._kept: Any = None
        self._parts = [np.empty(layout.rows) for _ in range(threads)]

    def set_precision(self, gap: float) -> bool:
        before = self.y.dtype
        kind = np.float32 if _keeps_singles(self.layout, gap) else np.float64
        if before != kind:
            self.y = self.y.astype(kind)
        return super().set_precision(gap) or before != kind

    def load(self, y: Floats, mu: float) -> None:
        self.y = np.ascontiguousarray(y)

    def release(self) -> None:
        super().release()
        self._targets = []

    def keep(self) -> Callable[[], Floats]:
        if self._kept is None or self._kept.dtype != self.y.dtype:
            self._kept = np.empty_like(self.y)
        kept: Floats = self._kept
        np.copyto(kept, self.y)
        return lambda: kept

    def start(self, worker: int, blocks: slice, x: Floats, mu: float) -> None:
        _start(self.layout.ratios, self.weight_per_ratio, x[blocks], mu, self.y[blocks])

    def assemble(self, worker: int, blocks: slice, x: Floats, adjoint: Floats, products: Floats) -> bool:
        results = adjoint[blocks], products[blocks], self._matrices(worker, blocks)
        least: float = _assemble(self.layout.ratios, x[blocks], self.y[blocks], *results)
        return least > 0

    def add_floor(self, worker: int, blocks: slice, index: int, points: Floats, ratio: Floats, own: Floats) -> None:
        error, place, n = self.layout.errors[index], self.layout.rows + index, self.layout.rows
        total = self._parts[worker]
        add_product = self._lapack[worker].add_product
        for block, matrix in enumerate(self._matrices(worker, blocks), blocks.start):
            w = points[block, place]
            if index == 0:
                matrix[n:, :] = 0.0
                matrix[:, n:] = 0.0
            some = np.flatnonzero(ratio[block])
            weighted = self._weighted[worker][: some.size]
            _weigh(error, some, points[block, :n], ratio[block], weighted, total)
            matrix[place, :n] = matrix[:n, place] = -w * total
            matrix[place, place] = w**2 * (ratio[block].sum() + own[block])
            add_product(weighted, address(matrix))
            # Products fill one triangle; it is copied to the other triangle after all floors are added.
            if index == self.layout.floors - 1 and self.factors.dtype != np.float32:
                _mirror(matrix, n)

    def accumulate(
        self, worker: int, blocks: slice, roots: Integers, scale: Floats, counts: Floats, columns: Floats
    ) -> None:
        if self.layout.members:
            super().accumulate(worker, blocks, roots, scale, counts, columns)
            return
        total = self._schur[worker]
        for block, inverse in enumerate(self._inverses(worker, blocks), blocks.start):
            _accumulate(inverse, roots[block], scale[block], counts[block], total, columns[block])

    def _substitute(self, worker: int, blocks: slice, right: Floats) -> None:
        _substitute(self.factors[blocks], right[blocks])

    def affine_ratio_test(self, worker: int, blocks: slice, x: Floats, u: Floats) -> tuple[float, float]:
        low, high = _affine_ratio_test(self.layout.ratios, x[blocks], u[blocks])
        return low, high

    def mehrotra(self, worker: int, blocks: slice, x: Floats, u: Floats, centre: float, adjoint: Floats) -> None:
        point = self.layout.ratios, self.weight_per_ratio, x[blocks], u[blocks], self.y[blocks]
        _mehrotra(*point, centre, self._targets[0][blocks], adjoint[blocks])

    def ratio_test(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, *, store_for_corrector: bool
    ) -> tuple[float, float]:
        primal, dual = _ratio_test(self.layout.ratios, x[blocks], u[blocks], self._targets[slot][blocks])
        return primal, dual

    def centrality(
        self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, primal: float, dual: float, centre: float,
        adjoint: Floats,
    ) -> None:  # fmt: skip
        point = self.layout.ratios, self.weight_per_ratio, x[blocks], u[blocks], self.y[blocks]
        targets = self._targets[slot][blocks], self._targets[1 - slot][blocks]
        _centrality(*point, (float(primal), float(dual)), float(centre), *targets, adjoint[blocks])

    def advance(self, worker: int, blocks: slice, x: Floats, u: Floats, slot: int, dual: float) -> None:
        _advance(self.layout.ratios, x[blocks], u[blocks], self._targets[slot][blocks], float(dual), self.y[blocks])


KERNEL = NumbaKernel
