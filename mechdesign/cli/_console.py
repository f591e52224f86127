"""The console of a command: messages, progress, notes on private data, Ctrl-C and the standard streams.

Python handles signals only between two steps of the main thread, and a call into compiled code may take minutes. So the
system passes signals to a separate thread. This thread announces the reaction to Ctrl-C. The thread ends the process if
no results must be kept, or after a second Ctrl-C, but first waits for files that are being written.

Results go to standard output, and a command whose results cannot be written has an exit code other than 0. Notes on
standard error do not change the result of a command: a note that cannot be written is dropped.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from mechdesign.base import _atomic as atomic
from mechdesign.base._deadline import Progress as Moment
from mechdesign.base._deadline import promise
from mechdesign.base._errors import MissingDependencyError
from mechdesign.certify._texts import escape

if TYPE_CHECKING:
    from rich.console import Console

    from mechdesign.base._deadline import ProgressCallback
    from mechdesign.model._origin import Origin
    from mechdesign.model._problem import Problem
    from mechdesign.synthesis._result import Design


WIDE = 3
"""Exit code of a certified and written design whose search ended with a wide bracket."""

STOPPED = 130
"""Exit code after Ctrl-C, as in shells."""

# Seconds between two lines of progress if there is no terminal.
_LINE_INTERVAL_S = 3.0
# Seconds until progress is shown, and between two updates of a bar.
_DELAY_S, _REFRESH_S = 2.0, 0.2
_PART = re.compile(r"(?:((\d+) of (\d+)): )?(.*)", re.DOTALL)
# The key of the line of progress that the command shows.
_LINE = "mechdesign.progress"
# Characters of a bar of progress.
_BAR = 20


def errors() -> Console:
    """Return the console of standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def say_error(message: str) -> None:
    """Show an error; three lines of Python in its remedy stay lines."""
    text, start, code = message.partition("\n    import pandas as pd\n")
    _say("error", text)
    # A name of a file in the second line may contain line ends.
    for line in (start.strip("\n"), *code.rsplit("\n", 1)) if start else ():
        click.echo(escape(line), err=True)


def say_note(message: str) -> None:
    """Show a note."""
    _say("note", message)


def say_stopping(promise: str) -> None:
    """Announce the reaction to Ctrl-C on a new line, even if the current line shows progress."""
    start = "\r\x1b[2K" if sys.stderr.isatty() else ""
    print(f"{start}stopping: {escape(promise)}; Ctrl-C again ends at once", file=sys.stderr, flush=True)


def say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show each warning once, without its file and line number."""
    context = click.get_current_context(silent=True)
    told: set[str] = set() if context is None else context.meta.setdefault("mechdesign.warnings", set())
    if str(message) not in told:
        told.add(str(message))
        _say("warning", str(message))


def say_gap(made: Design, tolerance: float) -> None:
    """Show a note if the requested gap was not reached. Above 2 %, the design itself has warned."""
    from mechdesign.synthesis._result import USUAL_GAP

    if tolerance < (gap := made.certificate.relative_gap) <= USUAL_GAP:
        say_note(f"{describe_gap(gap, tolerance)} ({made.status})")


def describe_gap(gap: float, tolerance: float) -> str:
    """Return a sentence on a relative gap that exceeds the requested gap."""
    proved = f"proved to within {gap:.2g} of the least possible" if gap < 1 else "not bounded from below"
    return f"the cost is {proved}; the tolerance is {tolerance:.3g}. Privacy does not depend on the gap"


@contextmanager
def progress(stage: str = "starting") -> Iterator[ProgressCallback]:
    """Show the stage and the time left of work that takes longer than 2 s on standard error.

    A thread shows a bar on a terminal, and elsewhere a line every few seconds. `stage` is shown until the work reports.
    If the command shows progress already, only the stage changes.
    """
    context = click.get_current_context(silent=True)
    meta = {} if context is None else context.meta
    if (shown := meta.get(_LINE)) is not None:
        shown.note(Moment(stage, 0.0))
        yield shown.note
        return
    line, ended = meta.setdefault(_LINE, _ProgressLine(stage)), threading.Event()
    thread = threading.Thread(target=_show, args=(line, ended), daemon=True)
    thread.start()
    try:
        yield line.note
    finally:
        ended.set()
        thread.join()
        meta.pop(_LINE, None)


def _show(line: _ProgressLine, ended: threading.Event) -> None:
    """Show the line until the work has ended."""
    if ended.wait(_DELAY_S):
        return
    if not errors().is_terminal:
        while not ended.wait(_LINE_INTERVAL_S):
            print(escape(line.text()), file=sys.stderr, flush=True)
        return
    # Imported late, because most commands end before.
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(_BAR))
    with Progress(*columns, console=errors(), transient=True) as bar:
        task = bar.add_task("", total=None)
        while True:
            bar.update(task, description=escape(line.text()), completed=line.done, total=line.parts)
            if ended.wait(_REFRESH_S):
                return


class _ProgressLine:
    """The line of progress: the last round with its bracket, the current stage, and the time left if it is known.

    A stage such as "3 of 7: HiGHS" is a part of the work.
    """

    def __init__(self, stage: str) -> None:
        self._start = self._first_time = time.perf_counter()
        self._part, self._last_round, self._stage, self._bounds = "", "", stage, ""
        self._limit: float | None = None
        self._first_done, self.done, self.parts = 0, 0, cast("int | None", None)

    def note(self, moment: Moment) -> None:
        """Take a new message of the solver."""
        if moment.lower is not None or moment.upper is not None:
            lower = "…" if moment.lower is None else f"{moment.lower:.6g}"
            upper = "…" if moment.upper is None else f"{moment.upper:.6g}"
            self._bounds = f"cost between {lower} and {upper}"
        self._limit = None if moment.left is None else time.perf_counter() + moment.left
        self._part, number, count, stage = _PART.fullmatch(moment.stage).groups("")  # type: ignore[union-attr]
        if self._part:
            self.done = int(number) - 1
            if self.parts is None:
                # Work of an earlier call does not count for the speed.
                self._first_done, self._first_time = self.done, time.perf_counter()
            self.parts = int(count)
        if stage.startswith("round"):
            self._last_round, stage = stage, ""
        elif moment.iteration:
            stage += f", iteration {moment.iteration}"
        self._stage = stage

    def text(self) -> str:
        """Return the line as it is now."""
        now = time.perf_counter()
        seconds, left = now - self._start, ""
        if self.parts is not None and self.done > self._first_done:
            each = (now - self._first_time) / (self.done - self._first_done)
            left = f"about {each * (self.parts - self.done):.0f} s left"
        elif self._limit is not None:
            left = f"at most {max(0.0, self._limit - now):.0f} s left"
        parts = (self._part, self._last_round, self._stage, self._bounds, f"{seconds:.0f} s", left)
        return " · ".join(filter(None, parts))


def _say(kind: str, message: str) -> None:
    click.echo(f"{kind}: {escape(message)}", err=True)


def load_pictures(module: str) -> None:
    """Import a module that draws; raise `MissingDependencyError` if that fails, as without Matplotlib."""
    try:
        importlib.import_module(module)
    except Exception as error:  # Loading another package can raise any error.
        message = f"figures cannot be drawn: {error}. Repair its package; nothing was solved or spent"
        raise MissingDependencyError(message) from error


def say_private(problem: Problem, origin: Origin | None) -> None:
    """Show notes on private data in the files of a design, and on bundles without the prior."""
    from mechdesign.report._statements import COUNTED, HAND_ON, WRITTEN, private
    from mechdesign.synthesis._result import find_obstacle

    # Users who wrote counts into the specification know that its copy in the files contains them.
    for sentence in (said := [each for each in private(problem, origin) if each != WRITTEN]):
        say_note(sentence)
    if COUNTED in said and find_obstacle(problem) is None:
        say_note(HAND_ON)


def say_private_folders(found: Iterable[tuple[str, Problem, Origin | None]], what: str) -> str:
    """Show and return notes on folders whose prior was counted in data, or whose prior stands in for a private one.

    `what` names the result that depends on the prior.
    """
    from mechdesign.report._statements import COUNTED, private

    found, said = list(found), []
    if names := [name for name, problem, origin in found if COUNTED in private(problem, origin)]:
        said.append(f"the prior of {', '.join(names)} was counted in data: {what} depends on it, and is private")
    if names := [name for name, _, origin in found if origin is not None and origin.has_substitute_prior]:
        said.append(f"expected costs and errors of {', '.join(names)} are under a uniform prior, not a private one")
    for sentence in said:
        say_note(sentence)
    return "; ".join(said)


# Seconds that the main thread has for ending cleanly, before the process is ended.
_END_TIMEOUT_S = 0.5
_STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}


@contextmanager
def watch_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt at Ctrl-C during a block in the main thread, unless the program ignores Ctrl-C."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    thread = threading.Thread(target=_watch, args=(receiver,), daemon=True)
    with receiver, sender:
        thread.start()
        try:
            signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            signal.set_wakeup_fd(-1)
            sender.close()
            thread.join()


def _watch(receiver: socket.socket) -> None:
    """Answer each Ctrl-C, which arrives as a byte, until the sending socket is closed."""
    count = 0
    while True:
        try:
            if not receiver.recv(1):
                return
        except TimeoutError:
            # By then the main thread may have caught the signal, and be saving partial results.
            if count > 1 or promise() is None:
                _end()
        else:
            count += 1
        promised = promise() if count == 1 else None
        if promised is not None:
            say_stopping(promised)
        receiver.settimeout(_END_TIMEOUT_S if promised is None else None)


def _end() -> None:
    """End the process, as soon as no file is being written."""
    with atomic.WRITING:
        if sys.stderr.isatty():
            # The progress line hides the cursor.
            os.write(sys.stderr.fileno(), b"\r\x1b[2K\x1b[?25h")
        say_error("stopped")
        os._exit(STOPPED)


@contextmanager
def use_streams() -> Iterator[None]:
    """Write UTF-8 in the block, for ε and labels; drop notes that cannot be written and output to closed streams."""
    for name, mode in _STREAMS.items():
        if getattr(sys, name) is None:
            # The system assigns the least free number, which is that of the closed stream: no file of ours may get it.
            null = open(os.devnull, mode)  # noqa: SIM115
            os.set_inheritable(null.fileno(), True)
            setattr(sys, name, null)
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # With PYTHONUNBUFFERED, Python raises no error if a disk is full or a pipe is closed, and loses the output.
        sys.stdout = open(  # noqa: SIM115
            sys.stdout.fileno(), "w", encoding="utf-8", errors="backslashreplace", closefd=False
        )
    sys.stderr = _NotesStream(sys.stderr)
    hook = sys.unraisablehook
    sys.unraisablehook = partial(_print_unraisable, hook)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        sys.stdout, sys.stderr = before


def _print_unraisable(hook: Callable[[Any], object], unraisable: Any) -> None:
    """Print an error that Python cannot raise, but no Ctrl-C in an import, and no end of what it left half made."""
    kind, name = unraisable.exc_type, getattr(unraisable.object, "__name__", "")
    if kind is not KeyboardInterrupt and (kind is not AttributeError or name != "__del__"):
        hook(unraisable)


def divert(stream: TextIO) -> None:
    """Send the unwritten output of a stream to a null device; Python would try to write it again at its exit."""
    # A stream of a test or a notebook has no descriptor.
    with contextlib.suppress(OSError), open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), stream.fileno())


class _NotesStream:
    """A stream for notes, which drops notes that cannot be written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return self._stream.write(text)
        except OSError:
            divert(self._stream)
            return len(text)

    def flush(self) -> None:
        """Write the buffered text."""
        try:
            self._stream.flush()
        except OSError:
            divert(self._stream)
