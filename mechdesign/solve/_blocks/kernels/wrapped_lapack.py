"""Dense linear algebra of one block through SciPy's wrappers of LAPACK: Cholesky factors, inverses and solutions.

Matrices are symmetric arrays in C order, and some are passed by address. The factor is stored in the upper triangle of
the array, which LAPACK regards as the lower triangle of the transpose. Stored factors are packed row by row, which
halves the memory, and substitution reads them sequentially. The wrappers keep the global interpreter lock; they serve
where ctypes cannot call LAPACK directly.

Theory: block_method, Single precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from mechdesign.base._arrays import Floats, Singles
from mechdesign.solve._blocks.kernels.contract import REGULARISATIONS


def address(array: Floats | Singles) -> int:
    """Return the memory address of the first element of an array."""
    return int(array.ctypes.data)


class WrappedLapack:
    """LAPACK for matrices of a given size and precision; each thread needs its own object for outputs."""

    def __init__(self, size: int, *, single: bool = False) -> None:
        self._size = size
        self._single, self._regularisations = single, () if single else REGULARISATIONS

    def factor(self, matrix: Floats | Singles) -> float:
        """Replace the upper triangle of `matrix` (size, size) by its Cholesky factor; return the regularisation δ.

        The lower triangle is unchanged. If rounding has made the matrix indefinite, its diagonal is multiplied by
        1 + δ, with the least sufficient δ of `REGULARISATIONS`. The result is infinity if no δ suffices. In single
        precision, the matrix is not regularised.
        """
        diagonal = matrix.diagonal().copy()
        for delta in (0.0, *self._regularisations):
            if delta:
                np.copyto(matrix, np.tril(matrix, -1) + np.tril(matrix, -1).T)
                np.fill_diagonal(matrix, diagonal * (1 + delta))
            if self.try_factor(matrix):
                return delta
        return np.inf

    def try_factor(self, matrix: Floats | Singles) -> bool:
        """Replace the upper triangle of `matrix` by its Cholesky factor; return whether the factorisation succeeds.

        In single precision, an overflow gives an infinite entry, which LAPACK does not report as an error.
        """
        potrf = lapack.spotrf if self._single else lapack.dpotrf
        _, info = potrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        return info == 0 and (not self._single or bool(np.isfinite(matrix.diagonal()).all()))

    def add_product(self, rows: Floats | Singles, matrix: int) -> None:
        """Add rowsᵀ rows to the upper triangle of the first j rows and columns; `rows` (k, j) is contiguous."""
        width = rows.shape[1]
        self._matrix(matrix)[:width, :width] += rows.T @ rows

    def invert(self, factor: int) -> None:
        """Replace a factor by the upper triangle of the inverse of the matrix that was factored."""
        potri = lapack.spotri if self._single else lapack.dpotri
        potri(self._matrix(factor).T, lower=1, overwrite_c=1)

    def pack(self, factor: int, packed: int) -> None:
        """Copy the factor to the packed array (size (size + 1) / 2,) at `packed`."""
        trttp = lapack.strttp if self._single else lapack.dtrttp
        self._triangle(packed)[:] = trttp(self._matrix(factor).T, uplo="L")[0]

    def solve(self, packed: int, right: int) -> None:
        """Replace the contiguous vector (size,) at `right` by the solution of the system with a packed factor."""
        tpsv = blas.stpsv if self._single else blas.dtpsv
        triangle, vector = self._triangle(packed), self._array(right, (self._size,))
        for transposed in (0, 1):
            vector[:] = tpsv(self._size, triangle, vector, lower=1, trans=transposed)

    def _matrix(self, address: int) -> Any:
        return self._array(address, (self._size, self._size))

    def _triangle(self, address: int) -> Any:
        return self._array(address, (self._size * (self._size + 1) // 2,))

    def _array(self, address: int, shape: tuple[int, ...]) -> Any:
        return np.asarray(_Memory(address, shape, np.float32 if self._single else np.float64))


class _Memory:
    """A part of the memory, in the form that NumPy accepts without a copy."""

    def __init__(self, address: int, shape: tuple[int, ...], kind: type[np.float32] | type[np.float64]) -> None:
        self.__array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "typestr": np.dtype(kind).str,
            "version": 3,
        }
