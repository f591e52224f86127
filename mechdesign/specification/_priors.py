"""Build the prior of a specification."""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats
from mechdesign.base._errors import Shown, withholding_values
from mechdesign.data import trajectories
from mechdesign.data.labels import read_counts
from mechdesign.data.movement import Columns, read_movement, read_places, read_trajectories
from mechdesign.data.trajectories import Sampling, median_interval, resample
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import ChainTable, Checkins, CountsFile, PriorTable, Simulated, Trajectories
from mechdesign.model._prior import Prior
from mechdesign.model._words import percent
from mechdesign.specification._read import Source
from mechdesign.specification._steps import ReleaseTable


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
        visits, read = read_visits(data, source / table.form, domain)
        counts, notes = _count_visits(visits)
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
        return read_counts(file, table.column, table.label, domain.labels, source.layout)


def sampling_of(table: Checkins | Trajectories | ChainTable | ReleaseTable, source: Source) -> Sampling:
    """Return the time step and the longest gap that a table at `source` states."""
    with source.keys():
        return Sampling.of(table.every, table.gap)


class Read(NamedTuple):
    """Traces after resampling, with notes.

    Attributes:
        traces: The traces.
        sampling: The time step and the longest gap at which traces were resampled.
        median: The median interval between points in seconds, or None.
        timed: Whether the order of the points comes from their times.
        notes: Sentences about the data, for the user.
    """

    traces: tuple[trajectories.Trajectory, ...]
    sampling: Sampling
    median: float | None
    timed: bool
    notes: tuple[str, ...]


def read_visits(
    table: Checkins | Trajectories, source: Source, domain: Domain, sampling: Sampling | None = None
) -> tuple[trajectories.Visits, Read]:
    """Return the visits to cells of `domain` by the check-ins or trajectories at `source`, and the traces."""
    if domain.geographic is None or domain.cells is None:
        raise source.error(
            "",
            "requires a geographic grid (south, north, west, east) as the domain",
            value=Shown(domain),
            bound="a domain with grid = { columns, rows, south, north, west, east }",
            remedy=f"run `mechdesign init {source.folder / table.path}` to get a proposal for the box",
        )
    found = read_traces(table, source, sampling)
    with source.keys({"traces": ""}):
        return trajectories.to_grid(found.traces, domain), found


def read_traces(table: Checkins | Trajectories, source: Source, sampling: Sampling | None = None) -> Read:
    """Return the traces of the check-ins or trajectories at `source`.

    `sampling` applies if the table does not specify even steps.
    """
    if isinstance(table, Checkins):
        columns = _columns_of(table, source)
        with source.file(table) as file:
            read = read_movement(file, columns, source.layout)
    else:
        with source.file(table) as file:
            read = read_trajectories(file, source.layout.missing)
    traces = read.traces
    if table.only is not None:
        traces = tuple(trace for trace in traces if trace.user == str(table.only))
        if not traces:
            bound = f"one of the {len({trace.user for trace in read.traces})} users in the data"
            remedy = 'write a name with zeros in front as a text, such as "003"' if isinstance(table.only, int) else ""
            raise source.error("only", "is not a user", value=table.only, bound=bound, remedy=remedy)
    notes: tuple[str, ...] = (f"{source}: {read.note}",) if read.note else ()
    median = median_interval(traces)
    own = sampling_of(table, source)
    sampling = own if sampling is None or own != Sampling() else sampling
    if sampling != Sampling():
        with source.keys():
            traces, statistics = resample(traces, sampling)
        notes += (f"{source}: {statistics}",)
    return Read(traces, sampling, median, traces[0].time is not None, notes)


def _columns_of(table: Checkins, source: Source) -> Columns:
    """Return the columns of a table of check-ins, with the places to which they refer."""
    places = None
    if table.places is not None:
        given, layout = table.places, source.layout
        with (source / "places").file(given) as file:
            text = {"delimiter": layout.delimiter, "decimal": layout.decimal, "encoding": layout.encoding}
            places = read_places(file, given.key, given.latitude, given.longitude, **text)
    user = source.user_column(table.user)
    with source.keys({"source": ""}):
        return Columns(user, table.latitude, table.longitude, table.time, table.trace, table.place, places)


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
