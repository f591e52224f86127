"""Bring traces to even steps: one point every few minutes, cut where nothing was seen for long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Integers
from mechdesign.base._errors import InputError
from mechdesign.data._trajectories import Trajectory

_SECONDS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*")
_LONGEST = 366 * 86_400

# Gaps may be this many steps long unless another length is given.
_STEPS_PER_GAP = 3


@dataclass(frozen=True)
class Sampling:
    """How time is divided, in seconds.

    Attributes:
        every: the length of a step; None leaves points as they are.
        gap: traces are cut where two points are further apart; three steps unless given, None without steps.
    """

    every: int | None = None
    gap: int | None = None

    def __post_init__(self) -> None:
        for name in ("every", "gap"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= _LONGEST:
                raise InputError(name, "is out of range", value=value, bound="between 1 s and 366 d")
        if self.every is not None:
            if self.gap is None:
                object.__setattr__(self, "gap", _STEPS_PER_GAP * self.every)
            elif self.gap < self.every:
                bound = f"at least {seconds_text(self.every)}, the length of a step"
                raise InputError("gap", "is shorter than a step", value=seconds_text(self.gap), bound=bound)

    @classmethod
    def of(cls, every: str | None, gap: str | None) -> Sampling:
        """Return the sampling that texts such as "5 min" describe; raise `InputError` naming ``every`` or ``gap``."""
        lengths = (None if text is None else duration(text, name) for name, text in (("every", every), ("gap", gap)))
        return cls(*lengths)


@dataclass(frozen=True)
class Resampled:
    """What became of the points of traces.

    Attributes:
        sampling: how time was divided.
        median: the median interval between successive points before, in seconds; None without times.
        points: how many points there were.
        kept: how many of them are the last before the end of a step.
        gaps: at how many places traces were cut.
    """

    sampling: Sampling
    median: float | None
    points: int
    kept: int
    gaps: int

    def __str__(self) -> str:
        """Say it in a sentence."""
        median = "" if self.median is None else f" (median interval {seconds_text(self.median)})"
        cut = f"cut at {self.gaps} gap{'s' * (self.gaps != 1)} longer than {seconds_text(self.sampling.gap or 0)}"
        if self.sampling.every is None:
            return f"{self.points} points{median}" + (f", {cut}" if self.sampling.gap is not None else "")
        return (
            f"{self.points} points{median} resampled to one every {seconds_text(self.sampling.every)}: "
            f"{self.points - self.kept} of them dropped, {cut}"
        )


def duration(text: str, path: str) -> int:
    """Return a length of time such as "30 s", "5 min", "1.5 h" or "1 day" in seconds; raise `InputError` naming `path`.

    >>> duration("5 min", "every")
    300
    """
    found = _DURATION.fullmatch(text.lower()) if isinstance(text, str) else None
    if found is None or found[2] not in _SECONDS:
        raise InputError(path, "is not a length of time", value=text, bound='such as "30 s", "5 min", "1 h" or "1 day"')
    seconds = float(found[1]) * _SECONDS[found[2]]
    if seconds != int(seconds) or seconds < 1:
        raise InputError(path, "is not a whole number of seconds", value=text, bound="at least 1 s")
    return int(seconds)


def seconds_text(seconds: float) -> str:
    """Return a length of time as people write it.

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
    """Return for each stretch of a trace the index of the point that each of its steps takes.

    `times` (k,) ascend. A stretch starts with its first point, and has a step every `sampling.every` seconds, as long
    as there are points; it takes the last point until then. Without `every` all points are taken.
    """
    seconds = times.astype("datetime64[s]").astype(np.int64)
    apart = np.diff(seconds)
    if (apart < 0).any():
        place = int(np.argmax(apart < 0)) + 1
        raise InputError(f"times[{place}]", "is before the one that precedes it", value=str(times[place]))
    longest = np.iinfo(np.int64).max if sampling.gap is None else sampling.gap
    cuts = np.flatnonzero(apart > longest) + 1
    found: list[Integers] = []
    for stretch in np.split(np.arange(len(seconds)), cuts):
        if sampling.every is not None:
            own = seconds[stretch]
            ticks = np.arange(own[0], own[-1] + 1, sampling.every)
            stretch = stretch[np.searchsorted(own, ticks, side="right") - 1]
        found.append(stretch.astype(np.int64))
    return found


def resample(traces: Iterable[Trajectory], sampling: Sampling) -> tuple[tuple[Trajectory, ...], Resampled]:
    """Return the stretches of traces at even steps, and what became of their points.

    Raises `InputError` for traces without times.
    """
    given = tuple(traces)
    stretches: list[Trajectory] = []
    kept = 0
    for trace in given:
        if trace.time is None:
            raise InputError("time", "is missing", bound="a column of times, by which traces are resampled")
        for taken in sampled(trace.time, sampling):
            kept += len(np.unique(taken))
            stretches.append(Trajectory(trace.user, trace.latitude[taken], trace.longitude[taken], trace.time[taken]))
    points = sum(map(len, given))
    facts = Resampled(sampling, median_interval(given), points, kept, len(stretches) - len(given))
    return tuple(stretches), facts


def median_interval(traces: Sequence[Trajectory]) -> float | None:
    """Return the median interval between successive points, in seconds; None without times or successive points."""
    intervals = [np.diff(trace.time).astype(np.int64) for trace in traces if trace.time is not None]
    together = np.concatenate(intervals) if intervals else np.zeros(0, dtype=np.int64)
    return float(np.median(together)) if together.size else None
