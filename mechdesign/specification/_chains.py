"""Build the Markov chain, or the steps that it can take, that a specification describes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError, SmoothedChainWarning, StepWarning
from mechdesign.base._warnings import warn
from mechdesign.data._chain_counts import counts_of
from mechdesign.data._layout import withholding
from mechdesign.data._matrices import dense, read_chain_matrix
from mechdesign.data._resampling import Sampling, seconds_text
from mechdesign.data._states import Steps
from mechdesign.data._trajectories import Visits
from mechdesign.graphs import _builders as graphs
from mechdesign.graphs._builders import edge_array
from mechdesign.leakage._estimate import Correlations, correlations_from_traces
from mechdesign.leakage._transitions import disjoint_rows
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import ChainTable, PriorTable
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._words import percent
from mechdesign.specification._priors import Read, read_visits
from mechdesign.specification._read import Source

_COUNTED = ("estimated", "checkins", "plt")
_HOURS = 24

# By how much intervals may differ from the steps of a chain: as a share, and as a factor where they are not even.
_CLOSE, _FAR = 0.1, 2.0


@dataclass(frozen=True, eq=False)
class Transitions:
    """How states follow one another, as a table of a specification says.

    Attributes:
        chains: one chain, or those of successive steps, or of the hours of the day.
        by: what `chains` are for: "step", "hour", or None for one chain at all times.
        every: the length of a step in seconds, where the table says so.
        median: the median interval of the data that steps were counted in, in seconds, where they have no even steps.
        notes: what a user should know about the data.
    """

    chains: tuple[MarkovChain, ...]
    by: str | None = None
    every: int | None = None
    median: float | None = None
    notes: tuple[str, ...] = ()

    def along(self, steps: Steps, source: Source) -> MarkovChain | VaryingChain:
        """Return the chain, or chains, of a trace; raise `SpecificationError` where they do not fit its times.

        Warns with `StepWarning` where steps were counted in data of other intervals than those of the trace.
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
        hours = steps.times.astype("datetime64[h]").astype(np.int64) % _HOURS
        return VaryingChain(tuple(self.chains[hour] for hour in hours.tolist()))

    def _check_interval(self, interval: float | None, source: Source) -> None:
        if interval is None:
            return
        if self.every is not None and abs(interval - self.every) > _CLOSE * self.every:
            raise source.error(
                "every",
                "differs from the steps of the trace",
                value=f"{seconds_text(self.every)}, and states {seconds_text(interval)} apart in the median",
                bound="the same",
                remedy=f'resample the trace: [release] every = "{seconds_text(self.every)}"',
            )
        if self.median is not None and not interval / _FAR <= self.median <= interval * _FAR:
            warn(
                f"{source}: steps were counted in data with a median interval of {seconds_text(self.median)}, and the "
                f"states of the trace are {seconds_text(interval)} apart: give every, so that both have the same steps",
                StepWarning,
                stacklevel=2,
            )


def build_chain(table: ChainTable, source: Source, domain: Domain, prior: PriorTable) -> Transitions:
    """Return the chain, or chains, over `domain` that the table at `source` describes.

    `prior` is the table of the prior, whose data serve where the table says ``estimated = true``.
    """
    form = table.form
    with source.keys():
        sampling = Sampling.of(table.every, table.gap)
    _check_keys(table, source)
    if form not in _COUNTED:
        chains = {"path": _read, "paths": _read_several, "neighbours": _walk}[form](table, source, domain)
        _warn_of_smoothing(chains, source / form)
        return Transitions(chains, table.by, sampling.every)
    read = _visits(table, source, domain, prior, sampling)
    if table.border == "state":
        raise source.error(
            "border",
            "does not go with a release, whose states are those of the domain",
            value="state",
            bound='"cut"',
            remedy="leave it out, and make the box larger",
        )
    smoothing = table.smoothing or 0.0
    with source.keys({"traces": form, "counts": form}):
        counts = _hourly(read.visits, domain.size) if table.by == "hour" else _steps(read.visits, domain.size)[None]
        chains = tuple(MarkovChain.from_counts(each, smoothing, ends=table.ends or "stay") for each in counts)
    _warn_of_smoothing(chains, source)
    notes = (*read.notes, *_counted_notes(read, source), *_ends_notes(counts, smoothing, source))
    median = read.median if read.sampling.every is None else None
    return Transitions(chains, table.by, read.sampling.every, median, notes)


def _warn_of_smoothing(chains: tuple[MarkovChain, ...], source: Source) -> None:
    """Warn where chains were smoothed, and say what their counts alone give."""
    smoothed = list({id(chain): chain for chain in chains if chain.smoothing}.values())
    if not smoothed:
        return
    seen = sum(int(np.count_nonzero(chain.counts)) for chain in smoothed if chain.counts is not None)
    adds_up = any(disjoint_rows(sparse.csr_array(chain.unsmoothed().matrix)) is not None for chain in smoothed)
    adds = " By these leakage adds up without loss, and no positive budget lasts for ever." if adds_up else ""
    warn(
        f"{source}: smoothing {smoothed[0].smoothing:g} makes all {sum(chain.size**2 for chain in smoothed)} steps "
        f"possible; by the counts alone {seen} are.{adds} Smoothing is for beliefs: bounds on leakage rest on counts "
        "without it",
        SmoothedChainWarning,
        stacklevel=3,
    )


def _ends_notes(counts: Floats, smoothing: float, source: Source) -> tuple[str, ...]:
    """Say of which states nobody saw a step, where each of the chains (k, n, n) lets them stay."""
    never_left = int((counts.sum(axis=2) == 0).sum())
    if smoothing or not never_left:
        return ()
    many, n = counts.shape[:2]
    of = f"{n} states" if many == 1 else f"{many * n} states of {many} chains"
    taken = 'they are taken to stay (ends = "stay"); smoothing makes all steps possible, for beliefs'
    return (f"{source}: nobody was seen to leave {never_left} of {of}: {taken}",)


def _counted_notes(read: Read, source: Source, border: str | None = None) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    if read.sampling.every is None and read.median is not None:
        notes = (
            f"{source}: steps lead from a point to the next one, {seconds_text(read.median)} apart in the median; "
            'every = "5 min", say, makes them even',
        )
    steps = sum(len(cells) - 1 for cells in read.visits.cells)
    notes += (f"{source}: {steps} steps of {len(dict.fromkeys(read.visits.users))} user(s) counted", read.order)
    leaving = sum(read.visits.exits)
    if not leaving:
        return notes
    what = (
        "they lead to the state outside"
        if border == "state"
        else "they are left out: the chain is that of people who stay inside"
    )
    share = percent(leaving / (steps + leaving))
    return (*notes, f"{source}: {leaving} steps leave the box, {share} of all that start inside; {what}")


def _check_keys(table: ChainTable, source: Source) -> None:
    """Raise `SpecificationError` for keys that do not go with the form of the chain."""
    form = table.form
    counted = form in _COUNTED
    for key, fits, remedy in (
        ("smoothing", counted, "leave it out"),
        ("gap", counted, "leave it out: nothing is counted"),
        ("by", counted or form == "paths", "give the files of the matrices as paths"),
        ("ends", counted, "write the word in place of the row" if form in ("path", "paths") else "leave it out"),
        ("border", counted, "leave it out: nothing is counted"),
    ):
        if getattr(table, key) is not None and not fits:
            raise source.error(key, f"does not go with {form}", remedy=remedy)
    if form == "paths" and table.by is None:
        raise source.error("by", "is missing", bound='"hour" or "step"', remedy="say what paths are for")
    if counted and table.by == "step":
        raise source.error("by", "does not go with data", value="step", bound='"hour"', remedy="name files: paths")


def _steps(visits: Visits, n: int) -> Floats:
    """Return how often each step was seen, (n, n)."""
    counts = np.zeros((n, n))
    for cells in visits.cells:
        np.add.at(counts, (cells[:-1], cells[1:]), 1.0)
    return counts


def _hourly(visits: Visits, n: int) -> Floats:
    """Return how often each step was seen that starts in each hour of the day (UTC), (24, n, n)."""
    counts = np.zeros((_HOURS, n, n))
    if not visits.times or any(times is None for times in visits.times):
        raise InputError("by", "needs data with times", value="hour", bound="a column time")
    for cells, times in zip(visits.cells, visits.times, strict=True):
        assert times is not None
        hours = times.astype("datetime64[h]").astype(np.int64) % _HOURS
        np.add.at(counts, (hours[:-1], cells[:-1], cells[1:]), 1.0)
    return counts


def possible_steps(table: ChainTable, source: Source, domain: Domain, prior: PriorTable) -> sparse.csr_array:
    """Return a matrix (n, n) that is positive where a step is possible; no step leads from a state never left."""
    _require_one(table, source, "changes with time, and a policy graph does not")
    with source.keys():
        sampling = Sampling.of(table.every, table.gap)
    if table.smoothing is not None:
        raise source.error("smoothing", "would make every step possible, and join all secrets", remedy="leave it out")
    for key in ("ends", "border"):
        if getattr(table, key) is not None:
            raise source.error(key, "does not go with a policy graph", remedy="leave it out")
    if table.form in ("path", "neighbours"):
        (chain,) = (_read if table.form == "path" else _walk)(table, source, domain)
        return sparse.csr_array(chain.matrix)
    cells = _visits(table, source, domain, prior, sampling).visits.cells
    ends = [np.concatenate([stretch[part] for stretch in cells]) for part in (slice(None, -1), slice(1, None))]
    return sparse.csr_array((np.ones(len(ends[0])), tuple(ends)), shape=(domain.size, domain.size))


def _require_one(table: ChainTable, source: Source, problem: str, bound: str = "") -> None:
    """Raise `SpecificationError` for a chain that changes with time."""
    if table.by is not None or table.paths is not None:
        raise source.error("by" if table.paths is None else "paths", problem, bound=bound)


def _read(table: ChainTable, source: Source, domain: Domain) -> tuple[MarkovChain, ...]:
    return (_read_file(str(table.path), table, source, "path", domain),)


def _read_several(table: ChainTable, source: Source, domain: Domain) -> tuple[MarkovChain, ...]:
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
    with source.file(table, name) as file:
        read, word = read_chain_matrix(file, table.delimiter, (domain.size, domain.size))
        matrix = dense(read, file)
    if word:
        raise source.error(
            key,
            "holds no Markov chain: a word stands in place of rows",
            value=word,
            bound="a row of numbers, or the word stay, for each state",
            remedy='write stay in place of such rows, or count steps with ends = "stay"',
        )
    if matrix.shape != (domain.size, domain.size):
        raise source.error(
            key,
            "has the wrong shape",
            value=matrix.shape,
            bound=f"{domain.size} rows and {domain.size} columns, as the domain has members",
        )
    with source.file(name=name) as file:
        counted = counts_of(file)
    with source.keys({"matrix": key}), withholding():
        return MarkovChain(matrix) if counted is None else counted.chain(matrix)


def _walk(table: ChainTable, source: Source, domain: Domain) -> tuple[MarkovChain, ...]:
    """Return the chain that stays, or steps to any of the neighbours of a cell, all with the same probability."""
    near = neighbours(domain, table.neighbours or 0, source / "neighbours")
    matrix = np.eye(domain.size)
    matrix[near[:, 0], near[:, 1]] = matrix[near[:, 1], near[:, 0]] = 1.0
    return (MarkovChain(matrix / matrix.sum(axis=1, keepdims=True)),)


def neighbours(domain: Domain, count: int, source: Source) -> Integers:
    """Return the pairs of neighbouring cells of a grid, shape (k, 2); `count` is 4 or 8 for each cell."""
    if count not in (4, 8):
        raise source.error("", "is not a neighbourhood", value=count, bound="4 or 8")
    cells = domain.cells
    if cells is None:
        raise source.error("", "needs a grid", bound="a domain with grid = { … }", remedy="use edges")
    pairs = edge_array(graphs.neighbours8(cells))
    rows, columns = np.divmod(pairs, cells.columns)
    beside = (rows[:, 0] == rows[:, 1]) | (columns[:, 0] == columns[:, 1])
    return pairs if count == 8 else pairs[beside]


def _visits(table: ChainTable, source: Source, domain: Domain, prior: PriorTable, sampling: Sampling) -> Read:
    data, place = table.checkins or table.plt, source / table.form
    if data is None:
        if not table.estimated:
            raise place.error("", "cannot be false", value=False, bound="true")
        data, place = prior.checkins or prior.plt, Source(("prior", prior.form), source.folder)
    if data is None:
        raise source.error(
            "estimated",
            "needs data in order of time, and the prior comes from none",
            bound="true beside a prior with checkins or plt",
            remedy="name a file instead: path, checkins or plt",
        )
    return read_visits(data, place, domain, None if sampling == Sampling() else sampling)


def build_correlations(
    table: ChainTable, source: Source, domain: Domain, prior: PriorTable
) -> tuple[Correlations, tuple[str, ...]]:
    """Return the chain that the table at `source` describes in both directions, and notes for the user.

    Of data, the backward direction follows from the frequencies of the states that steps leave, else from the
    stationary distribution. Raises `SpecificationError` for chains that change with time.
    """
    form = table.form
    _require_one(table, source, "changes with time: there is no one matrix", "one chain")
    if form not in _COUNTED:
        made = build_chain(table, source, domain, prior)
        (chain,) = made.chains
        with source.keys({"matrix": form, "initial": form}):
            stationary = chain.stationary()
            backward = chain.reverse(stationary)
        states = np.arange(domain.size)
        return Correlations(chain, backward, stationary, states, 0), made.notes
    with source.keys():
        sampling = Sampling.of(table.every, table.gap)
    read = _visits(table, source, domain, prior, sampling)
    smoothing = table.smoothing or 0.0
    with source.keys({"traces": form}):
        found = correlations_from_traces(
            read.visits,
            domain.size,
            smoothing,
            only_visited=not smoothing,
            ends=table.ends or "stay",
            border="state" if table.border == "state" and any(read.visits.exits) else "cut",
        )
    return found, (*read.notes, *_counted_notes(read, source, table.border))
