"""Run solvers in a separate process, and wait for running solvers.

Compiled solvers check the clock and Ctrl-C only between some of their steps, and a step may take minutes. Large
programs are therefore sent to a new process through its standard input; the answer returns through its standard output.
After the time limit the solver has a short grace period to return its numbers; then the process is killed. The process
also ends when its parent process ends, and its folder of temporary files is removed.
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

_REPORT_INTERVAL_S = 0.5
_POLL_INTERVAL_S = 0.1


@dataclass
class SolverState:
    """The stage and the iteration of a running solver, and whether a stop was requested."""

    stage: str
    iteration: int = 0
    stop: bool = False


def wait(
    done: threading.Event,
    state: SolverState,
    deadline: Deadline,
    stop: Callable[[], None],
    patience: float = math.inf,
) -> bool:
    """Wait for `done`, at most `patience` seconds; call `stop` on every Ctrl-C; return whether Ctrl-C was pressed."""
    began = deadline.seconds()
    next_report = began + _REPORT_INTERVAL_S
    interrupted = False
    while True:
        try:
            if not interrupted and deadline.stop() in (Stop.USER, Stop.USER_AGAIN):
                # Another function, such as a progress callback that computes a design, may already have acknowledged
                # the request.
                deadline.acknowledge()
                raise KeyboardInterrupt
            deadline.check()
            left = min(_POLL_INTERVAL_S, began + patience - deadline.seconds())
            if done.wait(max(left, 0.0)) or left <= 0:
                return interrupted
            if deadline.seconds() >= next_report:
                next_report = deadline.seconds() + _REPORT_INTERVAL_S
                deadline.tell(state.stage, state.iteration)
        except KeyboardInterrupt:
            interrupted = True
            stop()


# Grace period after the time limit, for the solver to return its numbers: seconds, and a share of the limit.
_GRACE_S = 1.0
_GRACE_SHARE = 0.05
_MAX_GREETING_BYTES = 200
_FIELDS = ("cost", "matrix", "row_lower", "row_upper", "lower", "upper")
_STOP = b"s"
# Options that make solvers print.
_PRINTING_OPTIONS = ("disp", "output_flag", "verbose")


def solve_apart(solver: Solver, program: LinearProgram, options: Options, start: object = None) -> Answer:
    """Solve with the back end of `solver` in a separate process.

    After Ctrl-C the process returns its current numbers. The process is killed after a second Ctrl-C, or after the
    first Ctrl-C if the solver ignores it. If the process dies, the status of the answer is FAILED.

    Args:
        solver: The solver.
        program: The program.
        options: Options of the solve.
        start: The starting point that the back end returned with an earlier answer, or None.

    Returns:
        The answer of the back end.

    Raises:
        InputError: The back end refuses an option, or an option cannot be sent to another process.
        MissingDependencyError: The back end's package is not installed.
        SolverError: No process can be started.
    """
    deadline = options.deadline
    left = deadline.left()
    end = math.inf if left is None else deadline.seconds() + left * (1 + _GRACE_SHARE) + _GRACE_S
    task = _pack_task(solver, program, options, start)
    if deadline.left() == 0:
        return Answer(Status.TIME_LIMIT, None, None, 0, f"time limit: no time left to start {solver.name}", solver.name)
    with _process() as child:
        process: Any = child.process
        talk = _Conversation(child, task, SolverState(solver.name), solver.deaf)
        thread = threading.Thread(target=talk.hold, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise SolverError(
                f"the system cannot start a thread for {solver.name} ({error}): raise the limit of processes"
            ) from error
        watch = threading.Timer(GREETING_S, talk.give_up)
        watch.daemon = True
        watch.start()
        with deadline.keeping():
            try:
                interrupted = wait(talk.done, talk.state, deadline, talk.stop, end - deadline.seconds())
                late = not talk.done.is_set()
            finally:
                watch.cancel()
                watch.join()
                child.kill()
                thread.join(ENDING_S)
                if thread.is_alive():
                    # A process that left the group keeps the pipe, which cannot be closed while the thread reads.
                    process.stdout = None
    if isinstance(talk.answer, MechdesignError):
        raise talk.answer
    if talk.answer is not None:
        return talk.answer
    return _explain_silence(solver, talk, late, interrupted, process.returncode)


def _explain_silence(solver: Solver, talk: _Conversation, late: bool, interrupted: bool, code: int) -> Answer:
    """Return an answer that explains why a process returned none; raise `SolverError` if it never identified itself."""
    if late:
        message = f"time limit: {solver.name} was stopped before it returned numbers"
        return Answer(Status.TIME_LIMIT, None, None, 0, message, solver.name)
    if interrupted:
        return Answer(Status.INTERRUPTED, None, None, 0, "stopped by the user", solver.name)
    if not talk.greeted.is_set():
        raise SolverError(
            f"{sys.executable}, started to run {solver.name}, did not identify itself as Python with mechdesign "
            f"{__version__} and was stopped (code {code}). If Python is embedded in another program, choose a solver "
            "that runs in this process, or set sys.executable to a Python with mechdesign"
        )
    message = f"the process that ran {solver.name} ended with code {code}"
    return Answer(Status.FAILED, None, None, 0, message, solver.name)


class _Conversation:
    """The exchange of messages with the process of a solver, which ends with an answer or an error."""

    def __init__(self, child: Child, task: bytes, state: SolverState, deaf: bool) -> None:
        self._child, self._process, self._task, self._deaf = child, child.process, task, deaf
        self._sent = threading.Event()
        self.state = state
        self.greeted, self.done = threading.Event(), threading.Event()
        self.answer: Answer | MechdesignError | None = None

    def hold(self) -> None:
        """Send the task, and receive progress reports until the answer arrives."""
        process: Any = self._process
        try:
            # The output of an unrelated program must not be read as an answer.
            if not self._child.has_greeted(process.stdout.readline(_MAX_GREETING_BYTES)):
                return
            self.greeted.set()
            self._send(self._task)
            self._sent.set()
            while isinstance(message := pickle.load(process.stdout), Progress):
                self.state.stage, self.state.iteration = message.stage, message.iteration
            self.answer = message
        except (OSError, ValueError, EOFError, pickle.UnpicklingError):
            # The process died or was killed, and sends nothing more.
            pass
        finally:
            self.done.set()

    def give_up(self) -> None:
        """Kill a process that has not greeted, and stop waiting for it."""
        if not self.greeted.is_set():
            self._child.kill()
            self.done.set()

    def stop(self) -> None:
        """Request the current numbers once from a solver that reacts to Ctrl-C; otherwise kill the process."""
        if self._deaf or self.state.stop or not self._sent.is_set():
            self._child.kill()
            return
        self.state.stop = True
        with contextlib.suppress(OSError, ValueError):
            self._send(_STOP)

    def _send(self, content: bytes) -> None:
        process: Any = self._process
        process.stdin.write(content)
        process.stdin.flush()


def _pack_task(solver: Solver, program: LinearProgram, options: Options, start: object) -> bytes:
    fields = {name: getattr(program, name) for name in _FIELDS}
    plain = dataclasses.replace(options, extra=dict(options.extra), progress=None)
    try:
        return pickle.dumps((solver, fields, plain, start, options.deadline.progress is not None), 5)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        problem = f"cannot be sent to the process of {solver.name} ({error})"
        raise InputError("options.extra", problem, value=plain.extra, remedy="use numbers and texts") from error


@contextlib.contextmanager
def _process() -> Iterator[Child]:
    """Start a Python process that runs `_serve`, isolated from the terminal's Ctrl-C; kill it at the end."""
    try:
        holder = tempfile.TemporaryDirectory(prefix="mechdesign-", ignore_cleanup_errors=True)
    except OSError as error:
        raise SolverError(f"no folder for the solver's temporary files: {error}; set TMPDIR") from error
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
    # Compiled solvers print to standard output, which must be separated from the answer.
    output = os.fdopen(os.dup(1), "wb")
    shown = any(options.extra.get(name) for name in _PRINTING_OPTIONS)
    os.dup2(2 if shown else os.open(os.devnull, os.O_WRONLY), 1)

    def say(message: object) -> None:
        output.write(pickle.dumps(message, 5))
        output.flush()

    if reports:
        options = dataclasses.replace(options, deadline=Deadline(options.deadline.left(), say))
    options = options.begun()
    answer = _solve_task(solver, LinearProgram(**fields), options, start)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say(answer)
    os._exit(0)


def _solve_task(solver: Solver, program: LinearProgram, options: Options, start: object) -> Answer | MechdesignError:
    try:
        answer: Answer = solver.load()(program, options, start)
    except MechdesignError as error:
        return error
    except KeyboardInterrupt:
        return Answer(Status.INTERRUPTED, None, None, 0, "stopped by the user", solver.name)
    except Exception as error:
        # Every error is reported to the parent process.
        return Answer(Status.FAILED, None, None, 0, f"{type(error).__name__}: {error}", solver.name)
    return answer


def _listen() -> None:
    """Execute commands of the parent process, which closes the pipe when it no longer needs the answer."""
    while sys.stdin.buffer.read(1) == _STOP:
        _thread.interrupt_main()
    os._exit(1)
