"""Build the prior of a specification."""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats
from mechdesign.base._check import rename_path
from mechdesign.base._errors import InputError, Shown, withholding_values
from mechdesign.data import _movement as traces
from mechdesign.data import trajectories
from mechdesign.data._inspection import unread_times
from mechdesign.data._layout import to_nfc
from mechdesign.data._times import order_of
from mechdesign.data.labels import read_matched
from mechdesign.data.resampling import Sampling, median_interval, resample
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import Checkins, CountsFile, PriorTable, Simulated, Trajectories
from mechdesign.model._prior import Prior
from mechdesign.model._words import percent
from mechdesign.specification._read import Source


def build_prior(table: PriorTable, source: Source, domain: Domain) -> tuple[Prior, tuple[str, ...]]:
    """Return the prior over `domain` described by the table at `source`, and notes for the user about the data."""
    form = table.form
    if table.smoothing is not None and form in ("uniform", "probabilities"):
        raise source.error("smoothing", f"cannot be combined with {form}", remedy="remove the key")
    if form == "visits":
        raise source.error("visits", "requires a domain of anchors", bound="domain.anchors = { columns, … }")
    if form == "uniform":
        return Prior.uniform(domain.size), ()
    if table.probabilities is not None:
        _check_length(len(table.probabilities), domain, source / "probabilities")
        with source.keys({"prior": "probabilities"}):
            return Prior(np.array(table.probabilities)), ()
    counts, notes = _read_counts(table, source, domain)
    empty = int((counts == 0).sum())
    if empty and (table.checkins or table.plt) is not None and table.smoothing is None:
        raise source.error(
            "smoothing",
            f"is required: {empty} of the {domain.size} cells were never visited (the first is cell "
            f"{int(np.argmax(counts == 0))}), so their probability would be zero",
            remedy="add for example smoothing = 0.01, or smoothing = 0 to accept probability zero",
        )
    smoothing = table.smoothing or 0.0
    if smoothing > counts.sum() > 0:
        notes += (
            f"{source / 'smoothing'}: {smoothing:g}, added to each of {domain.size} counts, exceeds the sum of all "
            f"counts ({counts.sum():g}): the prior hardly depends on the data",
        )
    if empty:
        notes += (f"{empty} of {domain.size} secrets never occur in the data",)
    with source.keys({"counts": form}), nullcontext() if form == "counts" else withholding_values("counts"):
        return Prior.from_counts(counts, table.smoothing or 0.0), notes


def _read_counts(table: PriorTable, source: Source, domain: Domain) -> tuple[Floats, tuple[str, ...]]:
    """Return the count of each secret, and notes about the data."""
    data = table.checkins or table.plt
    if data is not None:
        read = read_visits(data, source / table.form, domain)
        counts, notes = _count_visits(read.visits)
        return counts, (*notes, *read.notes)
    if table.simulated is not None:
        return _simulate(table.simulated, source / "simulated", domain), ()
    if table.csv is not None:
        return _from_file(table.csv, source / "csv", domain), ()
    _check_length(len(table.counts or ()), domain, source / "counts")
    return np.array(table.counts), ()


def _check_length(length: int, domain: Domain, source: Source) -> None:
    if length != domain.size:
        raise source.error("", "has another length than the domain", value=length, bound=str(domain.size))


def _from_file(table: CountsFile, source: Source, domain: Domain) -> Floats:
    """Return the counts in a file, in the order of the secrets."""
    with source.file(table) as file:
        found, rows = read_matched(file, [table.column], table.label, domain.labels, source.layout)
        return found.numbers(table.column)[rows]


class Read(NamedTuple):
    """Visits to the cells of a grid, with notes.

    Attributes:
        visits: The visits.
        sampling: The time step and the longest gap at which traces were resampled.
        median: The median interval between points in seconds, or None.
        notes: Sentences about the data, for the user.
        order: A sentence with the order of the points and the first and last time, which is private and never
            published.
    """

    visits: trajectories.Visits
    sampling: Sampling
    median: float | None
    notes: tuple[str, ...]
    order: str


def read_visits(
    table: Checkins | Trajectories, source: Source, domain: Domain, sampling: Sampling | None = None
) -> Read:
    """Return the visits to cells of `domain` from the table of check-ins or trajectories at `source`.

    `sampling` applies if the table does not specify even steps.
    """
    if domain.geographic is None:
        raise source.error(
            "",
            "requires a geographic grid (south, north, west, east) as the domain",
            value=Shown(domain),
            bound="a domain with grid = { columns, rows, south, north, west, east }",
            remedy=f"run `mechdesign init {source.folder / table.path}` to get a proposal for the box",
        )
    found = read_traces(table, source, sampling)
    with source.file(name=table.path) as file:
        try:
            visits = trajectories.to_grid(found.found, domain)
        except InputError as error:
            raise rename_path(error, str(file), "traces") from error
    return Read(visits, found.sampling, found.median, found.notes, found.order)


class Traces(NamedTuple):
    """Traces after resampling, with notes; `Read` describes the attributes other than `found`."""

    found: tuple[trajectories.Trajectory, ...]
    sampling: Sampling
    median: float | None
    notes: tuple[str, ...]
    order: str


def read_traces(table: Checkins | Trajectories, source: Source, sampling: Sampling | None = None) -> Traces:
    """Return the traces from the table of check-ins or trajectories at `source`; see `read_visits`."""
    with source.file(table) as file:
        read = (
            _checkins(table, source)
            if isinstance(table, Checkins)
            else traces.read_trajectories(file, traces.Written(missing=table.missing).share)
        )
    found, user = read.traces, None
    if table.only is not None:
        user = _user(list(dict.fromkeys(trace.user for trace in found)), table.only, source)
        found = tuple(trace for trace in found if trace.user == user)
    with source.keys():
        own = Sampling.of(table.every, table.gap)
        sampling = own if sampling is None or own != Sampling() else sampling
        median = median_interval(found)
        order = f"{source}: {order_of([trace.time for trace in found])}"
        if isinstance(table, Checkins) and table.time is None:
            order = "; ".join((order, *_unread_times(table, source)))
        notes = tuple(f"{source}: {note}" for note in read.said(user))
        if sampling != Sampling():
            found, statistics = resample(found, sampling)
            notes += (f"{source}: {statistics}",)
    return Traces(found, sampling, median, notes, order)


def _checkins(table: Checkins, source: Source) -> traces.Points:
    if (table.place is None) != (table.places is None):
        lacking = "places" if table.places is None else "place"
        raise source.error(lacking, "is missing", bound="both place and places")
    places = None
    if table.places is not None:
        by_key = table.places
        with (source / "places").file(by_key) as file:
            places = traces.read_places(
                file, by_key.key, by_key.latitude, longitude=by_key.longitude, delimiter=by_key.delimiter
            )
    return traces.read_points(
        source.folder / table.path,
        table.user or None,
        table.latitude,
        longitude=table.longitude,
        time=table.time,
        trace=table.trace,
        delimiter=table.delimiter,
        place=table.place,
        places=places,
        date=table.date,
        said=traces.Written(table.time_format, table.time_zone, table.longitudes, table.missing),
    )


def _unread_times(table: Checkins, source: Source) -> tuple[str, ...]:
    """Return notes about columns that may hold times, if a table does not name its column of times."""
    taken = (table.user, table.latitude, table.longitude, table.trace, table.place)
    with Source(folder=source.folder).file(table) as file:
        return unread_times(file, table.delimiter, [name for name in taken if name is not None])


def _user(users: list[str], only: int | str, source: Source) -> str:
    names = [user for user in users if user == to_nfc(str(only))]
    if not names and isinstance(only, int):
        # The data may pad numbers with zeros: user 6 of GeoLife is called 006.
        names = [user for user in users if user.isdecimal() and len(user) < 20 and int(user) == only]
    if len(names) != 1:
        raise source.error(
            "only",
            "is not a user" if not names else f"matches several users: {', '.join(names)}",
            value=only,
            bound=f"one of the {len(users)} users in the data",
        )
    return names[0]


def _count_visits(visits: trajectories.Visits) -> tuple[Floats, tuple[str, ...]]:
    notes = [f"{visits.inside} points of {len(dict.fromkeys(visits.users))} user(s) counted"]
    if visits.outside:
        share = visits.outside / (visits.inside + visits.outside)
        notes.append(f"{visits.outside} points outside the box are left out, {percent(share)} of all")
    return visits.counts().astype(np.float64), tuple(notes)


@in_own_arithmetic
def _simulate(table: Simulated, source: Source, domain: Domain) -> Floats:
    """Return the number of people in each cell, rounded so that the prior is the same on every machine."""
    if domain.points.shape[1] != 2:
        raise source.error("", "requires a domain of places in the plane", value=Shown(domain))
    density = np.zeros(domain.size)
    total = 0.0
    for centre in table.centres:
        squares = ((domain.points - [centre.x, centre.y]) ** 2).sum(axis=1)
        # Distances are relative to the nearest cell, so that a centre far outside still has an effect.
        near = np.exp((squares.min() - squares) / (2 * centre.spread**2))
        density += centre.weight * near / near.sum()
        total += centre.weight
    shares = (1 - table.background) * density / total + table.background / domain.size
    people: Floats = np.rint(table.people * shares)
    return people
