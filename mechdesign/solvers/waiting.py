"""Wait for a solver that works elsewhere, in another thread or process: report now and then, and listen to Ctrl-C."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from mechdesign.base import _interrupts as interrupts
from mechdesign.solvers.contract import Progress
from mechdesign.solvers.contract import ProgressCallback

__all__ = ["Moment", "wait"]

_SECONDS_BETWEEN_REPORTS = 0.5
_LOOK = 0.1


@dataclass
class Moment:
    """What the solver tells (stage, iteration) and is told (stop)."""

    stage: str
    iteration: int = 0
    stop: bool = False


def wait(
    done: threading.Event,
    moment: Moment,
    progress: ProgressCallback | None,
    stop: Callable[[], None],
    seconds: float | None = None,
) -> bool:
    """Wait until `done`, for so many seconds at most; call `stop` on every Ctrl-C; return whether one came."""
    clock = time.perf_counter()
    next_report = _SECONDS_BETWEEN_REPORTS
    interrupted = False
    while True:
        try:
            interrupts.check()
            elapsed = time.perf_counter() - clock
            left = _LOOK if seconds is None else min(_LOOK, seconds - elapsed)
            if done.wait(max(left, 0.0)) or left <= 0:
                return interrupted
            elapsed = time.perf_counter() - clock
            if progress is not None and elapsed >= next_report:
                next_report = elapsed + _SECONDS_BETWEEN_REPORTS
                progress(Progress(moment.stage, elapsed, moment.iteration))
        except KeyboardInterrupt:
            interrupted = True
            stop()
