"""The identity of a row, and the machine and versions that results depend on."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from mechdesign.base._errors import InputError
from mechdesign.base._machine import count_processors
from mechdesign.base._version import __version__
from mechdesign.certify._exact import exact_text

# Packages that a result may depend on, if they are installed.
_PACKAGES = (
    "clarabel", "cvxpy", "cvxopt", "dask", "distributed", "ecos", "gurobipy", "highspy", "joblib", "mosek", "numba",
    "numpy", "ortools", "osqp", "pyscipopt", "scipy", "scs", "xpress",
)  # fmt: skip


def environment() -> dict[str, Any]:
    """Return versions of packages, BLAS, processor, memory and threads as JSON values, without data of the user."""
    return {
        "packages": {"mechdesign": __version__} | _versions(),
        "python": platform.python_version(),
        "system": f"{platform.system()} on {platform.machine()}",
        "processor": processor(),
        "cores": count_processors(),
        "memory_gb": _memory(),
        "blas": blas(),
        "threads": {name: os.environ[name] for name in sorted(os.environ) if name.endswith("_NUM_THREADS")},
    }


def blas() -> list[dict[str, Any]]:
    """Return the linear algebra libraries of NumPy and SciPy, with their versions and threads."""
    # NumPy may load the library only at the first operation.
    np.linalg.norm(np.ones((2, 2)) @ np.ones((2, 2)))
    wanted = ("internal_api", "version", "num_threads", "architecture")
    return [
        {name: library.get(name) for name in wanted} for library in threadpool_info() if library["user_api"] == "blas"
    ]


def processor() -> str:
    """Return the name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        # This file exists only on Linux.
        pass
    return platform.processor() or platform.machine()


@functools.cache
def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def identity(description: Mapping[str, object]) -> str:
    """Return the SHA-256 of a description, in hexadecimal digits, independent of the order of its keys.

    Args:
        description: Texts, numbers, booleans, None, and lists and mappings of these. Decimals and fractions count as
            exact numbers, so that 0.5 and 0.50 are equal; floats never equal decimals or fractions.

    Returns:
        64 hexadecimal digits.

    Raises:
        InputError: If a value is of another type.

    >>> identity({"n": 25, "solver": "block"}) == identity({"solver": "block", "n": 25})
    True
    >>> identity({"epsilon": Decimal("0.50")}) == identity({"epsilon": Fraction(1, 2)})
    True
    """
    text = json.dumps(canonical(description, "description"), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: object, path: str) -> Any:
    """Return `value` as a JSON value; raise `InputError` if its type is not allowed."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Decimal | Fraction):
        return {"exact": exact_text(Fraction(value))}
    if isinstance(value, float):
        if not np.isfinite(value):
            raise InputError(path, "is not finite", value=value)
        return value
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InputError(path, "has keys that are not texts", value=list(value))
        return {key: canonical(entry, f"{path}.{key}") for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [canonical(entry, f"{path}[{index}]") for index, entry in enumerate(value)]
    raise InputError(path, "cannot be described", value=value, bound="texts, numbers, lists and mappings")
