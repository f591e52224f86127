"""The LAPACK of the kernels: called directly where Python has ctypes, and through SciPy's wrappers elsewhere.

WebAssembly outside a browser has no ctypes, and some Pythons have ctypes without CPython's own functions.

Theory: block_method, Single precision.
"""

from __future__ import annotations

from mechdesign.solve._blocks.kernels.wrapped_lapack import WrappedLapack, address

__all__ = ["Lapack", "address"]

Lapack: type[WrappedLapack] = WrappedLapack
try:
    from mechdesign.solve._blocks.kernels.direct_lapack import DirectLapack
except (ImportError, AttributeError):
    pass
else:
    Lapack = DirectLapack
