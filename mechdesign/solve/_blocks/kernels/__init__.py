"""The array libraries that can do a solve's heavy work, and the choice among them."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import InputError, MissingDependencyError
from mechdesign.solve._block_angular import BlockProgram
from mechdesign.solve._blocks.kernels.contract import Kernel
from mechdesign.solve._blocks.layout import has_sparse_blocks

# From so many ratio rows on Numba pays: importing it takes half a second once, and then it takes half of the time.
# The size alone decides, not what happens to be imported already: the same program then gives the same numbers.
_WORTH_IMPORTING = 250_000
# Seconds that leave time to compile Numba's passes, which takes ten to twenty, once after an installation.
_TIME_TO_COMPILE = 60.0
_MODULES = {"numpy": "numpy", "numba": "numba", "torch": "accelerator", "sparse": "sparse"}
_EXTRAS = {"numba": "fast", "torch": "torch"}


def sparse_kernel(program: BlockProgram, extra: Mapping[str, object]) -> bool:
    """Tell whether the options `extra` let the sparse kernel take the blocks of a program."""
    arrays, device = extra.get("arrays"), extra.get("device")
    if arrays is not None or device not in (None, "cpu"):
        return arrays == "sparse"
    return has_sparse_blocks(program)


def few_bounds(*, floors: bool) -> type[Kernel]:
    """Return the kernel that prices columns with few bounds for each row."""
    module: Any = importlib.import_module(f"{__name__}.{'filled' if floors else 'sparse'}")
    kernel: type[Kernel] = module.KERNEL
    return kernel


def choose(
    name: object, device: object, rows: int, sparse: bool = False, time_limit: float | None = None
) -> type[Kernel]:
    """Return the kernel called `name`.

    Without a name it is PyTorch's for a device, the sparse one for sparse blocks, Numba's where it pays, else NumPy's.
    Numba does not pay where it would take most of the time that there is to compile.

    Args:
        name: "numpy", "numba", "torch", "sparse" (lists of pairs, on NumPy), or None.
        device: where PyTorch computes ("cpu", "cuda", …), or None.
        rows: the number B n² of ratio rows.
        sparse: whether blocks are sparse (`Layout.sparse`).
        time_limit: seconds that the solve may take.

    Raises:
        InputError: for a name that is not known, or a device that the library does not compute on.
        MissingDependencyError: for a library that is not installed.
    """
    if name is None and device in (None, "cpu"):
        worth = rows >= _WORTH_IMPORTING and importlib.util.find_spec("numba") is not None
        dense = "numba" if worth and _time_to_compile(time_limit) else "numpy"
        name = "sparse" if sparse else dense
    elif name is None:
        name = "torch"
    if not isinstance(name, str) or name not in _MODULES:
        bound = ", ".join(_MODULES)
        raise InputError(
            "options.extra.arrays", "is not an array library that the block solver knows", value=name, bound=bound
        )
    if name != "torch" and device not in (None, "cpu"):
        raise InputError("options.extra.device", f"is not a device that {name} computes on", value=device, bound="cpu")
    extra = _EXTRAS.get(name)
    if extra is not None and importlib.util.find_spec(name) is None:
        raise MissingDependencyError(f"options.extra.arrays: {name} is missing; pip install 'mechdesign[{extra}]'")
    module = _load(_MODULES[name])
    kernel: type[Kernel] = module.kernel_on(device) if name == "torch" else module.KERNEL
    return kernel


def _time_to_compile(time_limit: float | None) -> bool:
    if time_limit is None or time_limit >= _TIME_TO_COMPILE:
        return True
    found: bool = _load("numba").compiled()
    return found


def _load(name: str) -> Any:
    """Import a file of this folder; Ctrl-C waits, since it would leave half of a library behind."""
    with Deadline().keeping():
        return importlib.import_module(f"{__name__}.{name}")
