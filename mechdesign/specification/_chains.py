"""Build the Markov chain of a specification, or the graph of its possible steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError, InputWarning, withholding_values
from mechdesign.base._warnings import warn
from mechdesign.data.matrices import match_names, read_dense
from mechdesign.data.trajectories import Sampling, Times, Visits, seconds_text
from mechdesign.graphs import _builders as graphs
from mechdesign.graphs._builders import edge_array
from mechdesign.leakage._estimate import Correlations, correlations_from_traces
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import ChainTable, PriorTable
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._words import percent
from mechdesign.specification._priors import Read, read_visits, sampling_of
from mechdesign.specification._read import Source
from mechdesign.specification._steps import Steps

_COUNTED = ("estimated", "checkins", "plt")
_HOURS = 24

# A trace is refused if the relative difference between its interval and the even steps of the chain exceeds this
# number.
_MAX_DIFFERENCE = 0.1
# A warning is given if the ratio of the interval of a trace and the median interval of data without even steps exceeds
# this number.
_MAX_RATIO = 2.0


@dataclass(frozen=True, eq=False)
class Transitions:
    """The transitions between states, as a table of a specification describes them.

    Attributes:
        chains: One chain, or one for each step, or one for each hour of the day.
        by: The meaning of `chains`: "step", "hour", or None for one chain at all times.
        every: The length of a step in seconds, if the table gives it.
        median: The median interval of the data from which steps were counted, in seconds, if steps are not even.
        notes: Sentences about the data, for the user.
    """

    chains: tuple[MarkovChain, ...]
    by: str | None = None
    every: int | None = None
    median: float | None = None
    notes: tuple[str, ...] = ()

    def along(self, steps: Steps, source: Source) -> MarkovChain | VaryingChain:
        """Return the chain for all steps of a trace, or one chain for each step.

        Raises `SpecificationError` if the chains do not match the times of the trace. Warns with `InputWarning` if the
        chain was counted from data whose intervals differ from those of the trace.
        """
        self._check_interval(steps.interval, source)
        if self.by is None:
            return self.chains[0]
        count = len(steps.states)
        if self.by == "step":
            if len(self.chains) < count - 1:
                raise source.error(
                    "paths",
                    "ends before the trace",
                    value=len(self.chains),
                    bound=f"at least {count - 1} matrices for a trace of {count} states",
                )
            return VaryingChain(self.chains)
        if steps.times is None:
            raise source.error("by", "needs a trace with times", value=self.by, bound="a trace with a column time")
        return VaryingChain(tuple(self.chains[hour] for hour in _hours(steps.times).tolist()))

    def _check_interval(self, interval: float | None, source: Source) -> None:
        if interval is None:
            return
        if self.every is not None and abs(interval - self.every) > _MAX_DIFFERENCE * self.every:
            raise source.error(
                "every",
                "differs from the steps of the trace",
                value=f"steps of {seconds_text(self.every)}, and a median interval of {seconds_text(interval)}",
                bound="equal",
                remedy=f'resample the trace: [release] every = "{seconds_text(self.every)}"',
            )
        if self.median is not None and not interval / _MAX_RATIO <= self.median <= interval * _MAX_RATIO:
            warn(
                f"{source}: the data have a median interval of {seconds_text(self.median)}, but the states of the "
                f"trace are {seconds_text(interval)} apart: set every for equal steps",
                InputWarning,
                stacklevel=2,
            )


def build_chain(table: ChainTable, source: Source, domain: Domain, prior: PriorTable) -> Transitions:
    """Return the chain, or chains, over `domain` described by the table at `source`.

    `prior` is the table of the prior; its data are used if the chain has ``estimated = true``.
    """
    form = table.form
    sampling = sampling_of(table, source)
    _check_keys(table, source)
    if form not in _COUNTED:
        chains = _walk(table, source, domain) if form == "neighbours" else _read(table, source, domain)
        return Transitions(chains, table.by, sampling.every)
    visits, read = _visits(table, source, domain, prior, sampling)
    smoothing = table.smoothing or 0.0
    with source.keys({"traces": form, "counts": form}):
        counts = _count_steps(visits, domain.size, table.by == "hour")
        chains = tuple(MarkovChain.from_counts(each, smoothing, ends=table.ends or "any") for each in counts)
    notes = (*read.notes, *_notes_on_counts(visits, read, source))
    if (never_left := int((counts.sum(axis=2) == 0).sum())) and not smoothing:
        of = f"{never_left} of {len(chains) * domain.size} rows"
        notes += (f'{source}: no departure was observed for {of}: the chain stays there (ends = "stay")',)
    median = read.median if read.sampling.every is None else None
    return Transitions(chains, table.by, read.sampling.every, median, notes)


def _notes_on_counts(visits: Visits, read: Read, source: Source) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    if read.sampling.every is None and read.median is not None:
        notes = (
            f"{source}: steps lead from each point to the next, with a median interval of {seconds_text(read.median)}; "
            'set every, for example every = "5 min", for even steps',
        )
    steps = sum(len(cells) - 1 for cells in visits.cells)
    notes += (f"{source}: {steps} steps of {len(dict.fromkeys(visits.users))} user(s) counted",)
    if not read.timed:
        notes += (f"{source}: no times are read: points are in the order of the file",)
    leaving = sum(visits.exits)
    if leaving:
        share = percent(leaving / (steps + leaving))
        notes += (
            f"{source}: {leaving} steps leave the box, {share} of all that start inside; these steps are left out, so "
            "the chain describes people who stay inside",
        )
    return notes


def _check_keys(table: ChainTable, source: Source) -> None:
    """Raise `SpecificationError` for keys that the form of the chain does not use."""
    form = table.form
    counted = form in _COUNTED
    keys = {"smoothing": counted, "gap": counted, "ends": counted, "by": counted or form == "paths"}
    for key, fits in (keys | dict.fromkeys(("header", "index"), form in ("path", "paths"))).items():
        if getattr(table, key) is not None and not fits:
            raise source.error(key, f"cannot be combined with {form}", remedy="remove the key")
    if form == "paths" and table.by is None:
        raise source.error(
            "by", "is missing", bound='"hour" or "step"', remedy="state whether each path is for an hour or a step"
        )
    if counted and table.by == "step":
        remedy = "name files: paths"
        raise source.error("by", "cannot be combined with data", value="step", bound='"hour"', remedy=remedy)


def _count_steps(visits: Visits, n: int, hourly: bool) -> Floats:
    """Return the number of observations of each step, shape (1, n, n).

    If `hourly` is true, the shape is (24, n, n): steps are counted by the hour of the day (UTC) in which they start.
    """
    counts = np.zeros((_HOURS if hourly else 1, n, n))
    for cells, times in zip(visits.cells, visits.times or [None] * len(visits.cells), strict=True):
        if hourly and times is None:
            raise InputError("by", "needs data with times", value="hour", bound="a column time")
        start = np.zeros_like(cells) if times is None or not hourly else _hours(times)
        np.add.at(counts, (start[:-1], cells[:-1], cells[1:]), 1.0)
    return counts


def _hours(times: Times) -> Integers:
    """Return the hours of the day (UTC) of times, int64."""
    hours: Integers = times.astype("datetime64[h]").astype(np.int64) % _HOURS
    return hours


def possible_steps(table: ChainTable, source: Source, domain: Domain, prior: PriorTable) -> sparse.csr_array:
    """Return a matrix (n, n) whose positive entries are the possible steps.

    A state without an observed departure has no steps.
    """
    _require_one(table, source, "changes with time, but a policy graph does not")
    sampling = sampling_of(table, source)
    for key, problem in (
        ("smoothing", "would make every step possible, and so join all secrets"),
        ("ends", "cannot be combined with a policy graph"),
    ):
        if getattr(table, key) is not None:
            raise source.error(key, problem, remedy="remove the key")
    _check_keys(table, source)
    if table.form in ("path", "neighbours"):
        (chain,) = (_read if table.form == "path" else _walk)(table, source, domain)
        return sparse.csr_array(chain.matrix)
    cells = _visits(table, source, domain, prior, sampling)[0].cells
    ends = [np.concatenate([stretch[part] for stretch in cells]) for part in (slice(None, -1), slice(1, None))]
    return sparse.csr_array((np.ones(len(ends[0])), tuple(ends)), shape=(domain.size, domain.size))


def _require_one(table: ChainTable, source: Source, problem: str, bound: str = "") -> None:
    """Raise `SpecificationError` for a chain that changes with time."""
    if table.by is not None or table.paths is not None:
        raise source.error("by" if table.paths is None else "paths", problem, bound=bound)


def _read(table: ChainTable, source: Source, domain: Domain) -> tuple[MarkovChain, ...]:
    """Return the chain in the file `path`, or the chains in the files `paths`; equal files are read once."""
    if table.path is not None:
        return (_read_file(table.path, table, source, "path", domain),)
    names = table.paths or []
    if not names or (table.by == "hour" and len(names) != _HOURS):
        bound = "24 files" if table.by == "hour" else "at least one file"
        raise source.error("paths", "has the wrong number of files", value=len(names), bound=bound)
    known: dict[str, MarkovChain] = {}
    for index, name in enumerate(names):
        if name not in known:
            known[name] = _read_file(name, table, source, f"paths[{index}]", domain)
    return tuple(known[name] for name in names)


def _read_file(name: str, table: ChainTable, source: Source, key: str, domain: Domain) -> MarkovChain:
    with source.file(table, name, key) as file:
        found = read_dense(file, table.header, table.index, source.layout)
    if np.shape(found) != (domain.size, domain.size):
        raise source.error(
            key,
            "has the wrong shape",
            value=np.shape(found),
            bound=f"{domain.size} rows and {domain.size} columns, like the domain",
        )
    with source.keys({"matrix": key}):
        ordered = match_names(found, "matrix", domain.labels, domain.labels)
        with withholding_values():
            return MarkovChain(ordered)


def _walk(table: ChainTable, source: Source, domain: Domain) -> tuple[MarkovChain, ...]:
    """Return the chain that stays in its cell or moves to a neighbouring cell, each with the same probability."""
    near = neighbours(domain, table.neighbours or 0, source / "neighbours")
    matrix = np.eye(domain.size)
    matrix[near[:, 0], near[:, 1]] = matrix[near[:, 1], near[:, 0]] = 1.0
    return (MarkovChain(matrix / matrix.sum(axis=1, keepdims=True)),)


def neighbours(domain: Domain, count: int, source: Source) -> Integers:
    """Return the pairs of neighbouring cells of a grid, shape (k, 2); a cell has `count` (4 or 8) neighbours."""
    cells = domain.cells
    if cells is None:
        raise source.error("", "needs a grid", bound="a domain with grid = { … }", remedy="use edges")
    pairs = edge_array(graphs.neighbours8(cells))
    rows, columns = np.divmod(pairs, cells.columns)
    share_side = (rows[:, 0] == rows[:, 1]) | (columns[:, 0] == columns[:, 1])
    return pairs if count == 8 else pairs[share_side]


def _visits(
    table: ChainTable, source: Source, domain: Domain, prior: PriorTable, sampling: Sampling
) -> tuple[Visits, Read]:
    """Return the visits whose steps are counted; raise `SpecificationError` if times leave their order open."""
    data, place = table.checkins or table.plt, source / table.form
    if data is None:
        data, place = prior.checkins or prior.plt, replace(source, path=("prior", prior.form))
    if data is None:
        raise source.error(
            "estimated",
            "needs data in order of time, but the prior does not come from ordered data",
            bound="true with a prior from checkins or plt",
            remedy="name a file instead: path, checkins or plt",
        )
    visits, read = read_visits(data, place, domain, None if sampling == Sampling() else sampling)
    with place.keys({"traces": ""}):
        visits.require_order()
    return visits, read


def build_correlations(
    table: ChainTable, source: Source, domain: Domain, prior: PriorTable
) -> tuple[Correlations, tuple[str, ...]]:
    """Return the forward and backward chains described by the table at `source`, and notes for the user.

    If the chain is counted from data, the backward chain follows from the numbers of steps that leave each state.
    Counts are not smoothed. If the chain is not counted, the backward chain follows from the stationary distribution.
    Raises `SpecificationError` for chains that change with time.
    """
    form = table.form
    _require_one(table, source, "changes with time, so it has more than one matrix", "one chain")
    if form not in _COUNTED:
        made = build_chain(table, source, domain, prior)
        (chain,) = made.chains
        with source.keys({"matrix": form, "initial": form}):
            stationary = chain.stationary()
            backward = chain.reverse(stationary)
        states = np.arange(domain.size)
        return Correlations(chain, backward, stationary, states, 0), made.notes
    sampling = sampling_of(table, source)
    visits, read = _visits(table, source, domain, prior, sampling)
    with source.keys({"traces": form}):
        found = correlations_from_traces(visits, domain.size, ends=table.ends or "any")
    return found, (*read.notes, *_notes_on_counts(visits, read, source))
