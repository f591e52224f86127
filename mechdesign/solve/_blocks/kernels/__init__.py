"""Choose the array library that performs the expensive operations of a solve.

Theory: block_method, Memory and threads.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import InputError, MissingDependencyError
from mechdesign.solve._block_angular import BlockProgram
from mechdesign.solve._blocks.kernels.contract import Kernel
from mechdesign.solve._blocks.layout import has_sparse_blocks

# Number of ratio rows from which Numba is faster: its import takes half a second, and it halves the time of a solve.
_NUMBA_MIN_ROWS = 250_000
# The same while its passes are not compiled yet, which takes 10 to 20 s, once after an installation: 136 cells without
# symmetry. A solve of that size saves as much.
_COMPILE_MIN_ROWS = 2_500_000
# Smallest time limit of a solve that compiles the passes.
_COMPILE_MIN_LIMIT_S = 60.0
_NAMES = ("numpy", "numba", "sparse")


def sparse_kernel(program: BlockProgram, extra: Mapping[str, object]) -> bool:
    """Return whether a program is solved with the sparse kernel, given the options `extra`."""
    arrays = extra.get("arrays")
    return has_sparse_blocks(program) if arrays is None else arrays == "sparse"


def few_bounds(*, floors: bool) -> type[Kernel]:
    """Return the kernel for pricing columns with few bounds per row."""
    module: Any = importlib.import_module(f"{__name__}.{'filled' if floors else 'sparse'}")
    kernel: type[Kernel] = module.KERNEL
    return kernel


def choose(name: object, rows: int, sparse: bool = False, time_limit: float | None = None) -> type[Kernel]:
    """Return the kernel called `name`.

    Without a name, sparse blocks select the sparse kernel. Otherwise Numba is used for large programs if its passes lie
    compiled on disk, or if compiling them pays in this solve; else NumPy is used.

    Args:
        name: "numpy", "numba", "sparse" (lists of pairs, on NumPy), or None.
        rows: Number B n² of ratio rows.
        sparse: Whether the blocks are sparse.
        time_limit: Time limit of the solve [s].

    Returns:
        The class of the kernel.

    Raises:
        InputError: The name is unknown.
        MissingDependencyError: Numba is not installed.
    """
    if name is None:
        name = "sparse" if sparse else "numba" if _numba_pays(rows, time_limit) else "numpy"
    if not isinstance(name, str) or name not in _NAMES:
        bound = ", ".join(_NAMES)
        raise InputError("options.extra.arrays", "is not an array library of the block solver", value=name, bound=bound)
    if name == "numba" and importlib.util.find_spec(name) is None:
        raise MissingDependencyError("options.extra.arrays: numba is missing; pip install 'mechdesign[fast]'")
    kernel: type[Kernel] = _load(name).KERNEL
    return kernel


def _numba_pays(rows: int, time_limit: float | None) -> bool:
    """Return whether Numba saves time in a solve of this size, its compilation included where it is due."""
    if rows < _NUMBA_MIN_ROWS or importlib.util.find_spec("numba") is None:
        return False
    if rows >= _COMPILE_MIN_ROWS and (time_limit is None or time_limit >= _COMPILE_MIN_LIMIT_S):
        return True
    compiled: bool = _load("numba").is_compiled()
    return compiled


def _load(name: str) -> Any:
    """Import a file of this folder, and delay Ctrl-C, which would leave a library partly imported."""
    with Deadline().keeping():
        return importlib.import_module(f"{__name__}.{name}")
