"""Read a trace to release: the true state of each step, by its label, its index or its place."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Integers
from mechdesign.base._errors import InputError, Shown
from mechdesign.data.labels import Names
from mechdesign.data.movement import Fault, LeftOut, Movement, blank, degrees_of, numbers_of, order_in_time, time_faults
from mechdesign.data.table import Table as Columns
from mechdesign.data.table import read_table
from mechdesign.data.trajectories import Resampled, Sampling, as_states, find_state, locator, sampled, seconds_text
from mechdesign.mechanisms._kinds import MECHANISMS
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import ChainTable, PriorTable, Table, says
from mechdesign.model._locate import DEGREES, PLANE
from mechdesign.specification._read import Source
from mechdesign.traces._planner import OPTIMAL

States = str | os.PathLike[str] | Mapping[str, Sequence[object]] | Sequence[object] | NDArray[Any]
"""The true states of a trace: a file, a table with named columns, or a sequence of states or places."""

_FORMS = "a column state, columns latitude and longitude, or columns x and y"


if TYPE_CHECKING:
    Mechanism = str
else:
    Mechanism = Literal[(OPTIMAL, *MECHANISMS)]


class ReleaseTable(Table, frozen=True):
    """The release of a trace."""

    mechanism: Annotated[
        Mechanism,
        says(
            'the name of a mechanism of `mechdesign.mechanisms`, such as "planar-isotropic" or "laplace". With "lp", '
            "the optimal channel is solved at each step with the settings of ``[solver]``."
        ),
    ] = "planar-isotropic"
    transition: Annotated[
        ChainTable | None, says("the transitions between states, which the adversary knows as well.")
    ] = None
    every: Annotated[
        str | None, says('the length of even steps, such as "5 min", at which the trace is resampled.')
    ] = None
    gap: Annotated[
        str | None,
        says("the longest allowed time without a state; a trace with a longer gap is refused; default three steps."),
    ] = None
    state: Annotated[str | None, says('the column of the trace with the states; "state" by default.')] = None
    latitude: Annotated[str | None, says('the column with the latitude in degrees; "latitude" by default.')] = None
    longitude: Annotated[str | None, says('the column with the longitude in degrees; "longitude" by default.')] = None
    time: Annotated[
        str | None, says('the column with the time, by which steps are sorted; "time" by default, if there is one.')
    ] = None
    user: Annotated[
        str | bool | None,
        says(
            "the column with the user, who must be one person, or false: all rows are one person's; required if the "
            "trace has other columns than those of states and times."
        ),
    ] = None
    initial: Annotated[
        PriorTable | None, says("the adversary's belief before the first step; by default the prior.")
    ] = None
    snap: Annotated[
        bool | None, says("whether answers are secrets, or any places, for mechanisms that support both.")
    ] = None
    seed: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None,
        says("for rehearsals only: anyone who knows the seed of a published trace can recover the truth."),
    ] = None
    history: Annotated[
        Literal["others", "own"] | None,
        says(
            "whose data are behind prior, chain and policy, required if they were counted: "
            '"others" states that the data do not include the person whose trace is released, "own" that they may, '
            "which also needs --own-history. The manifest repeats the statement, and nobody checks it."
        ),
    ] = None


@dataclass(frozen=True, eq=False)
class Steps:
    """The true states of a trace, with their times.

    Attributes:
        states: Indices of the states, int64 of shape (steps,).
        times: UTC, datetime64[s] of shape (steps,), or None.
        notes: Sentences about the rows that were left out.
        where: The place of each state in a file or a table, for errors; empty if states were given by themselves.

    >>> Steps(np.array([0, 1]), np.array([0, 60], dtype="datetime64[s]")).interval
    60.0
    """

    states: Integers
    times: NDArray[np.datetime64] | None = None
    notes: tuple[str, ...] = ()
    where: tuple[str, ...] = ()

    def resampled(self, sampling: Sampling) -> Steps:
        """Return the states at even steps, with a note; raise `InputError` without times, or at a longer gap."""
        if self.times is None:
            raise InputError("trace", "has no times for resampling", bound="a column time")
        found = sampled(self.times, sampling)
        if len(found) > 1:
            raise InputError(
                "trace",
                f"is interrupted after step {int(found[0][-1])}",
                bound=f"no gap longer than {seconds_text(sampling.gap or 0)}",
                remedy="release the parts as separate traces, or allow a longer gap",
            )
        taken = found[0]
        times = self.times[taken]
        if sampling.every is not None:
            times = self.times[0] + np.arange(len(taken)) * np.timedelta64(sampling.every, "s")
        statistics = Resampled(sampling, self.interval, len(self.states), len(np.unique(taken)), 0)
        where = tuple(self.where[step] for step in taken.tolist()) if self.where else ()
        return Steps(self.states[taken], times, (*self.notes, str(statistics)), where)

    @property
    def interval(self) -> float | None:
        """The median time between successive states, in seconds; None if times are unknown."""
        if self.times is None or len(self.times) < 2:
            return None
        return float(np.median(np.diff(self.times).astype(np.int64)))


def read_steps(trace: States, table: ReleaseTable, source: Source, domain: Domain) -> Steps:
    """Return the states of a trace, in the order of their times if there are any.

    In a table with times, a row without a time or a state is left out, up to the share ``missing`` of ``[files]``.
    Raises `InputError` at the line of a wrong row, and `SpecificationError` for a key that `table` at `source` lacks.
    """
    if not isinstance(trace, str | os.PathLike | Mapping) and not hasattr(trace, "columns"):
        return Steps(as_states(trace, domain))
    read = read_table(trace, None, source.layout)
    form, columns = _columns_of(read, table, source)
    values, faults = _values_of(read, form, columns)
    if isinstance(table.user, str):
        faults.insert(0, blank(read, table.user, "user"))
    time = table.time or ("time" if "time" in read.columns else None)
    if time is None:
        for _, rows, error in faults:
            if rows.any():
                raise error(int(np.argmax(rows)))
        states = _located(read, form, columns, values, range(len(read)), domain)
        notes = ("no times are read: steps are in the order of the file",)
        return Steps(states, None, notes, tuple(map(read.where, range(len(read)))))
    if np.asarray(read.columns[time]).dtype.kind == "M":
        # The layout tells how texts are read, and these are times already.
        read = replace(read, layout=replace(read.layout, time_format=None))
    found, left_out = read.times(time), LeftOut(read.layout.missing)
    kept = left_out.keep(read, [*time_faults(read, time, found[1]), *faults])
    left_out.check()
    order, unknown = order_in_time(found[0], kept)
    states = _located(read, form, columns, values, order.tolist(), domain)
    unknown &= np.diff(states, prepend=-1) != 0
    if unknown.any():
        many = int(unknown.sum())
        problem = f"leaves the order of {many} steps open: times are equal, and rows neither ascend nor descend"
        first = int(order[int(np.argmax(unknown))])
        raise InputError(read.where(first, time), problem, bound="distinct times, or rows in their order")
    note = Movement((), left_out.counts).note
    times, where = found[0].seconds[order].astype("datetime64[s]"), tuple(map(read.where, order.tolist()))
    return Steps(states, times, (note,) if note else (), where)


def _columns_of(read: Columns, table: ReleaseTable, source: Source) -> tuple[str, list[str]]:
    """Return the form of the states, "state", "degrees" or "plane", and their columns."""
    name = read.name or "trace"
    for key in ("state", "latitude", "longitude", "time", "user"):
        if isinstance(column := getattr(table, key), str) and column not in read.columns:
            raise source.error(key, f"is not a column of {name}", value=column, bound="one of its columns")
    forms = {"state": [table.state or "state"], "plane": ["x", "y"]}
    forms["degrees"] = [table.latitude or "latitude", table.longitude or "longitude"]
    places = bool(table.latitude or table.longitude)
    if table.state and places:
        raise source.error("state", "cannot be combined with latitude and longitude", value=table.state)
    possible = ["state"] if table.state else ["degrees"] if places else list(forms)
    found = [form for form in possible if set(forms[form]) <= set(read.columns)]
    # A released trace has both, and a label may be the number of another state.
    labelled = table.state is None and {"state", "label"} <= set(read.columns)
    if len(found) != 1 or (labelled and not places):
        problem = "gives states in several ways" if found else "has no column of states"
        remedy = (
            'set delimiter in [files], or name the columns in [release]: state = "COLUMN", or latitude and longitude'
        )
        raise InputError(name, problem, bound=_FORMS, remedy=remedy)
    if not len(read):
        raise InputError(name, "contains no steps", bound="at least one row below its header")
    _require_one_person(read, table.user, {*forms[found[0]], table.time or "time"}, source)
    return found[0], forms[found[0]]


def _require_one_person(read: Columns, user: str | bool | None, used: set[str], source: Source) -> None:
    """Raise an error unless all rows are one person's: by a column, as declared, or because no other column exists."""
    name = read.name or "trace"
    column = source.user_column(user, name if set(read.columns) - used else "")
    people = len({text for text in read.texts(column) if text.strip()}) if column is not None else 1
    if people > 1:
        remedy = "release the rows of each person as a separate trace"
        bound = "one person: a trace and its budget belong to one person"
        raise InputError(
            f"{name}, column {user}", "names several people", value=Shown(f"{people} of them"), bound=bound,
            remedy=remedy,
        )  # fmt: skip


def _values_of(read: Columns, form: str, columns: Sequence[str]) -> tuple[Any, list[Fault]]:
    """Return the states of all rows, or their places (rows, 2), and the kinds of rows without one."""
    faults: list[Fault] = []
    if form == "state":
        texts = read.texts(columns[0])
        faults.append(blank(read, columns[0], "state"))
        return texts if read.name else read.columns[columns[0]], faults
    names = columns[0], columns[1]
    return np.column_stack((degrees_of if form == "degrees" else numbers_of)(read, names, faults)), faults


def _located(
    read: Columns, form: str, columns: Sequence[str], values: Any, rows: Iterable[int], domain: Domain
) -> Integers:
    """Return the states of some rows of a table, as indices into the domain."""
    if form != "state":
        find = locator(domain, DEGREES if form == "degrees" else PLANE, read.name or "trace")
        return np.array([find(values[row], read.where(row)) for row in rows], dtype=np.int64)
    names = Names.of(domain.labels)
    if not read.name:
        return np.array([find_state(names, values[row], read.where(row, columns[0])) for row in rows], dtype=np.int64)
    return np.array([names.find_text(values[row], read.where(row, columns[0])) for row in rows], dtype=np.int64)
