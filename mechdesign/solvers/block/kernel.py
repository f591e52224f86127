"""Dense linear algebra of one block: Cholesky factor, inverse, solve, through LAPACK without the interpreter's lock.

SciPy's own wrappers hold the lock; the function pointers that `scipy.linalg.cython_lapack` publishes, called through
ctypes, do not, so that threads run side by side. Matrices are symmetric float64 arrays in C order; the factor lives in
the upper triangle of the array, as LAPACK's lower triangle of the transpose.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg.cython_blas
import scipy.linalg.cython_lapack

__all__ = ["Lapack"]

Array = npt.NDArray[np.float64]

# The diagonal is raised by 1 + _RAISE · 30^k, k = 0, 1, …, until the factorisation succeeds.
_RAISE = 1e-15
_RAISE_GROWTH = 30.0
_RAISE_LIMIT = 1e-2


def _pointer(module: Any, name: str, arguments: int) -> Any:
    capsule = module.__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)
    return prototype(get_pointer(capsule, get_name(capsule)))


_POTRF = _pointer(scipy.linalg.cython_lapack, "dpotrf", 5)
_POTRI = _pointer(scipy.linalg.cython_lapack, "dpotri", 5)
_TRSV = _pointer(scipy.linalg.cython_blas, "dtrsv", 8)


class Lapack:
    """LAPACK on matrices of one size; one object per thread, because the argument cells are its own."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._info = ctypes.c_int(0)
        cells: dict[str, Any] = {
            "lower": ctypes.c_char(b"L"),
            "plain": ctypes.c_char(b"N"),
            "transposed": ctypes.c_char(b"T"),
            "n": ctypes.c_int(size),
            "one": ctypes.c_int(1),
        }
        self._cells = cells
        self._at = {name: ctypes.addressof(cell) for name, cell in cells.items()}
        self._info_at = ctypes.addressof(self._info)

    def factor(self, matrix: Array) -> float:
        """Replace the upper triangle of `matrix` (size, size) by its Cholesky factor; return how far it was raised.

        A matrix that rounding has made indefinite is factored with its diagonal raised by a factor 1 + δ, the least of
        1e-15 · 30^k that works; infinity means that none up to 1e-2 did.
        """
        at = self._at
        diagonal = matrix.diagonal().copy()
        raised = 0.0
        while True:
            _POTRF(at["lower"], at["n"], matrix.ctypes.data, at["n"], self._info_at)
            if self._info.value == 0:
                return raised
            raised = raised * _RAISE_GROWTH if raised else _RAISE
            if not raised <= _RAISE_LIMIT:
                return np.inf
            # LAPACK left the other triangle alone.
            np.copyto(matrix, np.tril(matrix, -1) + np.tril(matrix, -1).T)
            np.fill_diagonal(matrix, diagonal * (1 + raised))

    def invert(self, factor: Array, out: Array) -> None:
        """Write the inverse of the factored matrix into the upper triangle of `out`; the rest of `out` is undefined."""
        at = self._at
        np.copyto(out, factor)
        _POTRI(at["lower"], at["n"], out.ctypes.data, at["n"], self._info_at)

    def solve(self, factor: Array, right: Array) -> None:
        """Replace the contiguous `right` (size,) by the solution of the factored system."""
        at, matrix, vector = self._at, factor.ctypes.data, right.ctypes.data
        _TRSV(at["lower"], at["plain"], at["plain"], at["n"], matrix, at["n"], vector, at["one"])
        _TRSV(at["lower"], at["transposed"], at["plain"], at["n"], matrix, at["n"], vector, at["one"])
