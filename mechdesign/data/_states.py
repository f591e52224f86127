"""Read a trace to release: the true state of each step, given by label, by index or by coordinates."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Integers, as_array
from mechdesign.base._check import as_list
from mechdesign.base._errors import InputError, Shown
from mechdesign.data import _left_out as reasons
from mechdesign.data._degrees import Error, errors_at, place_in, say_beyond
from mechdesign.data._labels import Names
from mechdesign.data._layout import cell, mark_of, names_of, to_nfc, withholding
from mechdesign.data._left_out import MOST_LEFT_OUT, LeftOut, RowError, as_share, describe_left_out
from mechdesign.data._text import as_float, check_column, columns_text, is_parquet, number, read_rows
from mechdesign.data._times import (
    Clock,
    Instant,
    SetClockError,
    TimeColumns,
    find_times,
    is_missing,
    order_of,
    read_with,
)
from mechdesign.data.resampling import Resampled, Sampling, sampled, seconds_text
from mechdesign.model._domain import Domain
from mechdesign.model._locate import DEGREES, PLANE, locate

States = str | os.PathLike[str] | Mapping[str, Sequence[object]] | Sequence[object] | NDArray[Any]
"""The true states of a trace: a file, columns by name, or a sequence of states or places."""

_Locate = Callable[[str, list[float]], int]

# Usual names of columns with the user, in lower case and letters only.
_USERS = ("user", "userid", "uid", "username", "person", "personid", "driver", "driverid")
_LATITUDES, _LONGITUDES = ("latitude", "lat"), ("longitude", "lon", "lng")
_FORMS = (
    "one state per line (a label or an index), or a header line with state, with x and y, or with latitude and "
    "longitude"
)


@dataclass(frozen=True, eq=False)
class Steps:
    """The true states of a trace, with their times.

    Attributes:
        states: Indices of the states, int64 of shape (steps,).
        times: UTC, datetime64[s] of shape (steps,), or None.
        notes: Sentences about the way in which a file was read.
        given: First and last time before resampling, or None if the trace was not resampled.

    >>> Steps(np.array([0, 1]), np.array([0, 60], dtype="datetime64[s]")).interval
    60.0
    """

    states: Integers
    times: NDArray[np.datetime64] | None = None
    notes: tuple[str, ...] = ()
    given: tuple[np.datetime64, np.datetime64] | None = None

    def resampled(self, sampling: Sampling) -> tuple[Steps, str]:
        """Return the states at even steps, and a sentence with the statistics.

        Args:
            sampling: The time step and the longest gap.

        Returns:
            The resampled trace, and the sentence.

        Raises:
            InputError: The trace has no times, or has a longer gap.
        """
        if self.times is None:
            raise InputError("trace", "has no times for resampling", bound="a column time")
        found = sampled(self.times, sampling)
        if len(found) > 1:
            end = int(found[0][-1])
            raise InputError(
                "trace",
                f"is interrupted after step {end}",
                value=cell(f"{self.times[end]}, then {self.times[int(found[1][0])]}"),
                bound=f"no gap longer than {seconds_text(sampling.gap or 0)}",
                remedy="release the parts as separate traces, or allow a longer gap",
            )
        taken = found[0]
        times = self.times[taken]
        if sampling.every is not None:
            times = self.times[0] + np.arange(len(taken)) * np.timedelta64(sampling.every, "s")
        statistics = Resampled(sampling, self.interval, len(self.states), len(np.unique(taken)), 0)
        return Steps(self.states[taken], times, self.notes, self.span), str(statistics)

    @property
    def span(self) -> tuple[np.datetime64, np.datetime64] | None:
        """The first and the last time of the trace before resampling; None without times."""
        if self.given is not None or self.times is None or not len(self.times):
            return self.given
        return self.times[0], self.times[-1]

    @property
    def interval(self) -> float | None:
        """The median time between successive states, in seconds; None if times are unknown."""
        if self.times is None or len(self.times) < 2:
            return None
        return float(np.median(np.diff(self.times).astype(np.int64)))


def as_steps(
    trace: States,
    domain: Domain,
    delimiter: str | None = None,
    *,
    time: str | None = None,
    date: str | None = None,
    time_format: str | None = None,
    time_zone: str | None = None,
    missing: float = MOST_LEFT_OUT,
) -> Steps:
    """Return the states of a trace, with their times if there are any.

    In a trace with times, a step with a missing time or state, or with an impossible latitude, is left out.
    `Steps.notes` counts these steps by reason. The times of a mapping are its column ``time``.

    Args:
        trace: A file or the states themselves, see `as_states`.
        domain: The states.
        delimiter: The character between columns of a file; recognised if None.
        time: Column of a file with the time. If None, a column with a usual name is used.
        date: Column with the date, if `time` contains only the time of day.
        time_format: Format of the times, see `read_checkins`.
        time_zone: Zone of times without a zone, see `read_checkins`.
        missing: The share of steps that may be left out, in [0, 1].

    Returns:
        The states and times.

    Raises:
        InputError: Too many steps are left out, or times are ambiguous or decrease (including fractions of seconds).

    >>> as_steps(["work", "home"], Domain.from_labels(["home", "work"])).states.tolist()
    [1, 0]
    """
    clock, share = Clock(time_format, zone=time_zone), as_share(missing)
    if isinstance(trace, str | os.PathLike):
        steps = _steps_in_file(Path(trace), domain, delimiter, (time, date), (time_format, time_zone), share)
    else:
        steps = _steps_in_memory(trace, domain, delimiter, clock, share)
    if steps.times is not None and not len(steps.times):
        raise InputError(
            "trace", "has no step with a time", remedy="omit the times; steps then keep the order of the file"
        )
    return steps


def _steps_in_memory(
    trace: Mapping[str, Sequence[object]] | Sequence[object] | NDArray[Any],
    domain: Domain,
    delimiter: str | None,
    clock: Clock,
    missing: float,
) -> Steps:
    given = None
    if isinstance(trace, Mapping):
        given = {str(name).strip().lower(): column for name, column in trace.items()}.get("time")
    if not isinstance(trace, Mapping) or given is None:
        return Steps(as_states(trace, domain, delimiter))
    form, rows = _extract_rows(trace)
    column = as_array(given, "times")
    if len(column) != len(rows):
        raise InputError("trace.time", "has the wrong length", value=len(column), bound=f"{len(rows)} times")
    texts = [_text_of(value) for value in (column.astype("datetime64[ns]") if column.dtype.kind == "M" else given)]
    names = Names.of(domain.labels)

    def read(clock: Clock) -> tuple[list[int], list[Instant], LeftOut, tuple[str, ...]]:
        kept: list[int] = []
        moments: list[Instant] = []
        left_out = LeftOut(missing)
        for step, (text, row) in enumerate(zip(texts, rows, strict=True)):
            try:
                moment = _moment(clock, text, None, f"trace.time[{step}]".__str__)
                _check_state(form, [_text_of(value) for value in row], names, errors_at(f"trace[{step}]"))
            except RowError as fault:
                left_out.add(fault)
            else:
                kept.append(step)
                moments.append(moment)
        return kept, moments, left_out, clock.notes

    kept, moments, left_out, notes = read_with(clock, read)
    _check_share(left_out, len(kept))
    if not kept:
        return Steps(np.zeros(0, dtype=np.int64), np.zeros(0, dtype="datetime64[s]"))
    chosen = {name: [column[step] for step in kept] for name, column in trace.items()}
    return Steps(as_states(chosen, domain, delimiter), _ascending(moments), (*notes, *_describe(left_out)))


def _text_of(value: object) -> str:
    """Return a value in memory as the text that a file would contain; "" for a missing value."""
    if value is None or value != value:
        return ""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _describe(left_out: LeftOut) -> tuple[str, ...]:
    return (describe_left_out(left_out.counts),) if left_out.counts else ()


def _check_share(left_out: LeftOut, kept: int) -> None:
    """Raise `InputError` if too many steps are left out, unless all steps lack a time, which the caller reports."""
    left_out.kept = kept
    if left_out.kept or set(left_out.counts) != {reasons.NO_TIME}:
        left_out.check()


def _moment(clock: Clock, text: str, day: str | None, where: Callable[[], str]) -> Instant:
    """Return the time of a step; raise `RowError` if it is missing or cannot be read."""
    try:
        moment = clock.moment(text, where, day)
    except InputError as error:
        reason = reasons.SET_CLOCK if isinstance(error, SetClockError) else reasons.UNREADABLE_TIME
        raise RowError(reason, error) from None
    if moment is None:
        raise RowError(reasons.NO_TIME, InputError(where(), "has no time", value=cell(text), bound="a date and time"))
    return moment


def _check_state(form: str, texts: Sequence[str], names: Names, error: Error) -> None:
    """Raise `RowError` if the state or place of a step is missing or malformed; an unknown state is accepted."""
    if form == "degrees":
        place_in((texts[0], texts[1]), DEGREES, error)
    elif form == "plane":
        for text, axis in zip(texts, PLANE, strict=False):
            if not math.isfinite(as_float(text) or 0.0) or as_float(text) is None:
                raise RowError(reasons.NO_PLACE, error(f"{axis} is not a finite number", cell(text), "a finite number"))
    elif texts[0] not in names.places and is_missing(texts[0]):
        raise RowError(reasons.NO_STATE, error("has no state", cell(texts[0]), "an index or a label"))


def _ascending(moments: Sequence[Instant]) -> NDArray[np.datetime64]:
    """Return instants as datetime64[s]; raise `InputError` if they decrease."""
    early = next((step for step in range(1, len(moments)) if moments[step] < moments[step - 1]), None)
    times = np.array([moment.seconds for moment in moments], dtype=np.int64).astype("datetime64[s]")
    if early is not None:
        remedy = "sort the steps by their times"
        problem = "is earlier than the step before it"
        raise InputError(f"trace, step {early}", problem, value=cell(str(times[early])), remedy=remedy)
    return times


def _steps_in_file(
    source: Path,
    domain: Domain,
    delimiter: str | None,
    named: tuple[str | None, str | None],
    written: tuple[str | None, str | None],
    missing: float,
) -> Steps:
    """Return the states and times in a file.

    `named` contains the columns with the time and the date, or None. `written` contains the format and the zone of
    times. The column called "time" must contain times. Other columns that are named like a time but cannot be read only
    cause a note.
    """
    rows = _rows_of(source, domain, delimiter)
    filled = [row for row in rows if row[1]]
    header = [field.strip() for field in filled[0][1]] if filled else []
    time, date = (None if name is None else to_nfc(name) for name in named)
    for column in filter(None, named):
        check_column(column, header, source)
    own = [name for name in header if name.lower() == "time"]
    time = own[0] if time is None and len(own) == 1 else time
    found = TimeColumns()
    if len(header) > 1:
        whole = [row for row in filled[1:] if len(row[1]) == len(header)]
        found = find_times(header, whole, written[0], time, date, missing=missing)
    if found.time is None:
        _require_unsaid({"time_format": written[0], "date": date, "time_zone": written[1]})
        notes = (*found.notes, *_unread_places(header), order_of([None], what="steps"))
        return Steps(_states_of(rows, source, domain), None, notes)
    clock = Clock(written[0], " and ".join(filter(None, (found.date, found.time))), zone=written[1])
    at_date = None if found.date is None else header.index(found.date)
    places = _columns([name.lower() for name in header])
    steps = _TimedRows(len(header), (header.index(found.time), at_date), places, Names.of(domain.labels))
    body = rows[rows.index(filled[0]) + 1 : len(rows) - next(k for k, row in enumerate(reversed(rows)) if row[1])]

    def read(clock: Clock) -> tuple[list[tuple[int, list[str]]], list[Instant], LeftOut, tuple[str, ...]]:
        kept, left_out = filled[:1], LeftOut(missing)
        moments: list[Instant] = []
        for line, row in body:
            try:
                moment = steps.moment(row, clock, f"{source}, line {line}")
            except RowError as fault:
                left_out.add(fault)
            else:
                kept.append((line, row))
                moments.append(moment)
        return kept, moments, left_out, clock.notes

    kept, moments, left_out, notes = read_with(clock, read)
    _check_share(left_out, len(moments))
    if not moments and len(filled) > 1:
        return Steps(np.zeros(0, dtype=np.int64), np.zeros(0, dtype="datetime64[s]"))
    times = _ascending(moments)
    notes = (*found.notes, *_unread_places(header), *notes, *_describe(left_out), order_of([times], "steps"))
    return Steps(_states_of(kept, source, domain), times, notes)


def _require_unsaid(given: Mapping[str, str | None]) -> None:
    """Raise `InputError` if an option about times is given without a column of times."""
    for key, value in given.items():
        if value is not None:
            raise InputError(key, "requires a column of times", value=value, remedy="name it: time")


class _TimedRows(NamedTuple):
    """A parser for rows of `width` fields, with the columns of time, date and state, and with the index of states."""

    width: int
    times: tuple[int, int | None]
    places: tuple[str, tuple[int, ...]]
    names: Names

    def moment(self, row: list[str], clock: Clock, where: str) -> Instant:
        """Return the time of a row; raise `RowError` if it cannot be read, or if the state is missing."""
        error = errors_at(where)
        if not row:
            raise RowError(reasons.BLANK, error("is blank", None, "a step in every line"))
        if len(row) != self.width:
            fault = error("has the wrong number of fields", len(row), f"{self.width} fields, as in the first line")
            raise RowError(reasons.FIELDS, fault)
        (at_time, at_date), (form, columns) = self.times, self.places
        moment = _moment(clock, row[at_time], None if at_date is None else row[at_date], where.__str__)
        _check_state(form, [row[column].strip() for column in columns], self.names, error)
        return moment


def _check_lengths(rows: Sequence[tuple[int, Sequence[str]]], source: Path) -> None:
    for line, row in rows:
        if len(row) != len(rows[0][1]):
            raise InputError(
                f"{source}, line {line}",
                "has the wrong number of fields",
                value=len(row),
                bound=f"{len(rows[0][1])} fields, as in the first line",
            )


def as_states(trace: States, domain: Domain, delimiter: str | None = None) -> Integers:
    """Return the state of each step, as indices into a domain.

    Args:
        trace: A file (see `read_states`), a sequence of indices (integers) or labels (strings), a mapping with the
            columns of a file, or an array of places. Places have the shape (steps, 2), with x and y in the unit of the
            domain.
        domain: The states.
        delimiter: The character between columns of a file; recognised if None.

    Returns:
        Indices, int64 of shape (steps,).

    Raises:
        InputError: A state is unknown, or a place is outside the grid; the path names the step.

    >>> as_states(["work", "home", 1], Domain.from_labels(["home", "work"])).tolist()
    [1, 0, 1]
    """
    if isinstance(trace, str | os.PathLike):
        return read_states(trace, domain, delimiter)
    form, rows = _extract_rows(trace)
    if not rows:
        raise InputError("trace", "contains no steps", bound="at least one state")
    named = [(f"trace[{step}]", row) for step, row in enumerate(rows)]
    if form == "state":
        names = Names.of(domain.labels)
        return np.array([names.find_in_python(_name(row[0], path), path) for path, row in named], dtype=np.int64)
    locate = _locator(domain, form, "trace")
    return np.array([locate(path, _place(row, path)) for path, row in named], dtype=np.int64)


def read_states(path: str | os.PathLike[str], domain: Domain, delimiter: str | None = None) -> Integers:
    r"""Read the state of each step from a file, as indices into a domain.

    A file without a header has one state per line: its label, or its index, unless labels are whole numbers. Otherwise
    a header line names the columns:

    - ``state``, with an optional ``label``;
    - ``x`` and ``y``, in the unit of the domain;
    - ``latitude`` and ``longitude`` (also ``lat``, ``lon``, ``lng``), in degrees.

    A place is mapped to its cell in a grid, or to the nearest member of another domain (the first of several nearest
    members).

    Args:
        path: File to read.
        domain: The states.
        delimiter: The character between columns; recognised if None.

    Returns:
        Indices, int64 of shape (steps,).

    Raises:
        InputError: A state is unknown, a place is outside the domain (see `Domain.cell_of`), a line is blank, or the
            file has no steps. The path of the error contains the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "trace.csv")
    ...     _ = file.write_text("state\nwork\nhome\n")
    ...     read_states(file, Domain.from_labels(["home", "work"])).tolist()
    [1, 0]
    """
    source = Path(path)
    return _states_of(_rows_of(source, domain, delimiter), source, domain)


def _rows_of(source: Path, domain: Domain, delimiter: str | None) -> list[tuple[int, list[str]]]:
    """Return the number and the fields of each line of a file; coordinates get decimal points."""
    known = {to_nfc(label) for label in domain.labels}

    def suits(row: list[str]) -> bool:
        one = row[0].strip() if len(row) == 1 else ""
        return bool(_columns([field.strip().lower() for field in row])[0]) or one in known or one.isdecimal()

    rows = list(read_rows(source, delimiter, blanks=True, suits=suits))
    if is_parquet(source):
        # In Parquet a blank row is a step, even at the end.
        rows = [(line, row or [""]) for line, row in rows]
    header = next((row for _, row in rows if row), [])
    form, columns = _columns([field.strip().lower() for field in header])
    if form:
        _require_one_user(header, [row for _, row in rows if len(row) == len(header)][1:], source)
    if form not in ("degrees", "plane"):
        return rows
    limits = (90.0, 360.0) if form == "degrees" else (np.inf, np.inf)
    body = [row for _, row in rows if len(row) == len(header)][1:]
    for column, limit in zip(columns, limits, strict=True):
        mark = mark_of([row[column] for row in body], f"{source}, column {header[column].strip()}", limit)
        for row in body:
            row[column] = mark.plain(row[column])
    return rows


def _require_one_user(header: Sequence[str], body: Sequence[Sequence[str]], source: Path) -> None:
    """Raise `InputError` if a column of users contains several users."""
    for column, name in enumerate(header):
        users = {row[column].strip() for row in body} - {""}
        if re.sub(r"[^a-z]", "", name.lower()) in _USERS and len(users) > 1:
            raise InputError(
                f"{source}, column {name.strip()}",
                "names several people",
                value=Shown(f"{len(users)} of them"),
                bound="one person: a trace and its budget belong to one person",
                remedy="release the lines of each person as a separate trace",
            )


def _unread_places(header: Sequence[str]) -> tuple[str, ...]:
    """Return a note if a file has states and places, because places are then ignored."""
    head = [field.strip().lower() for field in header]
    others = ["" if name == "state" else name for name in head]
    form, columns = _columns(others)
    if "state" not in head or not form:
        return ()
    return (f"states are read from the column state; {' and '.join(head[each] for each in columns)} are not read",)


def _states_of(rows: list[tuple[int, list[str]]], source: Path, domain: Domain) -> Integers:
    """Return the states in the lines of a file; `rows` contains the number and the fields of each line."""
    filled = [index for index, (_, row) in enumerate(rows) if row]
    if not filled:
        raise InputError(str(source), "is empty", bound=_FORMS)
    rows = rows[filled[0] : filled[-1] + 1]
    blank = next((line for line, row in rows if not row), None)
    if blank is not None:
        remedy = "delete the line if no state is missing there; otherwise release the parts as separate traces"
        raise InputError(f"{source}, line {blank}", "is blank", bound="a state in every line", remedy=remedy)
    names = Names.of(domain.labels)
    head = [field.strip().lower() for field in rows[0][1]]
    form, columns = _columns(head) if head[0] not in names.places or len(head) > 1 else ("", ())
    body = rows[1:] if form else rows
    if form == "state" and head.count("label") == 1 and body:
        # A released trace has both indices and labels. Labels identify the states even if they are numbers.
        label = head.index("label")
        if len(body[0][1]) > label and body[0][1][label].strip() in names.places:
            columns += (label,)
    if not form:
        if len(head) > 1:
            shown = Shown(columns_text(rows[0][1], ["state", *_LATITUDES, *_LONGITUDES]))
            raise InputError(f"{source}, line {rows[0][0]}", "has no column of states", value=shown, bound=_FORMS)
        form, columns = "state", (0,)
    if not body:
        raise InputError(str(source), "contains no steps", bound="at least one line below its header")
    _check_lengths(rows, source)
    fields = [(f"{source}, line {line}", [row[column].strip() for column in columns]) for line, row in body]
    with withholding():
        if form == "state":
            return np.array([_state(names, texts, where) for where, texts in fields], dtype=np.int64)
        locate = _locator(domain, form, f"{source}, line {rows[0][0]}")
        named = [rows[0][1][column].strip() for column in columns]
        places = [
            [_finite(text, f"{where}, column {name}") for name, text in zip(named, texts, strict=True)]
            for where, texts in fields
        ]
        if form == "degrees":
            say_beyond(source, np.array(places)[:, 1])
        return np.array([locate(where, place) for (where, _), place in zip(fields, places, strict=True)])


def _extract_rows(
    trace: Mapping[str, Sequence[object]] | Sequence[object] | NDArray[Any],
) -> tuple[str, list[list[object]]]:
    """Return the form of the states ("state", "degrees" or "plane"), and the values that state each step."""
    if isinstance(trace, Mapping):
        form, places = _columns([str(name).strip().lower() for name in trace])
        if not form:
            bound = "the column state, the columns x and y, or latitude and longitude"
            raise InputError("trace", "has no column of states", value=list(trace), bound=bound)
        every = list(trace.values())
        lengths = [len(every[place]) for place in places]
        if len(set(lengths)) != 1:
            raise InputError("trace", "has columns of different lengths", value=lengths)
        return form, [list(row) for row in zip(*(every[place] for place in places), strict=True)]
    rows: list[list[object]] = []
    for each in as_list(trace, "trace", "states, coordinates or labels, one for each step"):
        rows.append([each] if isinstance(each, str) or np.ndim(each) == 0 else list(each))
    return ("state" if all(len(row) == 1 for row in rows) else "plane"), rows


def _name(state: object, path: str) -> int | str:
    """Return a state as an argument of `Names.find_in_python`: an index or a label."""
    if isinstance(state, np.integer) or (isinstance(state, int) and not isinstance(state, bool)):
        return int(state)
    if isinstance(state, str):
        return str(state)
    raise InputError(path, "is not a secret", value=cell(str(state)), bound="a label (string) or an index (integer)")


def _state(names: Names, texts: Sequence[str], where: str) -> int:
    """Return the state in a line of a file, given by label or index; if both are given, they must agree."""
    found = names.find_in_file(texts[-1], where)
    if len(texts) > 1 and texts[0] not in (texts[-1], str(found)):
        raise InputError(where, "names two states", value=cell(", ".join(texts)), bound="a label and its index")
    return found


def _place(row: Sequence[object], path: str) -> list[float]:
    if len(row) != 2:
        raise InputError(path, "is not a place", value=Shown(f"{len(row)} numbers"), bound="two coordinates")
    return [_finite(str(value), path) for value in row]


def _columns(head: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return the form of the states and their columns; "" if the line is not a header."""

    def place(names: Sequence[str]) -> int | None:
        found = [index for index, name in enumerate(head) if name in names]
        return found[0] if len(found) == 1 else None

    degrees = [names_of("latitude", _LATITUDES), names_of("longitude", _LONGITUDES)]
    for form, wanted in (("state", [("state",)]), ("degrees", degrees), ("plane", [("x",), ("y",)])):
        columns = [place(names) for names in wanted]
        if None not in columns:
            return form, tuple(column for column in columns if column is not None)
    return "", ()


def _locator(domain: Domain, form: str, path: str) -> _Locate:
    """Return a function that finds the member at (x, y), or at (latitude, longitude) for the form "degrees"."""
    axes = DEGREES if form == "degrees" else PLANE
    area = domain.area(axes)
    if area is None:
        raise InputError(
            path,
            "gives coordinates that the domain does not have",
            value=Shown("latitude and longitude" if form == "degrees" else "x and y"),
            bound="states by label or index, or a domain with these coordinates",
        )
    if area.is_scattered and area.reach is None:
        problem = "gives coordinates, but the domain has no two distinct places, so nothing limits the distance"
        raise InputError(path, problem, bound="states by index or label")

    def find_member(path: str, place: list[float]) -> int:
        try:
            return int(locate(area, (np.array(place[0]), np.array(place[1])))[0])
        except InputError as error:
            remedy = error.remedy if "swapped" in error.remedy else "remove these steps, or use a larger domain"
            raise InputError(path, error.problem, value=error.value, bound=error.bound, remedy=remedy) from None

    return find_member


def _finite(text: str, path: str) -> float:
    value = number(text, path)
    if not np.isfinite(value):
        raise InputError(path, "is not finite", value=cell(text), bound="a finite number")
    return value
