"""Build the prior that a specification describes."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats
from mechdesign.base._check import renamed
from mechdesign.base._errors import InputError, Shown, SpecificationError
from mechdesign.data import _movement as traces
from mechdesign.data import _trajectories as trajectories
from mechdesign.data._inspection import unread_times
from mechdesign.data._labels import read_matched
from mechdesign.data._layout import composed, withholding
from mechdesign.data._resampling import Sampling, median_interval, resample
from mechdesign.data._text import number, plain_numbers
from mechdesign.data._times import order_of
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import Checkins, CountsFile, PlacesByKey, Raw, Table, Trajectories, holds
from mechdesign.model._prior import Prior
from mechdesign.model._words import percent
from mechdesign.specification._read import at, convert, in_file, one_of

_MOST_PEOPLE = 10**12


class Centre(Table, frozen=True):
    """A normal distribution of people about a point.

    Attributes:
        x: its first coordinate, in the unit of the domain.
        y: its second coordinate.
        spread: the standard deviation in each direction.
        weight: its share of the people, relative to those of the other centres.
    """

    x: float
    y: float
    spread: float
    weight: float = 1.0


class Simulated(Table, frozen=True):
    """People around centres, in whole numbers: the prior is the same on every machine.

    Attributes:
        centres: where people are.
        people: how many there are.
        background: the share of them that is spread evenly.
    """

    centres: list[Annotated[Raw, holds(Centre)]]
    people: int = 1_000_000
    background: float = 0.0


class VisitsFile(Table, frozen=True):
    """A file with a header and a visit a line, in columns x and y, or latitude and longitude.

    Attributes:
        path: the file.
        latitude: the column with the latitude in degrees, if it is called otherwise.
        longitude: the column with the longitude in degrees, if it is called otherwise.
        delimiter: the character between columns; recognised unless given, as the next two are.
        decimal: the sign before decimals, "." or ",".
        encoding: the encoding, such as "windows-1252"; UTF-8 unless a byte order mark says UTF-16.
        missing: the share of rows that may be left out, such as 0.2; 0.05 unless given.
    """

    path: str
    latitude: str | None = None
    longitude: str | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    missing: float | None = None


class PriorTable(Table, frozen=True):
    """How likely each secret is. All but the first two forms are counts, to each of which `smoothing` is added.

    Attributes:
        uniform: true: all secrets are equally likely.
        probabilities: a probability for each secret; they sum to 1.
        counts: a count for each secret.
        csv: a file of counts.
        visits: a file of raw coordinates, for a domain of anchors; costs are then those of the visits themselves.
        checkins: a file of check-ins, counted in the cells of a geographic grid; for geographic anchors taken as they
            are.
        plt: a folder of trajectories, likewise.
        simulated: simulated people.
        smoothing: what is added to each count; needed where cells are never visited, and 0 accepts probability zero.
    """

    alternatives: ClassVar = ("uniform", "probabilities", "counts", "csv", "visits", "checkins", "plt", "simulated")

    uniform: bool | None = None
    probabilities: list[float] | None = None
    counts: list[float] | None = None
    csv: Annotated[Raw, holds(CountsFile)] | None = None
    visits: Annotated[Raw, holds(VisitsFile)] | None = None
    checkins: Annotated[Raw, holds(Checkins)] | None = None
    plt: Annotated[Raw, holds(Trajectories)] | None = None
    simulated: Annotated[Raw, holds(Simulated)] | None = None
    smoothing: float | None = None


def build_prior(raw: Raw, path: str, domain: Domain, folder: Path) -> tuple[Prior, tuple[str, ...]]:
    """Return the prior over `domain` that the table at `path` describes, and notes for the user about the data."""
    table = convert(raw, PriorTable, path)
    form = one_of(table, path)
    if table.smoothing is not None and form in ("uniform", "probabilities"):
        raise SpecificationError(f"{path}.smoothing", f"does not go with {form}", remedy="leave it out")
    if form == "visits":
        raise SpecificationError(f"{path}.visits", "needs a domain of anchors", bound="domain.anchors = { columns, … }")
    if form == "uniform":
        if not table.uniform:
            raise SpecificationError(f"{path}.uniform", "cannot be false", value=False, bound="true")
        return Prior.uniform(domain.size), ()
    if table.probabilities is not None:
        _check_length(len(table.probabilities), domain, f"{path}.probabilities")
        with at(path, {"prior": "probabilities"}):
            return Prior(np.array(table.probabilities)), ()
    notes: tuple[str, ...] = ()
    if table.checkins is not None or table.plt is not None:
        read = read_visits(getattr(table, form), form, f"{path}.{form}", domain, folder)
        counts, notes = _counted(read.visits)
        notes += read.notes
    elif table.simulated is not None:
        counts = _simulated(table.simulated, f"{path}.simulated", domain)
    elif table.csv is not None:
        counts, note = _from_file(table.csv, f"{path}.csv", domain, folder)
        notes += (f"{path}.csv: {note}",)
    else:
        _check_length(len(table.counts or ()), domain, f"{path}.counts")
        counts = np.array(table.counts)
    empty = int((counts == 0).sum())
    if empty and form in ("checkins", "plt") and table.smoothing is None:
        raise SpecificationError(
            f"{path}.smoothing",
            f"is needed: {empty} of the {domain.size} cells were never visited (the first is cell "
            f"{int(np.argmax(counts == 0))}), so that their probability would be zero",
            remedy="add smoothing = 0.01, say, or smoothing = 0 to accept probability zero",
        )
    smoothing = table.smoothing or 0.0
    if smoothing > counts.sum() > 0:
        notes += (
            f"{path}.smoothing: {smoothing:g}, added to each of {domain.size} counts, is more than all that was "
            f"counted ({counts.sum():g}): the prior says little of the data",
        )
    if empty:
        notes += (f"{empty} of {domain.size} secrets never occur in the data",)
    with at(path, {"counts": form}), nullcontext() if form == "counts" else withholding("counts"):
        return Prior.from_counts(counts, table.smoothing or 0.0), notes


def _check_length(length: int, domain: Domain, path: str) -> None:
    if length != domain.size:
        raise SpecificationError(path, "differs in length from the domain", value=length, bound=str(domain.size))


def _from_file(raw: Raw, path: str, domain: Domain, folder: Path) -> tuple[Floats, str]:
    """Return the counts in a file, in the order of the secrets, and how its rows were matched with them."""
    table = convert(raw, CountsFile, path)
    with in_file(path, table):
        source = folder / table.path
        found = read_matched(source, [table.column], domain.labels, table.label, table.delimiter)
        texts = zip(found.rows, plain_numbers(found.columns[table.column], source, table.column), strict=True)
        counts = [number(text, f"{source}, row {row}, column {table.column}") for row, text in texts]
    _check_length(len(counts), domain, f"{path}.path")
    return np.array(counts), found.note


class Read(NamedTuple):
    """Visits to the cells of a grid, what became of the points before they were counted, and how to say it.

    `order` says in which order points are taken to be, and the first and last time, which no file that is published
    should hold.
    """

    visits: trajectories.Visits
    sampling: Sampling
    median: float | None
    notes: tuple[str, ...]
    order: str


def read_visits(raw: Raw, form: str, path: str, domain: Domain, folder: Path, sampling: Sampling | None = None) -> Read:
    """Return the visits that the table ``checkins`` or ``plt`` (the `form`) at `path` names, in cells of `domain`.

    `sampling` is used where the table says nothing of even steps.
    """
    table: Checkins | Trajectories
    table = convert(raw, Checkins, path) if form == "checkins" else convert(raw, Trajectories, path)
    if domain.geographic is None:
        raise SpecificationError(
            path,
            "is counted in the cells of a box in latitude and longitude, and the domain has none",
            value=Shown(domain),
            bound="a domain with grid = { columns, rows, south, north, west, east }",
            remedy=f"let `mechdesign init {folder / table.path}` propose a box",
        )
    found = read_traces(raw, form, path, folder, sampling)
    with in_file(path):
        try:
            visits = trajectories.to_grid(found.found, domain)
        except InputError as error:
            raise renamed(error, str(folder / table.path), "traces") from error
    return Read(visits, found.sampling, found.median, found.notes, found.order)


class Traces(NamedTuple):
    """Traces `found`, after even steps were made, if they were, what became of their points, and how to say it."""

    found: tuple[trajectories.Trajectory, ...]
    sampling: Sampling
    median: float | None
    notes: tuple[str, ...]
    order: str


def read_traces(raw: Raw, form: str, path: str, folder: Path, sampling: Sampling | None = None) -> Traces:
    """Return the traces that the table ``checkins`` or ``plt`` (the `form`) at `path` names; see `read_visits`."""
    table: Checkins | Trajectories
    table = convert(raw, Checkins, path) if form == "checkins" else convert(raw, Trajectories, path)
    with in_file(path, table):
        read = (
            _checkins(table, path, folder)
            if isinstance(table, Checkins)
            else traces.read_trajectories(folder / table.path, traces.Written(missing=table.missing).share)
        )
    found, user = read.traces, None
    if table.only is not None:
        user = _user(list(dict.fromkeys(trace.user for trace in found)), table.only, path)
        found = tuple(trace for trace in found if trace.user == user)
    with at(path):
        own = Sampling.of(table.every, table.gap)
        sampling = own if sampling is None or own != Sampling() else sampling
        median = median_interval(found)
        order = f"{path}: {order_of([trace.time for trace in found])}"
        if isinstance(table, Checkins) and table.time is None:
            order = "; ".join((order, *_unread_times(table, folder)))
        notes = tuple(f"{path}: {note}" for note in read.said(user))
        if sampling != Sampling():
            found, facts = resample(found, sampling)
            notes += (f"{path}: {facts}",)
    return Traces(found, sampling, median, notes, order)


def _checkins(table: Checkins, path: str, folder: Path) -> traces.Points:
    if (table.place is None) != (table.places is None):
        lacking = "places" if table.places is None else "place"
        raise SpecificationError(f"{path}.{lacking}", "is missing", bound="given beside the other: place and places")
    places = None
    if table.places is not None:
        by_key = convert(table.places, PlacesByKey, f"{path}.places")
        with in_file(f"{path}.places", by_key):
            source = folder / by_key.path
            places = traces.read_places(
                source, by_key.key, by_key.latitude, longitude=by_key.longitude, delimiter=by_key.delimiter
            )
    return traces.read_points(
        folder / table.path,
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


def _unread_times(table: Checkins, folder: Path) -> tuple[str, ...]:
    """Say which columns hold times, or are called so, where the table names none."""
    taken = (table.user, table.latitude, table.longitude, table.trace, table.place)
    with in_file("", table):
        return unread_times(folder / table.path, table.delimiter, [name for name in taken if name is not None])


def _user(users: list[str], only: int | str, path: str) -> str:
    names = [user for user in users if user == composed(str(only))]
    if not names and isinstance(only, int):
        # A number may be padded with zeros in the data: user 6 of GeoLife is called 006.
        names = [user for user in users if user.isdecimal() and len(user) < 20 and int(user) == only]
    if len(names) != 1:
        raise SpecificationError(
            f"{path}.only",
            "is not a user" if not names else f"means several users: {', '.join(names)}",
            value=only,
            bound=f"one of the {len(users)} users in the data",
        )
    return names[0]


def _counted(visits: trajectories.Visits) -> tuple[Floats, tuple[str, ...]]:
    notes = [f"{visits.inside} points of {len(dict.fromkeys(visits.users))} user(s) counted"]
    if visits.outside:
        share = visits.outside / (visits.inside + visits.outside)
        notes.append(f"{visits.outside} points outside the box left out, {percent(share)} of all")
    return visits.counts().astype(np.float64), tuple(notes)


@in_own_arithmetic
def _simulated(raw: Raw, path: str, domain: Domain) -> Floats:
    """Return whole numbers of people in each cell, so that the prior is the same on every machine."""
    table = convert(raw, Simulated, path)
    if domain.points.shape[1] != 2:
        raise SpecificationError(path, "needs a domain of places in the plane", value=Shown(domain))
    if not 1 <= table.people <= _MOST_PEOPLE:
        raise SpecificationError(
            f"{path}.people", "is out of range", value=table.people, bound=f"between 1 and {_MOST_PEOPLE}"
        )
    if not 0 <= table.background <= 1:
        raise SpecificationError(
            f"{path}.background", "is not a share", value=table.background, bound="between 0 and 1"
        )
    if not table.centres:
        raise SpecificationError(f"{path}.centres", "is empty", bound="at least one centre")
    density = np.zeros(domain.size)
    total = 0.0
    for index, entry in enumerate(table.centres):
        place = f"{path}.centres[{index}]"
        centre = convert(entry, Centre, place)
        for key in ("x", "y"):
            if not math.isfinite(getattr(centre, key)):
                raise SpecificationError(f"{place}.{key}", "is not finite", value=getattr(centre, key))
        for key in ("spread", "weight"):
            value = getattr(centre, key)
            if not 0 < value < math.inf:
                raise SpecificationError(f"{place}.{key}", "is not positive", value=value, bound="> 0")
        squares = ((domain.points - [centre.x, centre.y]) ** 2).sum(axis=1)
        # Measured from the nearest cell, so that a centre far outside does not vanish.
        near = np.exp((squares.min() - squares) / (2 * centre.spread**2))
        density += centre.weight * near / near.sum()
        total += centre.weight
    shares = (1 - table.background) * density / total + table.background / domain.size
    people: Floats = np.rint(table.people * shares)
    return people
