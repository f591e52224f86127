"""Rows of a table that one test goes through: a failure names its row."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., None]


def each_row(
    names: str | tuple[str, ...], table: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test with each row of a table, as `pytest.mark.parametrize` does, but as one test.

    Fixtures are the same for all rows.
    """
    columns = (names,) if isinstance(names, str) else names
    filled = [(row,) if isinstance(names, str) else tuple(row) for row in table]
    assert filled, "there is no row in the table"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(*given: Any, **fixtures: Any) -> None:
            for row in filled:
                try:
                    test(*given, **fixtures, **dict(zip(columns, row, strict=True)))
                except BaseException as error:
                    error.add_note(f"in the row {', '.join(map(_short, row))}")
                    raise

        signature = inspect.signature(test)
        others = [each for name, each in signature.parameters.items() if name not in columns]
        run.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return run

    return decorate


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
