"""Packages that only some functions need: an import that fails becomes an error with the line that installs them.

Designing, verifying, saving and auditing need NumPy, SciPy, NetworkX, msgspec and threadpoolctl. All other packages are
imported where they are used.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator

_TOGETHER = (("click", "rich"), ("jinja2", "matplotlib"))
"""Packages that the same functions need, so that one message names them all."""

OPTIONAL = frozenset(
    {
        *("click", "cvxpy", "filelock", "highspy", "jinja2", "joblib", "matplotlib", "platformdirs", "psutil", "rich"),
        *("distributed", "numba", "pyarrow"),
    }
)
"""The packages that the core does not need, by the names of their modules, which are also their names for pip."""


@contextlib.contextmanager
def explain_missing(feature: str) -> Iterator[None]:
    """Raise `MissingDependencyError` instead of the error for an optional package that is not installed.

    Args:
        feature: The feature that needs the package: the subject of the message.

    Raises:
        MissingDependencyError: A package of `OPTIONAL` that the block imports is not installed.

    >>> with explain_missing("the page"):
    ...     import json
    """
    try:
        yield
    except ModuleNotFoundError as error:
        first = (error.name or "").partition(".")[0]
        if first not in OPTIONAL or _is_installed(first):
            raise
        # Only faces that load on first use need this module at the start of the package.
        from mechdesign.base._errors import MissingDependencyError

        group = next((group for group in _TOGETHER if first in group), (first,))
        absent = [package for package in group if not _is_installed(package)]
        packages = f"package{'s' if len(absent) > 1 else ''} {' and '.join(absent)}"
        raise MissingDependencyError(f"{feature} needs the {packages}: pip install {' '.join(absent)}") from error


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
