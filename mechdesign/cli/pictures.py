"""Load what draws before anything is solved or spent."""

from __future__ import annotations

import importlib

from mechdesign.base._errors import MissingDependencyError

__all__ = ["load_pictures"]


def load_pictures(module: str) -> None:
    """Import a module that draws; raise `MissingDependencyError` where that fails, as with a broken Matplotlib."""
    try:
        importlib.import_module(module)
    except Exception as error:  # What another package raises when it is loaded can be anything.
        message = f"pictures cannot be drawn: {error}. Repair Matplotlib; nothing was solved or spent"
        raise MissingDependencyError(message) from error
