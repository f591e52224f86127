"""Docstrings for users, even if Python removes docstrings.

With ``PYTHONOPTIMIZE=2`` functions and classes have no docstrings; this module then reads them from the source.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from typing import Any


def docstring(thing: Any) -> str:
    """Return the docstring of a function or class, read from the source if Python removed it; "" if there is none."""
    kept: str | None = thing.__doc__
    return kept or _read_docstrings(thing.__module__).get(thing.__qualname__, "")


@functools.cache
def _read_docstrings(module: str) -> dict[str, str]:
    """Return the docstrings of functions and classes in the source of a module, by their qualified names."""
    spec = importlib.util.find_spec(module)
    source = getattr(spec and spec.loader, "get_source", lambda _: None)(module)
    found: dict[str, str] = {}
    if source is not None:
        _collect(ast.parse(source), "", found)
    return found


def _collect(node: ast.AST, prefix: str, found: dict[str, str]) -> None:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{inner.name}"
            text = ast.get_docstring(inner, clean=False)
            if text is not None:
                found[name] = text
            _collect(inner, f"{name}." if isinstance(inner, ast.ClassDef) else f"{name}.<locals>.", found)
