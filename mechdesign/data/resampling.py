"""Resample traces at even time steps, and cut them at long gaps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Integers
from mechdesign.base._errors import InputError
from mechdesign.data.trajectories import Trajectory

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
