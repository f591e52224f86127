"""What a computation ran on: packages, the libraries below NumPy, processor, threads."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from mechdesign.base._machine import count_processors
from mechdesign.base._version import __version__

__all__ = ["environment", "processor"]

# Those that a result may depend on, where they are installed.
_PACKAGES = (
    "clarabel", "cvxpy", "cvxopt", "dask", "distributed", "ecos", "gurobipy", "highspy", "joblib", "mosek", "numba",
    "numpy", "ortools", "osqp", "pyscipopt", "scipy", "scs", "torch", "xpress",
)  # fmt: skip


def environment() -> dict[str, Any]:
    """Return versions of packages, BLAS, processor, memory and threads, in terms of JSON; nothing about the user."""
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
    """Return the libraries that do linear algebra below NumPy and SciPy, with their versions and threads."""
    # Without an operation NumPy may not have loaded it.
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
        # Only Linux has it.
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
