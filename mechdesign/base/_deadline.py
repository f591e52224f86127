"""The deadline of a computation: its clock, its time limit, Ctrl-C and its progress, as one value that is passed down.

A loop asks `Deadline.stop` whether to end, and returns the best that it has. Python raises KeyboardInterrupt wherever
the main thread happens to be: inside compiled code, or halfway through a certificate. Work that has a result to keep
runs in `Deadline.keeping`. From `keep` on, the first Ctrl-C only sets a mark there, which `stop` reports and `check`
raises where that does no harm; the second Ctrl-C is raised at once. Signals belong to the process, so the outermost
block counts. Only the main thread receives Ctrl-C; a deadline that was made in another thread does not see it.
"""

from __future__ import annotations

import copy
import enum
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mechdesign.base._errors import InputError


class Stop(enum.Enum):
    """Why a computation is to end: its time is over, the user asked once, or the user insists."""

    TIME = "time"
    USER = "user"
    USER_AGAIN = "user again"


class OutOfTimeError(Exception):
    """The time limit was reached in the middle of a task that has no partial result."""


@dataclass(frozen=True)
class Progress:
    """A moment of a long computation.

    Attributes:
        stage: What is done now, in words.
        seconds: Time since the whole computation began.
        iteration: Number of iterations, or rounds, so far.
        lower: Best lower bound of the cost, where one is known.
        upper: Cost of the best point, where one is known.
    """

    stage: str
    seconds: float
    iteration: int = 0
    lower: float | None = None
    upper: float | None = None


ProgressCallback = Callable[[Progress], None]


@dataclass
class _Wishes:
    """How often the user asked to stop, and how many of these wishes were raised, or are told by a result."""

    count: int = 0
    answered: int = 0


@dataclass
class _Grace:
    """The seconds that work may go on after the first Ctrl-C, and when they end; all parts of the work share it."""

    seconds: float
    end: float = math.inf


@dataclass
class _Signals(_Wishes):
    """The outermost block of `keeping`: its promise, and whether it keeps it yet; Ctrl-C is counted from then on."""

    promise: str | None = None
    keeps: bool = False


_open: _Signals | None = None
_promises: list[str] = []


class Deadline:
    """The clock of a computation, its limit, the user's wish to stop, and where progress is reported.

    Args:
        limit: Seconds from now on; None for no limit.
        progress: Function that is called with a `Progress` from time to time.
        clock: Function that returns seconds, such as `time.perf_counter`.

    Raises:
        InputError: The limit is negative or not a number.

    >>> deadline = Deadline(60.0)
    >>> deadline.stop() is None, deadline.left() <= 60.0
    (True, True)
    >>> Deadline(0.0).stop()
    <Stop.TIME: 'time'>

    Attributes:
        limit: Seconds from the beginning of the whole computation to the limit; None without one.
        progress: The function that is told of progress, or None.
    """

    def __init__(
        self,
        limit: float | None = None,
        progress: ProgressCallback | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if limit is not None and not limit >= 0:
            raise InputError("time_limit", "must not be negative", value=limit, bound="seconds >= 0, or None")
        self._clock, self.progress = clock, progress
        self._began = clock()
        self._end = math.inf if limit is None else self._began + limit
        self.limit = limit
        self._hears = _in_main_thread()
        self._cancellation = _Wishes()
        self._grace: _Grace | None = None

    def __reduce__(self) -> str | tuple[Callable[..., Deadline], tuple[float | None, float]]:
        """Pickle the time that is left; another process has its own clock, reports to nobody and is not cancelled."""
        return _resume, (self.left(), time.time())

    def __copy__(self) -> Deadline:
        """Copy the deadline in this process: the same clock, wishes and progress."""
        made = object.__new__(Deadline)
        made.__dict__.update(self.__dict__)
        return made

    def seconds(self) -> float:
        """Return the seconds since the whole computation began."""
        return self._clock() - self._began

    def left(self) -> float | None:
        """Return the seconds until the limit, at least 0; None without a limit."""
        return None if self._end == math.inf else max(0.0, self._end - self._clock())

    def part(
        self, share: float = 1.0, stage: str = "", *, seconds: float = math.inf, report: ProgressCallback | None = None
    ) -> Deadline:
        """Return a deadline for a part of the work; its end is fixed now.

        Args:
            share: Share of the time left that the part may use, in [0, 1].
            stage: Name of the part; it precedes every stage that the part reports. Its bounds are not reported, since
                they are not those of the whole.
            seconds: Most seconds that the part may use.
            report: Function that is called with the progress of the part, in place of that of the whole.
        """
        made = copy.copy(self)
        now = self._clock()
        made._end = now + min(share * (self._end - now) if self._end < math.inf else math.inf, seconds)
        made.limit = None if made._end == math.inf else made._end - self._began
        progress = self.progress
        if report is not None:
            made.progress = report
        elif stage and progress is not None:
            made.progress = lambda moment: progress(
                Progress(f"{stage}: {moment.stage}", moment.seconds, moment.iteration)
            )
        return made

    def quiet(self) -> Deadline:
        """Return the same deadline without progress."""
        made = copy.copy(self)
        made.progress = None
        return made

    def grace(self, seconds: float) -> Deadline:
        """Return a deadline for work that may go on after the first Ctrl-C, for so many seconds.

        They count from when the work learns of it. The time limit stays; the second Ctrl-C ends the work.
        """
        made = copy.copy(self)
        made._grace = _Grace(seconds)
        return made

    def stop(self) -> Stop | None:
        """Return why to stop, or None to go on."""
        wishes = self._cancellation.count + (_open.count if self._hears and _open is not None else 0)
        if wishes > 1:
            return Stop.USER_AGAIN
        now, grace = self._clock(), self._grace
        late = now >= self._end
        if wishes:
            if grace is not None and grace.end == math.inf:
                grace.end = now + grace.seconds
            # Once a result tells of the wish, the time limit is what ends the rest.
            told = all(each.count == each.answered for each in self._wishes())
            if (grace is None or now >= grace.end) and not (late and told):
                return Stop.USER
        return Stop.TIME if late else None

    def check(self) -> None:
        """Raise the user's wish to stop where that does no harm, once for each time.

        Raises:
            KeyboardInterrupt: There is one.
        """
        if any(wishes.count > wishes.answered for wishes in self._wishes()):
            self.acknowledge()
            raise KeyboardInterrupt

    def check_time(self) -> None:
        """Raise the reason to stop, where there is one.

        Raises:
            KeyboardInterrupt: The user asked to stop.
            OutOfTimeError: The time limit is reached.
        """
        self.check()
        if self.stop() is Stop.TIME:
            raise OutOfTimeError

    def tell(self, stage: str, iteration: int = 0, lower: float | None = None, upper: float | None = None) -> None:
        """Report progress."""
        if self.progress is not None:
            self.progress(Progress(stage, self.seconds(), iteration, lower, upper))

    def cancel(self) -> None:
        """Ask the computation to stop, as Ctrl-C does; from any thread. The second call insists."""
        self._cancellation.count += 1

    @contextmanager
    def keeping(self, what: str | None = None, *, at_once: bool = True) -> Iterator[None]:
        """Run work whose result is to be kept: the first Ctrl-C only sets a mark, the second one is raised.

        A mark that nobody acknowledged is raised at the end. A program that handles Ctrl-C itself goes on to do so.

        Args:
            what: What the user is told after the first Ctrl-C, such as "certifying the best channel found so far".
            at_once: Whether there is a result to keep from the start; otherwise Ctrl-C is raised up to `keep`.
        """
        global _open
        handler = signal.getsignal(signal.SIGINT)
        if not _in_main_thread() or _open is not None or handler not in (signal.default_int_handler, _mark):
            if at_once:
                keep()
            yield
            return
        signals = _Signals(promise=what, keeps=at_once)
        try:
            _open = signals
            signal.signal(signal.SIGINT, _mark)
            yield
        finally:
            # First, since Ctrl-C may come in between: no later block would be the outermost one.
            _open = None
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if signals.count > signals.answered:
            raise KeyboardInterrupt

    def acknowledge(self) -> bool:
        """Take responsibility for the user's wish to stop; return whether there was one.

        The result says then that it was stopped, and nothing is raised at the end of `keeping`.
        """
        came = [wishes for wishes in self._wishes() if wishes.count]
        for wishes in came:
            wishes.answered = wishes.count
        return bool(came)

    def _wishes(self) -> list[_Wishes]:
        signals = _open if self._hears and _in_main_thread() else None
        return [self._cancellation] if signals is None else [self._cancellation, signals]


class _NotBegun(Deadline):
    """The deadline of a computation that has not begun: there is one, and copies of it are itself."""

    def __reduce__(self) -> str:
        return "NOT_BEGUN"


def _resume(left: float | None, sent: float) -> Deadline:
    return Deadline(None if left is None else max(0.0, left - (time.time() - sent)))


def _mark(number: int, frame: object) -> None:
    if _open is not None and _open.keeps:
        _open.count += 1
        if _open.count == 1:
            return
        # The second one is raised here and now.
        _open.answered += 1
    raise KeyboardInterrupt


def keep() -> None:
    """Keep what there is now: in a block of `keeping`, the first Ctrl-C only sets a mark from here on."""
    if _open is not None and _in_main_thread():
        _open.keeps = True


@contextmanager
def promising(what: str) -> Iterator[None]:
    """State what the user is told after the first Ctrl-C in a block that catches KeyboardInterrupt itself."""
    _promises.append(what)
    try:
        yield
    finally:
        _promises.pop()


def promise() -> str | None:
    """Return what the first Ctrl-C would be answered with now, None where it ends everything at once."""
    if _promises:
        return _promises[0]
    return _open.promise if _open is not None and _open.keeps else None


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


NOT_BEGUN = _NotBegun()
