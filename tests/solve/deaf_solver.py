"""A back end that does as its options say: it sleeps, dies, refuses, or answers. It is imported in other processes."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base._deadline import Progress
from mechdesign.errors import InputError
from mechdesign.solve._contract import Answer, Options, Status
from mechdesign.solve._linear import LinearProgram


def load() -> Any:
    return back_end


def back_end(program: LinearProgram, options: Options, start: object = None) -> Answer:
    extra = options.extra
    if "trace" in extra:
        left_over = Path(tempfile.gettempdir()) / "left_over"
        left_over.write_text("of a solver that was ended")
        trace = Path(str(extra["trace"]))
        (trace / "part").write_text(f"{os.getpid()} {left_over}")
        (trace / "part").rename(trace / "begun")
    if options.progress is not None:
        options.progress(Progress("working hard", 0.0, 7))
    match extra.get("does"):
        case "sleep":
            # As compiled code, which goes on whatever comes.
            ended = time.monotonic() + 300
            while time.monotonic() < ended:
                try:
                    time.sleep(0.1)
                except KeyboardInterrupt:
                    if "hears" in extra:
                        message = "stopped, with numbers"
                        return Answer(Status.INTERRUPTED, np.zeros(program.columns), None, 3, message, "1")
        case "die":
            os._exit(9)
        case "refuse":
            raise InputError("options.extra.does", "is refused", value="refuse", bound="another", remedy="ask for less")
        case "fail":
            raise ZeroDivisionError("nobody divides by 0")
    print("compiled code prints where it likes")
    x = np.full(program.columns, np.nan if options.time_limit is None else options.time_limit)
    return Answer(Status.FAILED, x, np.zeros(program.rows), 1, f"from {os.getpid()}, after {start}", "1")
