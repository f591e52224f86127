"""Tables of wrong input: what makes the mistake, and the place that its error names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from mechdesign.errors import InputError, MechdesignError


@dataclass(frozen=True)
class Mistake:
    """A mistake: the function that makes it, the start of `error.path`, a text of the message, and the type."""

    name: str
    make: Callable[[], object] = field(repr=False)
    path: str = ""
    says: str = ""
    error: type[MechdesignError] = MechdesignError


def assert_refused(mistakes: Iterable[Mistake]) -> None:
    """Fail with each mistake that passes, ends in another type, names another place or offers nothing to go on."""
    found = [(mistake.name, fault(mistake)[0]) for mistake in mistakes]
    assert found, "there is no mistake in the table"
    wrong = [f"{name}: {said}" for name, said in found if said]
    assert not wrong, "\n".join(wrong)


def fault(mistake: Mistake) -> tuple[str, str]:
    """Make a mistake; return the fault of its error, empty if there is none, and the message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            passed = mistake.make()
    except MechdesignError as error:
        return _fault(mistake, error), str(error)
    except Exception as error:
        return f"{type(error).__name__} is not an error of mechdesign", str(error)
    return "passes unnoticed", repr(passed)[:80]


def _fault(mistake: Mistake, error: MechdesignError) -> str:
    if not isinstance(error, mistake.error):
        return f"{type(error).__name__} is not {mistake.error.__name__}: {error}"
    if mistake.says not in str(error):
        return f"the message does not say {mistake.says}: {error}"
    path = str(getattr(error, "path", ""))
    if not path.startswith(mistake.path):
        return f"the place is {path}, not {mistake.path}"
    if isinstance(error, InputError) and not (path and (error.bound or error.remedy or error.value is not None)):
        return f"neither a value nor a bound nor a remedy: {error}"
    return ""


Row = tuple[str, Callable[[], object], str] | tuple[str, Callable[[], object], str, str]


def each(name: str, values: Iterable[Any], use: Callable[[Any], object], path: str, says: str = "") -> list[Row]:
    """Return a row for each wrong value."""
    return [(f"{name} {value!r}", lambda value=value: use(value), path, says) for value in values]


def assert_closed(rows: Iterable[Row]) -> None:
    """Fail with each mistake that is not refused at its place by an `InputError`."""
    mistakes = [Mistake(name, make, *rest, error=InputError) for name, make, *rest in rows]
    assert len({mistake.name for mistake in mistakes}) == len(mistakes), "two mistakes have one name"
    assert_refused(mistakes)


def assert_refused_at(table: Iterable[tuple[Any, ...]], error: type[MechdesignError] = InputError) -> None:
    """Demand of each row (function, path, part of the message) an error at that path with something to go on."""
    filled = list(table)
    assert filled, "there is no row in the table"
    faults = []
    for number, (make, path, *says) in enumerate(filled):
        mistake = Mistake(f"row {number}: {path}", make, path, "".join(says), error)
        found, message = fault(mistake)
        if found or not message.startswith(f"{path}:"):
            faults.append(f"{mistake.name}: {found or message}")
    assert not faults, "\n".join(faults)
