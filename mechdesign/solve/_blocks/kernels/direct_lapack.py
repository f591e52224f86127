"""LAPACK through function pointers: the methods of `WrappedLapack`, in parallel threads.

LAPACK takes half the time in single precision. SciPy's wrappers keep the global interpreter lock. The function pointers
of `scipy.linalg.cython_lapack`, called through ctypes, release this lock, so threads run in parallel. For small
matrices, calls keep the lock, because releasing it would take longer than the call.

Theory: block_method, Single precision.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg.cython_blas
import scipy.linalg.cython_lapack

from mechdesign.base._arrays import Floats, Singles
from mechdesign.solve._blocks.kernels.wrapped_lapack import WrappedLapack, address

# Largest size of a triangle that one call inverts [rows].
_INVERSION_LEAF_ROWS = 48
# Largest sizes for which a call keeps the interpreter lock [rows].
_LOCKED_SOLVE_ROWS = 160
_LOCKED_FACTOR_ROWS = 80


def _functions(module: Any, name: str, arguments: int) -> tuple[Any, Any]:
    """Return two versions of a function: one releases the interpreter lock, the other keeps it."""
    capsule = module.__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    types = [ctypes.c_void_p] * arguments
    place = get_pointer(capsule, get_name(capsule))
    return ctypes.CFUNCTYPE(None, *types)(place), ctypes.PYFUNCTYPE(None, *types)(place)


class _Library:
    """The functions of LAPACK and BLAS for one precision."""

    def __init__(self, letter: str, number: type[ctypes.c_float] | type[ctypes.c_double]) -> None:
        blas, lapack = scipy.linalg.cython_blas, scipy.linalg.cython_lapack
        self.number = number
        self.potrf = _functions(lapack, f"{letter}potrf", 5)
        self.trtri = _functions(lapack, f"{letter}trtri", 6)
        self.lauum = _functions(lapack, f"{letter}lauum", 5)
        self.syrk = _functions(blas, f"{letter}syrk", 10)
        self.trmm = _functions(blas, f"{letter}trmm", 11)
        self.tpsv = _functions(blas, f"{letter}tpsv", 7)
        self.trttp = _functions(lapack, f"{letter}trttp", 6)


_DOUBLE, _SINGLE = _Library("d", ctypes.c_double), _Library("s", ctypes.c_float)


class DirectLapack(WrappedLapack):
    """LAPACK for matrices of a given size and precision; each thread needs its own object for the output `info`."""

    def __init__(self, size: int, *, single: bool = False) -> None:
        super().__init__(size, single=single)
        library = _SINGLE if single else _DOUBLE
        self._bytes = ctypes.sizeof(library.number)
        self._cells: dict[object, Any] = {name: ctypes.c_char(name.encode()) for name in "LNRT"}
        self._cells |= {1.0: library.number(1.0), -1.0: library.number(-1.0)}
        self._info = ctypes.c_int(0)
        self._info_at = ctypes.addressof(self._info)
        self._lower, self._plain, self._right, self._transposed = (self._at(name) for name in "LNRT")
        self._size_at, self._one_at = self._integer(size), self._integer(1)
        is_locked = size <= _LOCKED_FACTOR_ROWS
        self._potrf, self._trtri, self._lauum = (
            library.potrf[is_locked],
            library.trtri[is_locked],
            library.lauum[is_locked],
        )
        self._trmm, self._trttp, self._syrk = library.trmm[is_locked], library.trttp[is_locked], library.syrk[is_locked]
        self._tpsv = library.tpsv[size <= _LOCKED_SOLVE_ROWS]
        self._inversion: list[Callable[[int], None]] = []
        self._plan_inversion(0, size)

    def _at(self, cell: object) -> int:
        return ctypes.addressof(self._cells[cell])

    def _integer(self, value: int) -> int:
        return ctypes.addressof(self._cells.setdefault(("integer", value), ctypes.c_int(value)))

    def try_factor(self, matrix: Floats | Singles) -> bool:
        self._potrf(self._lower, self._size_at, address(matrix), self._size_at, self._info_at)
        return self._info.value == 0 and (not self._single or bool(np.isfinite(matrix.diagonal()).all()))

    def add_product(self, rows: Floats | Singles, matrix: int) -> None:
        count, width = (self._integer(length) for length in rows.shape)
        one = self._at(1.0)
        fixed = self._lower, self._plain, width, count, one, address(rows), width
        self._syrk(*fixed, one, matrix, self._size_at)

    def invert(self, factor: int) -> None:
        for step in self._inversion:
            step(factor)
        self._lauum(self._lower, self._size_at, factor, self._size_at, self._info_at)

    def _plan_inversion(self, start: int, size: int) -> None:
        """Append the calls that invert the triangle of `size` rows at the offset `start`.

        The inverse of [[A, 0], [B, C]] is [[A⁻¹, 0], [−C⁻¹ B A⁻¹, C⁻¹]].
        """
        lower, plain, stride, info = self._lower, self._plain, self._size_at, self._info_at
        if size <= _INVERSION_LEAF_ROWS:
            length = self._integer(size)
            self._inversion.append(lambda at: self._trtri(lower, plain, length, at + start, stride, info))
            return
        first = (size // 2 + 7) // 8 * 8
        corner, second = start + self._bytes * first, start + self._bytes * first * (1 + self._size)
        self._plan_inversion(start, first)
        self._plan_inversion(second, size - first)
        shape = self._integer(size - first), self._integer(first)
        for side, triangle, factor in ((self._right, start, self._at(-1.0)), (lower, second, self._at(1.0))):
            self._inversion.append(
                functools.partial(self._multiply, (side, lower, plain, plain, *shape, factor), triangle, corner)
            )

    def _multiply(self, fixed: tuple[int, ...], triangle: int, corner: int, at: int) -> None:
        self._trmm(*fixed, at + triangle, self._size_at, at + corner, self._size_at)

    def pack(self, factor: int, packed: int) -> None:
        self._trttp(self._lower, self._size_at, factor, self._size_at, packed, self._info_at)

    def solve(self, packed: int, right: int) -> None:
        size, one = self._size_at, self._one_at
        self._tpsv(self._lower, self._plain, self._plain, size, packed, right, one)
        self._tpsv(self._lower, self._transposed, self._plain, size, packed, right, one)
