"""Packages that load names on first use: the stub of a package lists its names (Scientific Python, SPEC 1)."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable
from pathlib import PurePath
from typing import Any


def attach(face: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a module whose stub lists its names.

    Args:
        face: The module's `__name__`; the module has been imported.

    Returns:
        The two functions and the list of names.
    """
    module = sys.modules[face]
    package = module.__spec__.parent if module.__spec__ else face
    stub = pkgutil.get_data(face, PurePath(str(module.__file__)).with_suffix(".pyi").name) or b""
    homes = {
        alias.asname or alias.name: (
            importlib.util.resolve_name("." * node.level + (node.module or ""), package),
            alias.name,
        )
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {face!r} has no attribute {name!r}")
        home, there = homes[name]
        if home == face:
            value = importlib.import_module(f"{home}.{there}")
        else:
            value = getattr(importlib.import_module(home), there)
        setattr(module, name, value)
        return value

    names = sorted(homes)
    return load, listing(names), names


def listing(names: list[str]) -> Callable[[], list[str]]:
    """Return a `__dir__` function that lists these names."""
    return lambda: sorted(names)
