"""Read the trace that is to be released: the true state of each step, by index, by label or by place."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.data.text import number, read_rows
from mechdesign.errors import InputError
from mechdesign.model.domain import Domain
from mechdesign.model.places import DEGREES, PLANE, locate

__all__ = ["States", "as_states", "index_of", "read_states"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
States = str | os.PathLike[str] | Mapping[str, Sequence[object]] | Sequence[object] | NDArray[Any]
"""The true states of a trace: a file, columns by name, or one state, or place, after the other."""

_Locate = Callable[[str, list[float]], int]

_LATITUDES, _LONGITUDES = ("latitude", "lat"), ("longitude", "lon", "lng")
_FORMS = (
    "a state a line (an index or a label), or a header line with the column state, the columns x and y, or latitude "
    "and longitude"
)


def as_states(trace: States, domain: Domain, delimiter: str = ",") -> Integers:
    """Return the state of each step, int64 of shape (steps,): indices into `domain`.

    Args:
        trace: A file, see `read_states`; indices or labels; places, an array (steps, 2) of x and y in the unit of the
            domain; or a mapping with the columns that a file may have.
        domain: The states.
        delimiter: The character between columns of a file.

    Raises:
        InputError: A state is not known, or a place is outside the grid; the path names the step.
    """
    if isinstance(trace, str | os.PathLike):
        return read_states(trace, domain, delimiter)
    form, rows = _given(trace)
    if not rows:
        raise InputError("trace", "holds no steps", bound="at least one state")
    named = [(f"trace[{step}]", row) for step, row in enumerate(rows)]
    if form == "state":
        places = {label: index for index, label in enumerate(domain.labels)}
        return np.array([index_of(_name(row[0]), places, path) for path, row in named], dtype=np.int64)
    locate = _locator(domain, form, "trace")
    return np.array([locate(path, _place(row, path)) for path, row in named], dtype=np.int64)


def read_states(path: str | os.PathLike[str], domain: Domain, delimiter: str = ",") -> Integers:
    """Return the state of each step, int64 of shape (steps,): indices into `domain`.

    A file without a header has a state a line, its label or its index. With a header, the column ``state`` is read
    likewise; or ``x`` and ``y``, in the unit of the domain; or ``latitude`` and ``longitude`` (also ``lat``, ``lon``,
    ``lng``), in degrees. Other columns are left alone. A place is the cell of a grid that it lies in, and the nearest
    member of any other domain, the first of equals. Raises `InputError` naming the line and the value: for an unknown
    state, for a place outside the grid, and for a file without steps.
    """
    source = Path(path)
    rows = list(read_rows(source, delimiter))
    if not rows:
        raise InputError(str(source), "is empty", bound=_FORMS)
    places = {label: index for index, label in enumerate(domain.labels)}
    head = [field.strip().lower() for field in rows[0][1]]
    form, columns = _columns(head) if head[0] not in places or len(head) > 1 else ("", ())
    body = rows[1:] if form else rows
    if not form:
        if len(head) > 1:
            raise InputError(f"{source}, line {rows[0][0]}", "names no states", value=rows[0][1], bound=_FORMS)
        form, columns = "state", (0,)
    if not body:
        raise InputError(str(source), "holds no steps", bound="at least one line below its header")
    for line, row in body:
        if len(row) != len(head):
            raise InputError(
                f"{source}, line {line}",
                "has the wrong number of fields",
                value=len(row),
                bound=f"{len(head)} as in the first line",
            )
    fields = [(f"{source}, line {line}", [row[column].strip() for column in columns]) for line, row in body]
    if form == "state":
        return np.array([index_of(texts[0], places, where) for where, texts in fields], dtype=np.int64)
    locate = _locator(domain, form, f"{source}, line {rows[0][0]}")
    return np.array([locate(where, [_finite(text, where) for text in texts]) for where, texts in fields])


def index_of(name: int | str, places: Mapping[str, int], path: str) -> int:
    """Return the index of a member given by its label or its index; `places` holds the index of every label."""
    if isinstance(name, str) and name in places:
        return places[name]
    index = int(name) if isinstance(name, int) or (name.isascii() and name.isdecimal() and len(name) < 20) else -1
    if not 0 <= index < len(places):
        raise InputError(path, "is not a secret", value=name, bound=f"a label, or an index from 0 to {len(places) - 1}")
    return index


def _given(trace: Mapping[str, Sequence[object]] | Sequence[object] | NDArray[Any]) -> tuple[str, list[list[object]]]:
    """Return how states are given, and what is given of each step."""
    if isinstance(trace, Mapping):
        form, places = _columns([str(name).strip().lower() for name in trace])
        if not form:
            bound = "the column state, the columns x and y, or latitude and longitude"
            raise InputError("trace", "names no states", value=list(trace), bound=bound)
        every = list(trace.values())
        lengths = [len(every[place]) for place in places]
        if len(set(lengths)) != 1:
            raise InputError("trace", "has columns of different lengths", value=lengths)
        return form, [list(row) for row in zip(*(every[place] for place in places), strict=True)]
    rows: list[list[object]] = []
    for each in trace:
        rows.append([each] if isinstance(each, str) or np.ndim(each) == 0 else list(each))  # type: ignore[arg-type]
    return ("state" if all(len(row) == 1 for row in rows) else "plane"), rows


def _name(state: object) -> int | str:
    """Return a state as `index_of` takes it: an index, or a label."""
    if isinstance(state, np.integer) or (isinstance(state, int) and not isinstance(state, bool)):
        return int(state)
    return str(state)


def _place(row: Sequence[object], path: str) -> list[float]:
    if len(row) != 2:
        raise InputError(path, "is not a place", value=list(row), bound="two coordinates")
    return [_finite(str(value), path) for value in row]


def _columns(head: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return how states are given, and in which columns; nothing where the line is no header."""

    def place(names: Sequence[str]) -> int | None:
        found = [index for index, name in enumerate(head) if name in names]
        return found[0] if len(found) == 1 else None

    for form, wanted in (("state", [("state",)]), ("degrees", [_LATITUDES, _LONGITUDES]), ("plane", [("x",), ("y",)])):
        columns = [place(names) for names in wanted]
        if None not in columns:
            return form, tuple(column for column in columns if column is not None)
    return "", ()


def _locator(domain: Domain, form: str, path: str) -> _Locate:
    """Return the function that finds the member at a place: (x, y), or (latitude, longitude) in the form "degrees"."""
    axes = DEGREES if form == "degrees" else PLANE
    known, borders = domain.places(axes), domain.borders(axes)
    if known is None:
        raise InputError(
            path,
            "gives places, and the domain has none of this kind",
            value="latitude and longitude" if form == "degrees" else "x and y",
            bound="states by index or label, or a domain with such places",
        )

    def found(path: str, place: list[float]) -> int:
        try:
            return int(locate(known, borders, axes, (np.array(place[0]), np.array(place[1])))[0])
        except InputError as error:
            remedy = "leave such steps out, or use a larger grid"
            raise InputError(path, error.problem, value=error.value, bound=error.bound, remedy=remedy) from None

    return found


def _finite(text: str, path: str) -> float:
    value = number(text, path)
    if not np.isfinite(value):
        raise InputError(path, "is not finite", value=text, bound="a finite number")
    return value
