"""Compare the times of a trace with those of the data that its prior, its chain and its policy were counted in.

Counted are check-ins, trajectories, raw visits and files of counts, and matrices that `mechdesign chain` has written.
Of other matrices, and of numbers in the specification, nobody here knows where they come from. The rows of a table are
those of the users that ``only`` keeps; they are compared as they stand in the file, before even steps are made of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.data._matrices import counts_of
from mechdesign.data._states import Steps
from mechdesign.model._grammar import ChainTable
from mechdesign.model._grammar import Raw
from mechdesign.base._errors import HistoryWarning
from mechdesign.base._errors import SpecificationError
from mechdesign.traces._released import History
from mechdesign.spec.document import Document
from mechdesign.spec.priors import PriorTable
from mechdesign.spec.priors import read_traces
from mechdesign.spec.tables import convert
from mechdesign.spec.tables import one_of
from mechdesign.base._check import as_truth
from mechdesign.base._warnings import silenced
from mechdesign.base._warnings import warn

__all__ = ["compared"]

_TRACES = ("checkins", "plt")
_COUNTS = ("csv", "visits")
_NUMBERS = ("counts", "probabilities")
# What `mechdesign chain` writes into one folder.
_CHAIN, _STATES = ("forward.csv", "backward.csv"), "states.csv"


class _Source(NamedTuple):
    """Where something comes from: a key, the table of data with times, if there is one, and whether it was counted."""

    key: str
    form: str
    raw: Raw | None
    counted: bool = True


def compared(
    document: Document, folder: Path, steps: Steps, *, others: bool = False, own_history: bool = False
) -> History:
    """Return what the public files of a trace depend on beyond its outputs.

    Args:
        document: The specification; what it says of prior, chain and policy has been read without an error.
        folder: The folder that its file names are relative to.
        steps: The trace, whose times matter alone.
        others: Whether it is stated that the data are not of the person whose trace it is.
        own_history: Whether a trace is released whose own rows, or those of its time, were counted.

    Raises:
        SpecificationError: Rows that were counted lie between the first and the last time of the trace.

    Warns:
        HistoryWarning: Something was counted in data, and trace or data have no times.
    """
    as_truth(own_history, "own_history")
    sources = list(_sources(document, folder))
    counted = tuple(source.key for source in sources if source.counted)
    given = tuple(source.key for source in sources if not source.counted)
    if others and own_history:
        raise SpecificationError(
            "release.history",
            "contradicts --own-history",
            value="others",
            bound="one of the two",
            remedy="leave one of them out",
        )
    if others or not counted:
        return History(counted, given, others=others)
    found = [_rows_within(source, folder, steps.span) for source in sources if source.counted]
    if True in found and not own_history:
        key = counted[found.index(True)]
        raise SpecificationError(
            key,
            "counts rows of the time of the trace: what is published would depend on the true states",
            bound="rows before the first or after the last time of the trace",
            remedy="count in other data; or insist (--own-history, own_history=True in Python); or state in [release] "
            'that the data are not of this person (history = "others")',
        )
    within = True if True in found else None if None in found else False
    if within is None and own_history:
        within = True
    elif within is None:
        warn(
            f"{', '.join(counted)}: counted in data, and without times nothing tells whether the trace is among them. "
            "Costs and channels, which are published, depend on these data. Give times to the trace and to the data, "
            'or state in [release] that the data are not of this person (history = "others")',
            HistoryWarning,
            stacklevel=3,
        )
    return History(counted, given, within)


def _rows_within(source: _Source, folder: Path, span: tuple[np.datetime64, np.datetime64] | None) -> bool | None:
    """Tell whether a row lies in the time from the first to the last of `span`, both included; None if not known."""
    if span is None or source.raw is None:
        return None
    # As they were seen: even steps would put them to other times.
    raw = {key: value for key, value in source.raw.items() if key not in ("every", "gap")}
    # Reading the same table before has warned of it.
    with silenced(Warning):
        found = read_traces(raw, source.form, source.key, folder).found
    known = True
    for trace in found:
        if trace.time is None:
            known = False
        elif _any_between(trace.time, span):
            return True
    return False if known else None


def _any_between(times: NDArray[np.datetime64], span: tuple[np.datetime64, np.datetime64]) -> bool:
    return bool(((times >= span[0]) & (times <= span[1])).any())


def _sources(document: Document, folder: Path) -> Iterator[_Source]:
    release = document.release
    if "initial" in release:
        yield from _prior(release["initial"], "release.initial")
    if "initial" not in release or "anchors" in document.domain:
        # Costs of anchors are those of the visits.
        yield from _prior(document.prior, "prior")
    yield from _chain(release.get("transition"), "release.transition", document.prior, folder)
    for place, raw in enumerate(document.privacy):
        yield from _chain(raw.get("transitions"), f"privacy[{place}].transitions", document.prior, folder)


def _prior(raw: Raw, path: str) -> Iterator[_Source]:
    table = convert(raw, PriorTable, path)
    form = one_of(table, path)
    if form in _TRACES:
        yield _Source(f"{path}.{form}", form, getattr(table, form))
    elif form in _COUNTS:
        yield _Source(f"{path}.{form}", form, None)
    elif form in _NUMBERS:
        yield _Source(f"{path}.{form}", form, None, counted=False)


def _chain(raw: Raw | None, path: str, prior: Raw, folder: Path) -> Iterator[_Source]:
    if raw is None:
        return
    table = convert(raw, ChainTable, path)
    form = one_of(table, path)
    if form in _TRACES:
        yield _Source(f"{path}.{form}", form, getattr(table, form))
    elif form == "estimated":
        (data,) = (source for source in _prior(prior, "prior") if source.form in _TRACES)
        yield _Source(f"{path}.{form}", data.form, data.raw)
    elif form in ("path", "paths"):
        names = [Path(name) for name in ([table.path] if table.path is not None else table.paths or ())]
        counted = any(_is_counted(folder / name) for name in names)
        yield _Source(f"{path}.{form}", form, None, counted)


def _is_counted(matrix: Path) -> bool:
    """Tell whether a file is one of `mechdesign chain`, by what stands with it, or where a link leads to."""
    places = (matrix, matrix.resolve())
    named = any(place.name in _CHAIN and place.with_name(_STATES).is_file() for place in places)
    return named or counts_of(matrix) is not None
