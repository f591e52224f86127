"""Trajectories at even time steps, cut at long gaps, and their visits to the cells of a grid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, Integers, as_floats, as_indices, read_only, require
from mechdesign.base._check import as_integer, as_list, require_kind
from mechdesign.base._errors import InputError, Shown
from mechdesign.base._names import named, require_one_index
from mechdesign.data.labels import Names
from mechdesign.data.table import are_no_times
from mechdesign.model._domain import BoundingBox, Domain
from mechdesign.model._locate import INTERCHANGED, PLANE, interval, locate, wrap_longitudes

Times = NDArray[np.datetime64]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The points of one user, in order of time.

    Attributes:
        user: Name of the user.
        latitude: Degrees, float64 of shape (k,), k ≥ 1, read-only.
        longitude: Degrees in [-180, 180], float64 of shape (k,), read-only.
        time: UTC, datetime64[s] of shape (k,), read-only; None if only the order is known.
        ties: The number of points at another place than the point before, at the same time, in an order that the data
            do not tell. Counts of steps refuse them.

    Raises:
        InputError: A value is out of range, or lengths differ.

    >>> len(Trajectory("ada", [46.9, 47.0], [7.4, 7.5]))
    2
    """

    user: str
    latitude: Floats
    longitude: Floats
    time: Times | None = None
    ties: int = 0

    def __post_init__(self) -> None:
        """Check ranges and lengths, and freeze the arrays."""
        if not isinstance(self.user, str) or not self.user:
            raise InputError("user", "is not a name", value=self.user, bound="a text that is not empty")
        require_one_index({name: getattr(self, name) for name in ("latitude", "longitude", "time")})
        for name, limit in (("latitude", 90), ("longitude", 180)):
            degrees = as_floats(getattr(self, name), name, "(k,)")
            require(np.abs(degrees) <= limit, degrees, name, f"between -{limit} and {limit} degrees")
            object.__setattr__(self, name, degrees)
        k = len(self.latitude)
        if k == 0:
            raise InputError("latitude", f"the trace of user {self.user!r} is empty", bound="at least one point")
        if len(self.longitude) != k:
            raise InputError("longitude", "has another length than latitude", value=len(self.longitude), bound=f"{k}")
        as_integer(self.ties, "ties", 0)
        if self.time is not None:
            if named(self.time, "time", dtype=object).dtype.kind in "biuf":
                bound = "datetime64: np.array(seconds, dtype='datetime64[s]') of seconds since 1970"
                raise InputError("time", "contains numbers", bound=bound)
            try:
                given = np.asarray(self.time, dtype="datetime64")
            except (ValueError, TypeError, OverflowError):
                raise InputError("time", "contains no times", bound="dates and times, as NumPy reads them") from None
            if given.shape != (k,):
                raise InputError("time", "has the wrong shape", value=given.shape, bound=f"({k},)")
            require(~are_no_times(given), given, "time", "a date and time of the years 1 to 9999")
            time = np.array(given, dtype="datetime64[s]")
            require(np.diff(time, prepend=time[:1]) >= np.timedelta64(0), time, "time", "not before the time before")
            read_only(time)
            object.__setattr__(self, "time", time)

    def __len__(self) -> int:
        return len(self.latitude)


@dataclass(frozen=True, eq=False)
class Visits:
    """The cells of a grid that users visited.

    A stretch is a sequence of consecutive points of one user inside the box of the grid.

    Attributes:
        cells: Cell indices of each stretch, int64, read-only.
        users: User of each stretch.
        inside: Number of points inside the box.
        outside: Number of points outside the box.
        domain: The grid.
        times: Times of each stretch, datetime64[s], or None; empty if no times are known.
        exits: Whether the user left the box after each stretch; empty if unknown.
        ties: The number of points whose order is unknown, see `Trajectory.ties`.

    Raises:
        InputError: Lengths differ, or a cell index is out of range.

    >>> domain = Domain.geographic_grid(2, 1, south=46, north=47, west=7, east=9)
    >>> visits = Visits((np.array([0, 1, 1]),), ("ada",), inside=3, outside=0, domain=domain)
    >>> visits.counts().tolist()
    [1, 2]
    """

    cells: tuple[Integers, ...]
    users: tuple[str, ...]
    inside: int
    outside: int
    domain: Domain
    times: tuple[Times | None, ...] = ()
    exits: tuple[bool, ...] = ()
    ties: int = 0
    # For each user, the indices of the user's stretches in `cells`.
    _stretches: dict[str, list[int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check and freeze the cells, and index the stretches by user."""
        require_kind(self.domain, Domain, "domain", "a Domain")
        as_list(self.cells, "cells", "a list of traces, each a list of cell indices")
        as_list(self.users, "users", "a list of names")
        # Copy each stretch: a view would be writable, and would keep the whole trace in memory.
        cells = tuple(
            as_indices(stretch, f"cells[{index}]", self.domain.size) for index, stretch in enumerate(self.cells)
        )
        for stretch in cells:
            read_only(stretch)
        object.__setattr__(self, "cells", cells)
        if len(self.cells) != len(self.users):
            raise InputError(
                "users", "has another length than cells", value=len(self.users), bound=f"{len(self.cells)} users"
            )
        if self.times and [None if each is None else len(each) for each in self.times] != [
            None if each is None else len(stretch) for each, stretch in zip(self.times, self.cells, strict=False)
        ]:
            raise InputError("times", "do not match the cells", value=len(self.times), bound="a time for each point")
        if self.exits and len(self.exits) != len(self.cells):
            raise InputError(
                "exits", "have another length than cells", value=len(self.exits), bound=f"{len(self.cells)} stretches"
            )
        stretches: dict[str, list[int]] = {}
        for index, user in enumerate(self.users):
            stretches.setdefault(user, []).append(index)
        object.__setattr__(self, "_stretches", stretches)

    def of(self, user: str) -> tuple[Integers, ...]:
        """Return the stretches of one user, in order.

        Args:
            user: Name of the user.

        Returns:
            Cell indices of each stretch.

        Raises:
            InputError: The user has no visits.
        """
        if user not in self._stretches:
            bound = f"one of the {len(self._stretches)} users with visits"
            remedy = "" if isinstance(user, str) else "give the name as a string"
            raise InputError("user", "has no visits", value=user, bound=bound, remedy=remedy)
        return tuple(self.cells[index] for index in self._stretches[user])

    def require_order(self) -> None:
        """Raise `InputError` if the order of some points is unknown, so that steps cannot be counted."""
        if self.ties:
            raise InputError(
                "traces",
                f"have {self.ties} points at the time of the point before, and rows of one person neither ascend nor "
                "descend in time: their order is unknown",
                bound="rows in the order of time, or times that differ",
                remedy="sort the rows of each person by time, or read finer times",
            )

    def counts(self, user: str | None = None) -> Integers:
        """Return the number of visits to each cell.

        Args:
            user: Count the visits of this user only; None counts all users.

        Returns:
            Counts, int64 of shape (n,).
        """
        total = np.zeros(self.domain.size, dtype=np.int64)
        for cells in self.cells if user is None else self.of(user):
            np.add.at(total, cells, 1)
        return total


def to_grid(traces: Iterable[Trajectory], domain: Domain) -> Visits:
    """Return the visits of traces to the cells of a geographic grid.

    Column k covers the longitudes from west + k · (east − west) / columns up to, but not including, the next border.
    Only the last column includes its eastern border. Rows are defined in the same way, from south to north.

    Points outside the box are dropped, and a trace is split where it leaves the box. The points before and after form
    separate stretches, so no step is invented. `Visits.exits` marks the stretches that end in this way.

    Args:
        traces: Trajectories.
        domain: A grid that `Domain.geographic_grid` returned.

    Returns:
        The visits.

    Raises:
        InputError: No point is inside the box, or the domain is not a geographic grid.

    >>> domain = Domain.geographic_grid(2, 1, south=46, north=47, west=7, east=9)
    >>> visits = to_grid([Trajectory("ada", [46.5, 46.6], [7.2, 8.9])], domain)
    >>> visits.cells[0].tolist(), visits.outside
    ([0, 1], 0)
    """
    require_kind(domain, Domain, "domain", "a Domain")
    if domain.cells is None or domain.geographic is None:
        raise InputError("domain", "is not a geographic grid", value=Shown(domain), remedy="use Domain.geographic_grid")
    given = as_list(traces, "traces", "a list of traces, such as read_checkins returns; a single one as [trace]")
    for index, trace in enumerate(given):
        require_kind(trace, Trajectory, f"traces[{index}]", "a Trace, such as read_checkins returns")
    box, grid = domain.geographic, domain.cells
    meridians = np.linspace(box.west, box.east, grid.columns + 1)
    parallels = np.linspace(box.south, box.north, grid.rows + 1)
    cells: list[Integers] = []
    users: list[str] = []
    times: list[Times | None] = []
    exits: list[bool] = []
    inside = outside = 0
    for trace in given:
        column = interval(wrap_longitudes(trace.longitude, box.west, box.east), meridians)
        row = interval(trace.latitude, parallels)
        kept = np.flatnonzero((column >= 0) & (row >= 0))
        inside += len(kept)
        outside += len(trace) - len(kept)
        if len(kept) == 0:
            continue
        visited = row[kept] * grid.columns + column[kept]
        cuts = np.flatnonzero(np.diff(kept) > 1) + 1
        stretches = np.split(visited, cuts)
        cells += stretches
        times += [None] * len(stretches) if trace.time is None else np.split(trace.time[kept], cuts)
        users += [trace.user] * len(stretches)
        exits += [True] * len(cuts) + [bool(kept[-1] < len(trace) - 1)]
    if inside == 0:
        raise _all_outside(given, box)
    ties = sum(trace.ties for trace in given)
    return Visits(tuple(cells), tuple(users), inside, outside, domain, tuple(times), tuple(exits), ties)


def _all_outside(traces: Sequence[Trajectory], box: BoundingBox) -> InputError:
    """Return the error; it tells if latitude and longitude seem to be interchanged."""
    points = sum(map(len, traces))
    if not points:
        return InputError("traces", "none of the 0 points is inside the box", bound="at least one trace")
    latitude = np.concatenate([trace.latitude for trace in traces])
    longitude = np.concatenate([trace.longitude for trace in traces])
    swapped = (latitude >= box.west) & (latitude <= box.east) & (longitude >= box.south) & (longitude <= box.north)
    problem, remedy = f"none of the {points} points is inside the box", "check the box; mechdesign init proposes one"
    if swapped.mean() > 0.5:
        problem, remedy = f"{problem}: {INTERCHANGED}", "exchange the names of the two columns"
    return InputError("traces", problem, bound=f"within {box}", remedy=remedy)


def as_states(trace: Sequence[object] | NDArray[Any], domain: Domain) -> Integers:
    """Return the state of each step of a trace, as indices into a domain.

    Args:
        trace: A list of indices (integers) or labels (strings), or an array of places (steps, 2) with x and y in the
            unit of the domain. A place belongs to its cell in a grid, or to the nearest member of another domain.
        domain: The states.

    Returns:
        Indices, int64 of shape (steps,).

    Raises:
        InputError: A state is unknown, or a place is outside the domain; the path names the step.

    >>> as_states(["work", "home", 1], Domain.from_labels(["home", "work"])).tolist()
    [1, 0, 1]
    """
    rows = as_list(trace, "trace", "states, coordinates or labels, one for each step")
    if not rows:
        raise InputError("trace", "contains no steps", bound="at least one state")
    if all(isinstance(each, str) or np.ndim(each) == 0 for each in rows):
        names = Names.of(domain.labels)
        return np.array([find_state(names, each, f"trace[{step}]") for step, each in enumerate(rows)], dtype=np.int64)
    find = locator(domain, PLANE, "trace")
    places = as_floats(rows, "trace", "(steps, 2)")
    require(np.isfinite(places), places, "trace", "finite numbers")
    if places.shape[1] != 2:
        raise InputError("trace", "has the wrong shape", value=places.shape, bound="(steps, 2)")
    return np.array([find(place, f"trace[{step}]") for step, place in enumerate(places)], dtype=np.int64)


def find_state(names: Names, state: Any, path: str) -> int:
    """Return the position of a state given in Python: an integer is an index, and a string is a label."""
    if isinstance(state, np.integer) or (isinstance(state, int) and not isinstance(state, bool)):
        return names.find_position(int(state), path)
    if isinstance(state, str):
        return names.find(state, path)
    raise InputError(path, "is not a secret", bound="a label (string) or an index (integer)")


def locator(domain: Domain, axes: tuple[str, str], path: str) -> Callable[[Floats, str], int]:
    """Return a function that finds the member at a place, whose coordinates are `axes`, for a path in errors."""
    area = domain.area(axes)
    if area is None or (area.is_scattered and area.reach is None):
        bound = "states by label or index, or a domain with these coordinates and at least two places"
        raise InputError(path, "gives coordinates that the domain does not have", bound=bound)

    def find(place: Floats, path: str) -> int:
        try:
            return int(locate(area, (place[:1], place[1:]))[0][0])
        except InputError as error:
            remedy = error.remedy or "remove these steps, or use a larger domain"
            raise InputError(path, error.problem, bound=error.bound, remedy=remedy) from None

    return find


_SECONDS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*")
_MAX_DURATION_S = 366 * 86_400

# Default length of the longest gap, in steps.
_STEPS_PER_GAP = 3


@dataclass(frozen=True)
class Sampling:
    """The time step of a trace, and the longest gap in it.

    Attributes:
        every: Length of a step in seconds; None leaves the points unchanged.
        gap: Longest time between two points in seconds; traces are cut at longer gaps. The default is three steps;
            without steps there is no limit.

    Raises:
        InputError: A length is not between 1 s and 366 d, or the gap is shorter than a step.

    >>> Sampling(every=300)
    Sampling(every=300, gap=900)
    """

    every: int | None = None
    gap: int | None = None

    def __post_init__(self) -> None:
        for name in ("every", "gap"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= _MAX_DURATION_S:
                raise InputError(name, "is out of range", value=value, bound="between 1 s and 366 d")
        if self.every is not None:
            if self.gap is None:
                object.__setattr__(self, "gap", _STEPS_PER_GAP * self.every)
            elif self.gap < self.every:
                bound = f"at least {seconds_text(self.every)}, the length of a step"
                raise InputError("gap", "is shorter than a step", value=seconds_text(self.gap), bound=bound)

    @classmethod
    def of(cls, every: str | None, gap: str | None) -> Sampling:
        """Return the sampling that two texts specify.

        Args:
            every: Length of a step, such as "5 min", or None.
            gap: Length of the longest gap, such as "1 h", or None.

        Returns:
            The sampling, in seconds.

        Raises:
            InputError: A text is not a length of time; the path is ``every`` or ``gap``.
        """
        lengths = (None if text is None else duration(text, name) for name, text in (("every", every), ("gap", gap)))
        return cls(*lengths)


@dataclass(frozen=True)
class Resampled:
    """Statistics of resampling; ``str()`` gives a sentence.

    Attributes:
        sampling: The time step and the longest gap.
        median: Median interval between successive points before resampling, in seconds; None without times.
        points: Number of points before resampling.
        kept: Number of points that are used after resampling.
        gaps: Number of gaps at which traces were cut.

    >>> print(Resampled(Sampling(300), 60.0, points=100, kept=20, gaps=1))
    100 points (median interval 1 min) resampled to one every 5 min: 80 of them dropped, cut at 1 gap longer than 15 min
    """

    sampling: Sampling
    median: float | None
    points: int
    kept: int
    gaps: int

    def __str__(self) -> str:
        """Return the statistics as a sentence."""
        median = "" if self.median is None else f" (median interval {seconds_text(self.median)})"
        cut = f"cut at {self.gaps} gap{'s' * (self.gaps != 1)} longer than {seconds_text(self.sampling.gap or 0)}"
        if self.sampling.every is None:
            return f"{self.points} points{median}" + (f", {cut}" if self.sampling.gap is not None else "")
        return (
            f"{self.points} points{median} resampled to one every {seconds_text(self.sampling.every)}: "
            f"{self.points - self.kept} of them dropped, {cut}"
        )


def duration(text: str, path: str) -> int:
    """Return a length of time in seconds.

    Args:
        text: A number and a unit, such as "30 s", "5 min", "1.5 h" or "1 day".
        path: Path of the argument, for errors.

    Returns:
        Seconds, a whole number.

    Raises:
        InputError: The text is not a length of time, or not a whole number of seconds from 1 s to 366 d.

    >>> duration("5 min", "every")
    300
    """
    found = _DURATION.fullmatch(text.lower()) if isinstance(text, str) else None
    if found is None or found[2] not in _SECONDS:
        raise InputError(path, "is not a length of time", value=text, bound='a text such as "5 min" or "1 day"')
    seconds = float(found[1]) * _SECONDS[found[2]]
    if not 1 <= seconds <= _MAX_DURATION_S or seconds != int(seconds):
        raise InputError(path, "is out of range", value=text, bound="whole seconds, from 1 s to 366 d")
    return int(seconds)


def seconds_text(seconds: float) -> str:
    """Return a length of time as a short text.

    Args:
        seconds: Length in seconds.

    Returns:
        A number and one of the units s, min, h and d.

    >>> seconds_text(300), seconds_text(5400), seconds_text(2.5)
    ('5 min', '90 min', '2.5 s')
    """
    for name, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g} {name}"
    if seconds >= 86_400:
        return f"{seconds / 86_400:.3g} d"
    return f"{seconds / 60:.3g} min" if seconds >= 120 else f"{seconds:.3g} s"


def sampled(times: NDArray[np.datetime64], sampling: Sampling) -> list[Integers]:
    """Return the indices of the points to use at even steps, for each stretch of a trace.

    A trace is cut at gaps longer than `sampling.gap`. Each stretch has a step every `sampling.every` seconds, from its
    first point to its last. A step uses the most recent point. Without `every`, all points are used.

    Args:
        times: Times of the points in increasing order, datetime64 of shape (k,).
        sampling: The time step and the longest gap.

    Returns:
        An int64 array of indices for each stretch.

    Raises:
        InputError: The times decrease.

    >>> times = np.array([0, 70, 80, 500], dtype="datetime64[s]")
    >>> [stretch.tolist() for stretch in sampled(times, Sampling(every=60, gap=200))]
    [[0, 0], [3]]
    """
    seconds = times.astype("datetime64[s]").astype(np.int64)
    apart = np.diff(seconds)
    if (apart < 0).any():
        place = int(np.argmax(apart < 0)) + 1
        raise InputError(f"times[{place}]", "is earlier than the time before it", value=str(times[place]))
    max_gap = np.iinfo(np.int64).max if sampling.gap is None else sampling.gap
    cuts = np.flatnonzero(apart > max_gap) + 1
    found: list[Integers] = []
    for stretch in np.split(np.arange(len(seconds)), cuts):
        if sampling.every is not None:
            own = seconds[stretch]
            ticks = np.arange(own[0], own[-1] + 1, sampling.every)
            stretch = stretch[np.searchsorted(own, ticks, side="right") - 1]
        found.append(stretch.astype(np.int64))
    return found


def resample(traces: Iterable[Trajectory], sampling: Sampling) -> tuple[tuple[Trajectory, ...], Resampled]:
    """Resample traces at even steps.

    Args:
        traces: Traces with times.
        sampling: The time step and the longest gap.

    Returns:
        The stretches between gaps, and the statistics.

    Raises:
        InputError: A trace has no times.

    >>> times = np.array([0, 70, 120], dtype="datetime64[s]")
    >>> trace = Trajectory("ada", [46.9, 47.0, 47.1], [7.4, 7.4, 7.4], times)
    >>> stretches, statistics = resample([trace], Sampling(every=60))
    >>> stretches[0].latitude.tolist(), statistics.kept
    ([46.9, 46.9, 47.1], 2)
    """
    given = tuple(traces)
    stretches: list[Trajectory] = []
    kept = 0
    for trace in given:
        if trace.time is None:
            raise InputError("time", "is missing", bound="a column of times for resampling")
        ties = trace.ties
        for taken in sampled(trace.time, sampling):
            kept += len(np.unique(taken))
            points = (trace.latitude[taken], trace.longitude[taken], trace.time[taken])
            # Unknown orders count once, whichever stretch they are in.
            stretches.append(Trajectory(trace.user, *points, ties))
            ties = 0
    count = sum(map(len, given))
    statistics = Resampled(sampling, median_interval(given), count, kept, len(stretches) - len(given))
    return tuple(stretches), statistics


def median_interval(traces: Sequence[Trajectory]) -> float | None:
    """Return the median interval between successive points.

    Args:
        traces: Traces, with or without times.

    Returns:
        Seconds; None if no trace has two points with times.

    >>> times = np.array([0, 60, 180], dtype="datetime64[s]")
    >>> median_interval([Trajectory("ada", [46.9] * 3, [7.4] * 3, times)])
    90.0
    """
    intervals = [np.diff(trace.time).astype(np.int64) for trace in traces if trace.time is not None]
    together = np.concatenate(intervals) if intervals else np.zeros(0, dtype=np.int64)
    return float(np.median(together)) if together.size else None
