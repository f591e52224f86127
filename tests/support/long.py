"""Parameters of slow tests, of which continuous integration runs the first ones only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def mostly_long(values: Iterable[Any], short: int = 1) -> list[Any]:
    """Return the parameter values, with the mark `long` on all but the first `short` of them."""
    return [value if place < short else _long(value) for place, value in enumerate(values)]


def _long(value: Any) -> Any:
    values, marks = value if isinstance(value, tuple) else (value,), []
    if hasattr(value, "marks"):
        values, marks = value.values, value.marks
    return pytest.param(*values, marks=[*marks, pytest.mark.long])
