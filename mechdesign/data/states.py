"""Read the trace that is to be released: the true state of each step, by index, by label or by place."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.data.resampling import Resampled, Sampling, sampled, seconds_text
from mechdesign.data.text import number, read_rows
from mechdesign.data.traces import seconds_of
from mechdesign.errors import InputError
from mechdesign.model.domain import Domain
from mechdesign.model.places import DEGREES, PLANE, locate

__all__ = ["States", "Steps", "as_states", "as_steps", "index_of", "read_states"]


def __dir__() -> list[str]:
    return sorted(__all__)


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


@dataclass(frozen=True, eq=False)
class Steps:
    """The true states of a trace: indices, int64 of shape (steps,), and when they were, datetime64[s], or None."""

    states: Integers
    times: NDArray[np.datetime64] | None = None

    def resampled(self, sampling: Sampling) -> tuple[Steps, str]:
        """Return the states at even steps, and a sentence about it; raise `InputError` without times, or at a gap."""
        if self.times is None:
            raise InputError("trace", "has no times to resample by", bound="a column time")
        found = sampled(self.times, sampling)
        if len(found) > 1:
            end = int(found[0][-1])
            raise InputError(
                "trace",
                f"is interrupted after {self.times[end]}: the next state is that of {self.times[int(found[1][0])]}",
                bound=f"no gap longer than {seconds_text(sampling.gap or 0)}",
                remedy="release the parts as traces of their own, or give a longer gap",
            )
        taken = found[0]
        times = self.times[taken]
        if sampling.every is not None:
            times = self.times[0] + np.arange(len(taken)) * np.timedelta64(sampling.every, "s")
        facts = Resampled(sampling, self.interval, len(self.states), len(np.unique(taken)), 0)
        return Steps(self.states[taken], times), str(facts)

    @property
    def interval(self) -> float | None:
        """The median time between two states, in seconds; None where it is not known."""
        if self.times is None or len(self.times) < 2:
            return None
        return float(np.median(np.diff(self.times).astype(np.int64)))


def as_steps(trace: States, domain: Domain, delimiter: str = ",") -> Steps:
    """Return the states of a trace, see `as_states`, with the times in its column ``time``, where it has one."""
    times: NDArray[np.datetime64] | None = None
    if isinstance(trace, str | os.PathLike):
        source = Path(trace)
        rows = iter(read_rows(source, delimiter))
        head = [field.strip().lower() for field in next(rows, (0, []))[1]]
        if len(head) > 1 and head.count("time") == 1:
            at_time = head.index("time")
            found = [_when(row, at_time, f"{source}, line {line}") for line, row in rows]
            times = np.array(found, dtype=np.int64).astype("datetime64[s]")
    elif isinstance(trace, Mapping):
        given = {str(name).strip().lower(): column for name, column in trace.items()}.get("time")
        if given is not None:
            try:
                times = np.array(given, dtype="datetime64[s]")
            except (ValueError, TypeError) as error:
                raise InputError("trace.time", f"holds no times ({error})", bound="dates and times") from error
    states = as_states(trace, domain, delimiter)
    if times is not None and len(times) != len(states):
        raise InputError("trace.time", "differs in length", value=len(times), bound=f"{len(states)} times")
    if times is not None and (early := np.flatnonzero(np.diff(times) < np.timedelta64(0, "s"))).size:
        where = int(early[0]) + 1
        raise InputError(f"trace, step {where}", "is before the step that precedes it", value=str(times[where]))
    return Steps(states, times)


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


def _when(row: Sequence[str], place: int, where: str) -> int:
    def error(problem: str, value: object, bound: str) -> InputError:
        return InputError(where, problem, value=value, bound=bound)

    return seconds_of(row[place] if place < len(row) else "", "time", error)


def _finite(text: str, path: str) -> float:
    value = number(text, path)
    if not np.isfinite(value):
        raise InputError(path, "is not finite", value=text, bound="a finite number")
    return value
