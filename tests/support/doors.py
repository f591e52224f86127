"""Mistakes at one door, as rows of a table: their name, what makes them, the place of the error, and a text of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from refusals import Mistake, assert_refused

from mechdesign.errors import InputError

Row = tuple[str, Callable[[], object], str] | tuple[str, Callable[[], object], str, str]


def each(name: str, values: Iterable[Any], use: Callable[[Any], object], path: str, says: str = "") -> list[Row]:
    """Return a row for each wrong value."""
    return [(f"{name} {value!r}", lambda value=value: use(value), path, says) for value in values]


def assert_closed(rows: Iterable[Row]) -> None:
    """Fail with each mistake that is not refused at its place by an `InputError`."""
    mistakes = [Mistake(name, make, *rest, error=InputError) for name, make, *rest in rows]
    assert len({mistake.name for mistake in mistakes}) == len(mistakes), "two mistakes have one name"
    assert_refused(mistakes)
