"""The deadline of a computation: clock, time limit, Ctrl-C and progress as one value.

A loop calls `Deadline.stop` in each round to learn whether to end; it then returns its best result. Python raises
KeyboardInterrupt at any point of the main thread: inside compiled code, or while a certificate is being computed. Work
whose result must be kept runs in `Deadline.keeping`. After `keep`, the first Ctrl-C only sets a flag. `stop` reports
the flag, and `check` raises KeyboardInterrupt at a safe point. A second Ctrl-C is raised at once. Signals belong to the
process, so only the outermost block handles them. Only the main thread receives Ctrl-C; a deadline from another thread
does not react to it.
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
    """The reason to end a computation: the time limit, the first request of the user, or the second request."""

    TIME = "time"
    USER = "user"
    USER_AGAIN = "user again"


class OutOfTimeError(Exception):
    """The time limit was reached during a task without a partial result."""


@dataclass(frozen=True)
class Progress:
    """A progress report of a long computation.

    Attributes:
        stage: Description of the current stage.
        seconds: Time since the start of the whole computation [s].
        iteration: Number of iterations or rounds so far.
        lower: Best lower bound on the cost, if known.
        upper: Cost of the best point, if known.
        left: Time until the time limit [s], if there is one.

    >>> Progress("pricing", 1.5, iteration=3).stage
    'pricing'
    """

    stage: str
    seconds: float
    iteration: int = 0
    lower: float | None = None
    upper: float | None = None
    left: float | None = None


ProgressCallback = Callable[[Progress], None]


@dataclass
class _StopRequests:
    """The number of requests to stop so far, and how many of these requests were raised or acknowledged."""

    count: int = 0
    answered: int = 0


@dataclass
class _Grace:
    """The seconds for which all parts of the work may continue after the first Ctrl-C, and the end of this period."""

    seconds: float
    end: float = math.inf


@dataclass
class _Signals(_StopRequests):
    """The outermost block of `keeping`: its message after Ctrl-C, and whether it already keeps a result."""

    promise: str | None = None
    keeps: bool = False


_open: _Signals | None = None
_promises: list[str] = []


class Deadline:
    """The clock of a computation, its time limit, requests to stop, and the progress callback.

    Args:
        limit: Seconds from now; None for no limit.
        progress: Function that receives a `Progress` from time to time.
        clock: Function that returns seconds, such as `time.perf_counter`.

    Raises:
        InputError: The limit is negative or not a number.

    >>> deadline = Deadline(60.0)
    >>> deadline.stop() is None, deadline.left() <= 60.0
    (True, True)
    >>> Deadline(0.0).stop()
    <Stop.TIME: 'time'>

    Attributes:
        limit: Seconds from the start of the whole computation to the limit; None without a limit.
        progress: The progress callback, or None.
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
        self._cancellation = _StopRequests()
        self._grace: _Grace | None = None

    def __reduce__(self) -> str | tuple[Callable[..., Deadline], tuple[float | None, float]]:
        """Pickle only the remaining time: another process has its own clock, and no progress callback or requests."""
        return _resume, (self.left(), time.time())

    def __copy__(self) -> Deadline:
        """Copy the deadline within this process; the copy shares clock, requests to stop and progress."""
        made = object.__new__(Deadline)
        made.__dict__.update(self.__dict__)
        return made

    def seconds(self) -> float:
        """Return the seconds since the start of the whole computation."""
        return self._clock() - self._began

    def left(self) -> float | None:
        """Return the seconds until the limit, at least 0; None without a limit."""
        return None if self._end == math.inf else max(0.0, self._end - self._clock())

    def part(
        self, share: float = 1.0, stage: str = "", *, seconds: float = math.inf, report: ProgressCallback | None = None
    ) -> Deadline:
        """Return a deadline for a part of the work; its end is fixed by this call.

        Args:
            share: Share of the remaining time that the part may use, in [0, 1].
            stage: Name of the part; it precedes every stage that the part reports. Bounds of a part are not reported,
                as they are not bounds for the whole computation.
            seconds: Time limit of the part [s].
            report: Progress callback of the part, instead of the callback of the whole computation.

        Returns:
            The deadline of the part.
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
                Progress(f"{stage}: {moment.stage}", moment.seconds, moment.iteration, left=moment.left)
            )
        return made

    def quiet(self) -> Deadline:
        """Return the same deadline without progress reports."""
        made = copy.copy(self)
        made.progress = None
        return made

    def grace(self, seconds: float) -> Deadline:
        """Return a deadline for work that may continue for some time after the first Ctrl-C.

        The time limit still applies, and a second Ctrl-C ends the work.

        Args:
            seconds: Seconds from the moment when the work notices the Ctrl-C.

        Returns:
            The deadline.
        """
        made = copy.copy(self)
        made._grace = _Grace(seconds)
        return made

    def stop(self) -> Stop | None:
        """Return the reason to stop, or None to continue."""
        requests = self._cancellation.count + (_open.count if self._hears and _open is not None else 0)
        if requests > 1:
            return Stop.USER_AGAIN
        now, grace = self._clock(), self._grace
        late = now >= self._end
        if requests:
            if grace is not None and grace.end == math.inf:
                grace.end = now + grace.seconds
            # Once all requests are acknowledged, the time limit ends the remaining work.
            acknowledged = all(each.count == each.answered for each in self._requests())
            if (grace is None or now >= grace.end) and not (late and acknowledged):
                return Stop.USER
        return Stop.TIME if late else None

    def check(self) -> None:
        """Raise KeyboardInterrupt at this safe point for a request to stop that is not yet answered.

        Raises:
            KeyboardInterrupt: There is a new request to stop.
        """
        if any(requests.count > requests.answered for requests in self._requests()):
            self.acknowledge()
            raise KeyboardInterrupt

    def check_time(self) -> None:
        """Raise if there is a reason to stop.

        Raises:
            KeyboardInterrupt: The user requested to stop.
            OutOfTimeError: The time limit is reached.
        """
        self.check()
        if self.stop() is Stop.TIME:
            raise OutOfTimeError

    def tell(self, stage: str, iteration: int = 0, lower: float | None = None, upper: float | None = None) -> None:
        """Report progress.

        Args:
            stage: Description of the current stage.
            iteration: Number of iterations or rounds so far.
            lower: Best lower bound on the cost, if known.
            upper: Cost of the best point, if known.
        """
        if self.progress is not None:
            self.progress(Progress(stage, self.seconds(), iteration, lower, upper, self.left()))

    def cancel(self) -> None:
        """Ask the computation to stop, as Ctrl-C does; any thread may call this method.

        A second call stops the computation at once.
        """
        self._cancellation.count += 1

    @contextmanager
    def keeping(self, what: str | None = None, *, at_once: bool = True) -> Iterator[None]:
        """Run work whose result must be kept: the first Ctrl-C only sets a flag, and the second Ctrl-C is raised.

        If the flag is not acknowledged, KeyboardInterrupt is raised at the end of the block. A program's own handler of
        Ctrl-C stays in place.

        Args:
            what: Message for the user after the first Ctrl-C, such as "certifying the best channel found so far".
            at_once: Whether there is a result to keep from the start; otherwise Ctrl-C is raised until `keep` is
                called.
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
            # Reset `_open` first: if Ctrl-C interrupted these lines, no later block could become the outermost block.
            _open = None
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if signals.count > signals.answered:
            raise KeyboardInterrupt

    def acknowledge(self) -> bool:
        """Acknowledge the request of the user to stop; return whether there was one.

        The result then records the stop, and nothing is raised at the end of `keeping`.
        """
        came = [requests for requests in self._requests() if requests.count]
        for requests in came:
            requests.answered = requests.count
        return bool(came)

    def _requests(self) -> list[_StopRequests]:
        signals = _open if self._hears and _in_main_thread() else None
        return [self._cancellation] if signals is None else [self._cancellation, signals]


class _NotBegun(Deadline):
    """The deadline of a computation that has not started; copying or unpickling it returns the original object."""

    def __reduce__(self) -> str:
        return "NOT_BEGUN"


def _resume(left: float | None, sent: float) -> Deadline:
    return Deadline(None if left is None else max(0.0, left - (time.time() - sent)))


def _mark(number: int, frame: object) -> None:
    if _open is not None and _open.keeps:
        _open.count += 1
        if _open.count == 1:
            return
        # The second request is raised at once.
        _open.answered += 1
    raise KeyboardInterrupt


def keep() -> None:
    """In a block of `keeping`: keep the current result, so that the first Ctrl-C only sets a flag from now on."""
    if _open is not None and _in_main_thread():
        _open.keeps = True


@contextmanager
def promising(what: str) -> Iterator[None]:
    """Set the message after the first Ctrl-C in a block that catches KeyboardInterrupt itself."""
    _promises.append(what)
    try:
        yield
    finally:
        _promises.pop()


def promise() -> str | None:
    """Return the message for a first Ctrl-C at this moment; None if Ctrl-C would end the work at once."""
    if _promises:
        return _promises[0]
    return _open.promise if _open is not None and _open.keeps else None


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


NOT_BEGUN = _NotBegun()
