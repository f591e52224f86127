"""Solvers in a process of their own, and how to wait for them.

Compiled solvers look at the clock, and for Ctrl-C, between some of their steps only, and a step may take minutes. So
large programs go to a new process, through its standard input, and the answer comes back through its standard output.
At the time limit the solver has a moment to give its numbers; then the process is ended, and there are none. The
process ends also when this one does, and the folder for its temporary files is removed with it.
"""

from __future__ import annotations

import _thread
import contextlib
import dataclasses
import math
import os
import pickle
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mechdesign.base._deadline import Deadline, Progress, Stop
from mechdesign.base._errors import InputError, MechdesignError, SolverError
from mechdesign.base._process import ENDING_S, GREETING_S, Child, start
from mechdesign.base._version import __version__
from mechdesign.solve._contract import Answer, Options, Status
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._registry import Solver

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
    deadline: Deadline,
    stop: Callable[[], None],
    patience: float = math.inf,
) -> bool:
    """Wait until `done`, for `patience` seconds at most; call `stop` on every Ctrl-C; return whether one came."""
    began = deadline.seconds()
    next_report = began + _SECONDS_BETWEEN_REPORTS
    interrupted = False
    while True:
        try:
            if not interrupted and deadline.stop() in (Stop.USER, Stop.USER_AGAIN):
                # Also where somebody else, such as a design within a report of progress, has acknowledged it.
                deadline.acknowledge()
                raise KeyboardInterrupt
            deadline.check()
            left = min(_LOOK, began + patience - deadline.seconds())
            if done.wait(max(left, 0.0)) or left <= 0:
                return interrupted
            if deadline.seconds() >= next_report:
                next_report = deadline.seconds() + _SECONDS_BETWEEN_REPORTS
                deadline.tell(moment.stage, moment.iteration)
        except KeyboardInterrupt:
            interrupted = True
            stop()


# Seconds after the time limit, and a part of it, in which the solver may still give its numbers.
_GRACE, _GRACE_SHARE = 1.0, 0.05
_LONGEST_GREETING = 200
_FIELDS = ("cost", "matrix", "row_lower", "row_upper", "lower", "upper")
_STOP = b"s"
# Options by which solvers are asked to print.
_TALKATIVE = ("disp", "output_flag", "verbose")


def solve_apart(solver: Solver, program: LinearProgram, options: Options, start: object = None) -> Answer:
    """Solve as the back end of `solver` does, in a process of its own.

    After Ctrl-C a solver that listens is asked for what it has; one that is deaf, or a second Ctrl-C, ends the process.
    A process that dies counts as a solver that failed.

    Raises:
        InputError: The back end refuses an option, or an option cannot be sent to another process.
        MissingDependencyError: The back end's package is not installed.
        SolverError: No process can be started.
    """
    deadline = options.deadline
    left = deadline.left()
    end = math.inf if left is None else deadline.seconds() + left * (1 + _GRACE_SHARE) + _GRACE
    task = _packed(solver, program, options, start)
    if deadline.left() == 0:
        return Answer(Status.TIME_LIMIT, None, None, 0, f"time limit: no time to begin {solver.name}", solver.name)
    with _process() as child:
        process: Any = child.process
        talk = _Conversation(child, task, Moment(solver.name), solver.deaf)
        thread = threading.Thread(target=talk.hold, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise SolverError(
                f"the system starts no thread for {solver.name} ({error}): raise its limit of processes"
            ) from error
        watch = threading.Timer(GREETING_S, lambda: talk.greeted.is_set() or process.kill())
        watch.daemon = True
        watch.start()
        with deadline.keeping():
            try:
                interrupted = wait(talk.done, talk.moment, deadline, talk.stop, end - deadline.seconds())
                late = not talk.done.is_set()
            finally:
                watch.cancel()
                watch.join()
                process.kill()
                thread.join(ENDING_S)
    if isinstance(talk.said, MechdesignError):
        raise talk.said
    if talk.said is not None:
        return talk.said
    return _explain_silence(solver, talk, late, interrupted, process.returncode)


def _explain_silence(solver: Solver, talk: _Conversation, late: bool, interrupted: bool, code: int) -> Answer:
    """Return why a process gave no answer; raise `SolverError` where it was none of ours."""
    if late:
        message = f"time limit: {solver.name} was ended before it gave any numbers"
        return Answer(Status.TIME_LIMIT, None, None, 0, message, solver.name)
    if interrupted:
        return Answer(Status.INTERRUPTED, None, None, 0, "stopped by the user", solver.name)
    if not talk.greeted.is_set():
        raise SolverError(
            f"{sys.executable}, started to run {solver.name}, did not say that it is this Python with mechdesign "
            f"{__version__}, and was ended (code {code}). Where Python is part of another program, choose a solver "
            "that runs in this process, or set sys.executable to a Python that has mechdesign"
        )
    message = f"the process that ran {solver.name} ended with code {code}"
    return Answer(Status.FAILED, None, None, 0, message, solver.name)


class _Conversation:
    """What is said to the process of a solver, and what it says: its answer, or an error, last."""

    def __init__(self, child: Child, task: bytes, moment: Moment, deaf: bool) -> None:
        self._child, self._process, self._task, self._deaf = child, child.process, task, deaf
        self._sent = threading.Event()
        self.moment = moment
        self.greeted, self.done = threading.Event(), threading.Event()
        self.said: Answer | MechdesignError | None = None

    def hold(self) -> None:
        """Hand the task over, and hear reports of progress until there is an answer."""
        process: Any = self._process
        try:
            # Nothing is read as an answer that another program says.
            if not self._child.has_greeted(process.stdout.readline(_LONGEST_GREETING)):
                return
            self.greeted.set()
            self._send(self._task)
            self._sent.set()
            while isinstance(message := pickle.load(process.stdout), Progress):
                self.moment.stage, self.moment.iteration = message.stage, message.iteration
            self.said = message
        except (OSError, ValueError, EOFError, pickle.UnpicklingError):
            # The process died, or was ended: what it said until then is all there is.
            pass
        finally:
            self.done.set()

    def stop(self) -> None:
        """Ask a solver that listens for what it has, once; end the process of any other one."""
        if self._deaf or self.moment.stop or not self._sent.is_set():
            self._process.kill()
            return
        self.moment.stop = True
        with contextlib.suppress(OSError, ValueError):
            self._send(_STOP)

    def _send(self, content: bytes) -> None:
        process: Any = self._process
        process.stdin.write(content)
        process.stdin.flush()


def _packed(solver: Solver, program: LinearProgram, options: Options, start: object) -> bytes:
    fields = {name: getattr(program, name) for name in _FIELDS}
    plain = dataclasses.replace(options, extra=dict(options.extra), progress=None)
    try:
        return pickle.dumps((solver, fields, plain, start, options.deadline.progress is not None), 5)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        problem = f"cannot be sent to the process of {solver.name} ({error})"
        raise InputError("options.extra", problem, value=plain.extra, remedy="give numbers and texts") from error


@contextlib.contextmanager
def _process() -> Iterator[Child]:
    """Start Python on `_serve`, with the same import path and out of reach of the terminal's Ctrl-C; end it."""
    try:
        holder = tempfile.TemporaryDirectory(prefix="mechdesign-", ignore_cleanup_errors=True)
    except OSError as error:
        raise SolverError(f"the solver's temporary files have no folder: {error}; set TMPDIR to one") from error
    with holder as folder:
        try:
            child = start(__name__, "_serve", {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)})
        except OSError as error:
            raise SolverError(f"no process could be started for the solver: {error}") from error
        try:
            yield child
        finally:
            child.end()


def _serve() -> None:
    """Read a task from standard input, solve it, and write reports and the answer to standard output."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    solver, fields, options, start, reports = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_listen, daemon=True).start()
    # Compiled solvers print to standard output: keep that apart from the answer.
    output = os.fdopen(os.dup(1), "wb")
    shown = any(options.extra.get(name) for name in _TALKATIVE)
    os.dup2(2 if shown else os.open(os.devnull, os.O_WRONLY), 1)

    def say(message: object) -> None:
        output.write(pickle.dumps(message, 5))
        output.flush()

    if reports:
        options = dataclasses.replace(options, deadline=Deadline(options.deadline.left(), say))
    options = options.begun()
    answer = _answered(solver, LinearProgram(**fields), options, start)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say(answer)
    os._exit(0)


def _answered(solver: Solver, program: LinearProgram, options: Options, start: object) -> Answer | MechdesignError:
    try:
        answer: Answer = solver.load()(program, options, start)
    except MechdesignError as error:
        return error
    except KeyboardInterrupt:
        return Answer(Status.INTERRUPTED, None, None, 0, "stopped by the user", solver.name)
    except Exception as error:
        # Whatever it is, the other side is to learn of it.
        return Answer(Status.FAILED, None, None, 0, f"{type(error).__name__}: {error}", solver.name)
    return answer


def _listen() -> None:
    """Do what the other side says; it keeps the pipe open for as long as it lives and wants the answer."""
    while sys.stdin.buffer.read(1) == _STOP:
        _thread.interrupt_main()
    os._exit(1)
