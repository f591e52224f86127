"""Read the trace that is to be released: the true state of each step, by index, by label or by place."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.data.forms import cell, withholding
from mechdesign.data.resampling import Resampled, Sampling, sampled, seconds_text
from mechdesign.data.text import check_column, columns_text, number, read_rows
from mechdesign.data.time_columns import TimeColumns, find_times
from mechdesign.data.times import Clock, order_of
from mechdesign.errors import InputError, Shown
from mechdesign.model.domain import Domain
from mechdesign.model.places import DEGREES, PLANE, locate
from mechdesign.validation import as_array, as_list

__all__ = ["Names", "States", "Steps", "as_states", "as_steps", "read_states"]


def __dir__() -> list[str]:
    return sorted(__all__)


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
States = str | os.PathLike[str] | Mapping[str, Sequence[object]] | Sequence[object] | NDArray[Any]
"""The true states of a trace: a file, columns by name, or one state, or place, after the other."""

_Locate = Callable[[str, list[float]], int]

# Numbers with as many digits as coordinates have: two of them in a text may be a place.
_COORDINATE = re.compile(r"[0-9]{1,4}[.,][0-9]{2,}|[0-9]{5,}")
_LONGEST = 40

_LATITUDES, _LONGITUDES = ("latitude", "lat"), ("longitude", "lon", "lng")
_FORMS = (
    "a state a line (an index or a label), or a header line with the column state, the columns x and y, or latitude "
    "and longitude"
)


@dataclass(frozen=True, eq=False)
class Steps:
    """The true states of a trace: indices, int64 of shape (steps,), and when they were, datetime64[s], or None.

    `notes` say of a file how its times were read, `given` when the first and the last state were before even steps were
    made of them.
    """

    states: Integers
    times: NDArray[np.datetime64] | None = None
    notes: tuple[str, ...] = ()
    given: tuple[np.datetime64, np.datetime64] | None = None

    def resampled(self, sampling: Sampling) -> tuple[Steps, str]:
        """Return the states at even steps, and a sentence about it; raise `InputError` without times, or at a gap."""
        if self.times is None:
            raise InputError("trace", "has no times to resample by", bound="a column time")
        found = sampled(self.times, sampling)
        if len(found) > 1:
            end = int(found[0][-1])
            raise InputError(
                "trace",
                f"is interrupted after step {end}",
                value=cell(f"{self.times[end]}, then {self.times[int(found[1][0])]}"),
                bound=f"no gap longer than {seconds_text(sampling.gap or 0)}",
                remedy="release the parts as traces of their own, or give a longer gap",
            )
        taken = found[0]
        times = self.times[taken]
        if sampling.every is not None:
            times = self.times[0] + np.arange(len(taken)) * np.timedelta64(sampling.every, "s")
        facts = Resampled(sampling, self.interval, len(self.states), len(np.unique(taken)), 0)
        return Steps(self.states[taken], times, self.notes, self.span), str(facts)

    @property
    def span(self) -> tuple[np.datetime64, np.datetime64] | None:
        """The first and the last time of the trace as it was given; None without times."""
        if self.given is not None or self.times is None or not len(self.times):
            return self.given
        return self.times[0], self.times[-1]

    @property
    def interval(self) -> float | None:
        """The median time between two states, in seconds; None where it is not known."""
        if self.times is None or len(self.times) < 2:
            return None
        return float(np.median(np.diff(self.times).astype(np.int64)))


def as_steps(
    trace: States,
    domain: Domain,
    delimiter: str = ",",
    *,
    time: str | None = None,
    date: str | None = None,
    time_format: str | None = None,
) -> Steps:
    """Return the states of a trace, see `as_states`, with their times, where it has some.

    The times of a file are in the column `time`, or else in one with a usual name; `date` names the column with the
    date, where `time` holds the time of day only, and `time_format` says how times are written, as
    `mechdesign.data.traces.read_checkins` takes it. Those of a mapping are in ``time``. A step whose time is missing is
    left out. Raises `InputError` for a time that cannot be read, or may be two, and for times that descend.
    """
    form = Clock(time_format)
    if isinstance(trace, str | os.PathLike):
        steps = _steps_in_file(Path(trace), domain, delimiter, (time, date), time_format)
    else:
        times, states = None, as_states(trace, domain, delimiter)
        if isinstance(trace, Mapping):
            given = {str(name).strip().lower(): column for name, column in trace.items()}.get("time")
            times = None if given is None else _moments(given, form)
        if times is not None and len(times) != len(states):
            raise InputError("trace.time", "differs in length", value=len(times), bound=f"{len(states)} times")
        known = np.ones(len(states), dtype=np.bool_) if times is None else ~np.isnat(times)
        steps = Steps(states[known], None if times is None else times[known])
    times = steps.times
    if times is not None and not len(times):
        raise InputError("trace", "has no step with a time", remedy="leave the times out: the order is the file's")
    if times is not None and (early := np.flatnonzero(np.diff(times) < np.timedelta64(0, "s"))).size:
        where = int(early[0]) + 1
        raise InputError(f"trace, step {where}", "is before the step that precedes it", value=cell(str(times[where])))
    return steps


def _steps_in_file(
    source: Path, domain: Domain, delimiter: str, named: tuple[str | None, str | None], form: str | None
) -> Steps:
    """Return the states and times in a file; `named` are the columns with the time and the date, where they are known.

    A column called time must be one; others are told of where they cannot be read.
    """
    rows = list(read_rows(source, delimiter, blanks=True))
    filled = [row for row in rows if row[1]]
    header = [field.strip() for field in filled[0][1]] if filled else []
    time, date = named
    for column in filter(None, named):
        check_column(column, header, source)
    own = [name for name in header if name.lower() == "time"]
    time = own[0] if time is None and len(own) == 1 else time
    found = TimeColumns()
    if len(header) > 1:
        _check_lengths(filled, source)
        found = find_times(header, filled[1:], form, time, date)
    if found.time is None:
        for key, value in (("time_format", form), ("date", date)):
            if value is not None:
                raise InputError(key, "does not go without a column of times", value=value, remedy="name it: time")
        return Steps(_states_of(rows, source, domain), None, (*found.notes, order_of([None], what="steps")))
    clock = Clock(form, " and ".join(filter(None, (found.date, found.time))))
    at_time, at_date = header.index(found.time), None if found.date is None else header.index(found.date)
    kept, seconds = filled[:1], []
    for line, row in filled[1:]:
        day = None if at_date is None else row[at_date]
        moment = clock.seconds(row[at_time], f"{source}, line {line}".__str__, day)
        if moment is not None:
            kept.append((line, row))
            seconds.append(moment)
    clock.check()
    times = np.array(seconds, dtype=np.int64).astype("datetime64[s]")
    if not seconds and len(filled) > 1:
        return Steps(np.zeros(0, dtype=np.int64), times)
    notes = (*found.notes, order_of([times], len(filled) - len(kept), "steps"))
    return Steps(_states_of(kept, source, domain), times, notes)


def _check_lengths(rows: Sequence[tuple[int, Sequence[str]]], source: Path) -> None:
    for line, row in rows:
        if len(row) != len(rows[0][1]):
            raise InputError(
                f"{source}, line {line}",
                "has the wrong number of fields",
                value=len(row),
                bound=f"{len(rows[0][1])} as in the first line",
            )


def _moments(given: Any, clock: Clock) -> NDArray[np.datetime64]:
    """Return the moments in a column in memory, NaT where they are missing: dates, or what a file may hold."""
    column = as_array(given, "times")
    if column.dtype.kind == "M":
        return column.astype("datetime64[s]")
    moments = []
    for step, value in enumerate(given):
        text = value.isoformat() if hasattr(value, "isoformat") else str(value)
        seconds = clock.seconds(text, f"trace.time[{step}]".__str__)
        moments.append(np.datetime64("NaT") if seconds is None else np.datetime64(seconds, "s"))
    clock.check()
    return np.array(moments, dtype="datetime64[s]")


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
        names = Names.of(domain.labels)
        return np.array([names.index(_name(row[0]), path) for path, row in named], dtype=np.int64)
    locate = _locator(domain, form, "trace")
    return np.array([locate(path, _place(row, path)) for path, row in named], dtype=np.int64)


def read_states(path: str | os.PathLike[str], domain: Domain, delimiter: str = ",") -> Integers:
    """Return the state of each step, int64 of shape (steps,): indices into `domain`.

    A file without a header has a state a line, its label or its index. With a header, the column ``state`` is read
    likewise; or ``x`` and ``y``, in the unit of the domain; or ``latitude`` and ``longitude`` (also ``lat``, ``lon``,
    ``lng``), in degrees. Other columns are left alone. A place is the cell of a grid that it lies in, and the nearest
    member of any other domain, the first of equals. Raises `InputError` naming the line and the value: for an unknown
    state, for a place outside as `Domain.cell_of` has it, for a blank line before the last state, and for a file that
    holds no steps.
    """
    source = Path(path)
    return _states_of(list(read_rows(source, delimiter, blanks=True)), source, domain)


def _states_of(rows: list[tuple[int, list[str]]], source: Path, domain: Domain) -> Integers:
    """Return the states in the lines of a file, by number and fields."""
    filled = [index for index, (_, row) in enumerate(rows) if row]
    if not filled:
        raise InputError(str(source), "is empty", bound=_FORMS)
    rows = rows[filled[0] : filled[-1] + 1]
    blank = next((line for line, row in rows if not row), None)
    if blank is not None:
        remedy = "delete the line if no state is missing there; else release the parts as traces of their own"
        raise InputError(f"{source}, line {blank}", "is blank", bound="a state in every line", remedy=remedy)
    names = Names.of(domain.labels)
    head = [field.strip().lower() for field in rows[0][1]]
    form, columns = _columns(head) if head[0] not in names.places or len(head) > 1 else ("", ())
    body = rows[1:] if form else rows
    if not form:
        if len(head) > 1:
            shown = Shown(columns_text(rows[0][1], ["state", *_LATITUDES, *_LONGITUDES]))
            raise InputError(f"{source}, line {rows[0][0]}", "names no states", value=shown, bound=_FORMS)
        form, columns = "state", (0,)
    if not body:
        raise InputError(str(source), "holds no steps", bound="at least one line below its header")
    _check_lengths(rows, source)
    fields = [(f"{source}, line {line}", [row[column].strip() for column in columns]) for line, row in body]
    with withholding():
        if form == "state":
            return np.array([names.index(texts[0], where) for where, texts in fields], dtype=np.int64)
        locate = _locator(domain, form, f"{source}, line {rows[0][0]}")
        named = [rows[0][1][column].strip() for column in columns]
        places = [
            [_finite(text, f"{where}, column {name}") for name, text in zip(named, texts, strict=True)]
            for where, texts in fields
        ]
        return np.array([locate(where, place) for (where, _), place in zip(fields, places, strict=True)])


@dataclass(frozen=True)
class Names:
    """The names of members: their labels, and their indices.

    Attributes:
        places: the index of every label.
        numbers: whether all labels are numbers. A text that is no label is then not taken for an index.
    """

    places: Mapping[str, int]
    numbers: bool

    @classmethod
    def of(cls, labels: Sequence[str]) -> Names:
        """Return the names of members with these labels, in order."""
        return cls(
            {label: index for index, label in enumerate(labels)}, bool(labels) and all(map(str.isdecimal, labels))
        )

    def index(self, name: int | str, path: str) -> int:
        """Return the index of a member: a text is its label or, unless all labels are numbers, its index.

        Raises InputError, naming `path`, for any other text, and for an integer that is not an index.
        """
        if isinstance(name, str) and name in self.places:
            return self.places[name]
        digits = isinstance(name, str) and name.isascii() and name.isdecimal() and len(name) < 20
        index = int(name) if digits or isinstance(name, int) else -1
        if not 0 <= index < len(self.places):
            bound = f"a label, or an index from 0 to {len(self.places) - 1}"
            raise InputError(path, "is not a secret", value=_shown(name), bound=bound)
        if digits and self.numbers:
            problem = "is no label; it is not taken for an index, since all labels are numbers"
            raise InputError(path, problem, value=_shown(name), bound="a label")
        return index


def _shown(name: int | str) -> int | str:
    """Return what an error shows of an argument or a key: the form of a text that may hold true places."""
    places = isinstance(name, str) and (len(name) > _LONGEST or len(_COORDINATE.findall(name)) > 1)
    return cell(str(name)) if places else name


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
    for each in as_list(trace, "trace", "states, coordinates or labels, one for each step"):
        rows.append([each] if isinstance(each, str) or np.ndim(each) == 0 else list(each))
    return ("state" if all(len(row) == 1 for row in rows) else "plane"), rows


def _name(state: object) -> int | str:
    """Return a state as `Names.index` takes it: an index, or a label."""
    if isinstance(state, np.integer) or (isinstance(state, int) and not isinstance(state, bool)):
        return int(state)
    return str(state)


def _place(row: Sequence[object], path: str) -> list[float]:
    if len(row) != 2:
        raise InputError(path, "is not a place", value=Shown(f"{len(row)} numbers"), bound="two coordinates")
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
    area = domain.area(axes)
    if area is None:
        raise InputError(
            path,
            "gives places, and the domain has none of this kind",
            value=Shown("latitude and longitude" if form == "degrees" else "x and y"),
            bound="states by index or label, or a domain with such places",
        )
    if area.is_scattered and area.reach is None:
        problem = "gives places, and the domain has no two places apart that tell how far they may be"
        raise InputError(path, problem, bound="states by index or label")

    def found(path: str, place: list[float]) -> int:
        try:
            return int(locate(area, (np.array(place[0]), np.array(place[1])))[0])
        except InputError as error:
            remedy = error.remedy if "swapped" in error.remedy else "leave such steps out, or use a larger domain"
            raise InputError(path, error.problem, value=error.value, bound=error.bound, remedy=remedy) from None

    return found


def _finite(text: str, path: str) -> float:
    value = number(text, path)
    if not np.isfinite(value):
        raise InputError(path, "is not finite", value=cell(text), bound="a finite number")
    return value
