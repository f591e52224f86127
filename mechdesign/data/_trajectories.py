"""Trajectories, and the visits to cells that they make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, Integers, as_array, as_floats, as_indices, read_only, require
from mechdesign.base._check import as_list, require_kind
from mechdesign.base._errors import InputError, Shown, values_are_shown
from mechdesign.data._layout import form_of
from mechdesign.model._domain import BoundingBox, Domain
from mechdesign.model._locate import INTERCHANGED, interval, wrap_longitudes

Times = NDArray[np.datetime64]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Where one user was, in order.

    `latitude` and `longitude` are degrees, float64 of shape (k,), k ≥ 1; `time` is datetime64[s] of shape (k,), or None
    when only the order is known. All are read-only.
    """

    user: str
    latitude: Floats
    longitude: Floats
    time: Times | None = None

    def __post_init__(self) -> None:
        """Check ranges and lengths, and freeze the arrays."""
        if not isinstance(self.user, str) or not self.user:
            raise InputError("user", "is not a name", value=self.user, bound="a text that is not empty")
        for name, limit in (("latitude", 90), ("longitude", 180)):
            degrees = as_floats(getattr(self, name), name, "(k,)")
            require(np.abs(degrees) <= limit, degrees, name, f"between -{limit} and {limit} degrees")
            object.__setattr__(self, name, degrees)
        k = len(self.latitude)
        if k == 0:
            raise InputError("latitude", f"the trace of user {self.user!r} is empty", bound="at least one point")
        if len(self.longitude) != k:
            raise InputError("longitude", "differs in length", value=len(self.longitude), bound=f"{k} values")
        if self.time is not None:
            if as_array(self.time, "time").dtype.kind in "biuf":
                bound = "datetime64: np.array(seconds, dtype='datetime64[s]') of seconds since 1970"
                raise InputError("time", "holds numbers", bound=bound)
            time = np.array(self.time, dtype="datetime64[s]")
            if time.shape != (k,):
                raise InputError("time", "has the wrong shape", value=time.shape, bound=f"({k},)")
            require(~np.isnat(time), time, "time", "a date and time")
            read_only(time)
            object.__setattr__(self, "time", time)

    def __len__(self) -> int:
        return len(self.latitude)


@dataclass(frozen=True, eq=False)
class Visits:
    """The cells of a grid that users visited.

    `cells` holds int64 arrays of cell indices, read-only, each a stretch of consecutive points inside the box, and
    `users` the user of each stretch. `inside` and `outside` count points; `domain` is the grid. `times` holds the times
    of each stretch, datetime64[s], or None, and is empty where nothing is known of them. `exits` says of each stretch
    whether the user then went on outside the box; it is empty where that is not known.
    """

    cells: tuple[Integers, ...]
    users: tuple[str, ...]
    inside: int
    outside: int
    domain: Domain
    times: tuple[Times | None, ...] = ()
    exits: tuple[bool, ...] = ()
    # Where the stretches of each user stand in `cells`.
    _stretches: dict[str, list[int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check and freeze the cells, and index the stretches by user."""
        require_kind(self.domain, Domain, "domain", "a Domain")
        as_list(self.cells, "cells", "a list of traces, each of indices of cells")
        as_list(self.users, "users", "a list of names")
        # Copies, not views: a view would keep a whole trace in memory, and writable.
        cells = tuple(
            as_indices(stretch, f"cells[{index}]", self.domain.size) for index, stretch in enumerate(self.cells)
        )
        for stretch in cells:
            read_only(stretch)
        object.__setattr__(self, "cells", cells)
        if len(self.cells) != len(self.users):
            raise InputError("users", "differs in length", value=len(self.users), bound=f"{len(self.cells)} users")
        if self.times and [None if each is None else len(each) for each in self.times] != [
            None if each is None else len(stretch) for each, stretch in zip(self.times, self.cells, strict=False)
        ]:
            raise InputError("times", "do not fit the cells", value=len(self.times), bound="a time for each point")
        if self.exits and len(self.exits) != len(self.cells):
            raise InputError("exits", "differ in length", value=len(self.exits), bound=f"{len(self.cells)} stretches")
        stretches: dict[str, list[int]] = {}
        for index, user in enumerate(self.users):
            stretches.setdefault(user, []).append(index)
        object.__setattr__(self, "_stretches", stretches)

    def of(self, user: str) -> tuple[Integers, ...]:
        """Return the stretches of one user, in order; raise `InputError` for a user without any."""
        if user not in self._stretches:
            bound = f"one of the {len(self._stretches)} users with visits"
            remedy = "" if isinstance(user, str) else "give the name as a text"
            raise InputError("user", "has no visits", value=user, bound=bound, remedy=remedy)
        return tuple(self.cells[index] for index in self._stretches[user])

    def counts(self, user: str | None = None) -> Integers:
        """Return how often each cell was visited, by one user or by all: int64 of shape (n,)."""
        total = np.zeros(self.domain.size, dtype=np.int64)
        for cells in self.cells if user is None else self.of(user):
            np.add.at(total, cells, 1)
        return total


def to_grid(traces: Iterable[Trajectory], domain: Domain) -> Visits:
    """Return the cells visited, for a domain made with `Domain.geographic_grid`.

    Column k covers the longitudes from west + k · (east − west) / columns on, up to but without the next such border;
    only the last column includes its eastern border. Rows likewise, from south to north. Points outside the box are
    left out, and a trace that leaves the box is split there: the points before and after become stretches of their own,
    so that no step of the user is invented. `Visits.exits` marks the stretches before. Raises `InputError` when no
    point is inside.
    """
    require_kind(domain, Domain, "domain", "a Domain")
    if domain.cells is None or domain.geographic is None:
        raise InputError("domain", "is not a geographic grid", value=Shown(domain), remedy="use Domain.geographic_grid")
    given = as_list(traces, "traces", "a list of traces, such as read_checkins returns; a single one as [trace]")
    for index, trace in enumerate(given):
        require_kind(trace, Trajectory, f"traces[{index}]", "a Trace, such as those of read_checkins")
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
    return Visits(tuple(cells), tuple(users), inside, outside, domain, tuple(times), tuple(exits))


def _all_outside(traces: Sequence[Trajectory], box: BoundingBox) -> InputError:
    """Return an error that says where the points are, and whether latitude and longitude look interchanged."""
    points = sum(map(len, traces))
    if not points:
        return InputError("traces", "none of the 0 points is inside the box", bound="at least one trace")
    latitude = np.concatenate([trace.latitude for trace in traces])
    longitude = np.concatenate([trace.longitude for trace in traces])
    extent = (latitude.min(), latitude.max(), longitude.min(), longitude.max())
    swapped = (latitude >= box.west) & (latitude <= box.east) & (longitude >= box.south) & (longitude <= box.north)
    if swapped.mean() > 0.5:
        problem = f"none of the {points} points is inside the box: {INTERCHANGED}"
        remedy = "exchange the names of the two columns"
    else:
        problem, remedy = (
            f"none of the {points} points is inside the box",
            "check the box: mechdesign init proposes one",
        )
    # Of one trace it may be the very place.
    shown = (
        BoundingBox.text(*extent)
        if values_are_shown()
        else "latitude {} to {}, longitude {} to {}".format(*(form_of(f"{degrees:.6g}") for degrees in extent))
    )
    return InputError("traces", problem, value=Shown(shown), bound=f"within {box}", remedy=remedy)
