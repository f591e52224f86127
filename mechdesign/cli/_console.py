"""Output of commands: streams, messages, pictures, Ctrl-C, and what files tell.

Python tells the main thread of a signal only between two of its steps, and a call into compiled code may take minutes.
A thread of its own, to which the system passes signals on, says what is being done about Ctrl-C, and ends the process
where nothing is to be kept, or after a second Ctrl-C. It waits for files that are being written.

Results go to standard output, and a command whose results cannot be written says so by its exit code. What is said on
standard error does not change what a command does: there, what cannot be written is dropped.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import json
import os
import re
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import click
import rich.console
import rich.table
import rich.text
from rich.control import Control
from rich.segment import ControlType

from mechdesign.base import _atomic as atomic
from mechdesign.base._deadline import promise
from mechdesign.base._errors import InputError, MissingDependencyError, RecognisedWarning
from mechdesign.base._locks import WAIT_S, exists, lock_file_of
from mechdesign.certify._texts import escape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from rich.console import RenderableType
    from rich.style import Style

    from mechdesign.base._deadline import Progress, ProgressCallback
    from mechdesign.certify._certificate import Certificate
    from mechdesign.leakage.accounting import Ledger
    from mechdesign.model._origin import Origin
    from mechdesign.model._problem import Problem
    from mechdesign.model._words import Measure
    from mechdesign.synthesis._result import Design


STALLED = 3
"""The exit code where a design is certified and written, and rays stalled with a wide bracket."""

STOPPED = 130
"""The exit code after Ctrl-C, as shells have it."""

# What is not a terminal has no width; rich would cut tables at 80 characters.
_WIDTH = 120
# Where there is no terminal, so many seconds lie between two lines that say how far something is.
_PAUSE = 3.0
_PART = re.compile(r"(?:(\d+ of \d+): )?(.*)", re.DOTALL)


class Text(rich.text.Text):
    """A text with a style in which whatever is not printable is shown escaped, ends of lines as well."""

    def __init__(self, text: str = "", *arguments: Any, **keywords: Any) -> None:
        super().__init__(escape(text), *arguments, **keywords)

    def append(self, text: rich.text.Text | str, style: str | Style | None = None) -> Self:
        """Append a text, with what is not printable escaped."""
        super().append(escape(text) if isinstance(text, str) else text, style)
        return self


class Table(rich.table.Table):
    """A table whose texts are shown as `Text` shows them."""

    def add_row(self, *cells: RenderableType | None, **keywords: Any) -> None:
        """Add a row."""
        super().add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells), **keywords)

    def add_column(self, header: RenderableType = "", *arguments: Any, **keywords: Any) -> None:
        """Add a column."""
        super().add_column(Text(header) if isinstance(header, str) else header, *arguments, **keywords)


class Console(rich.console.Console):
    """A console on which nothing that a text from others holds moves the cursor, or turns other texts around.

    What is not printable is shown escaped; of a text that is printed, only ends of lines before and after it are kept.
    """

    def __init__(self, **keywords: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **keywords)

    def on_broken_pipe(self) -> None:
        """Let the command end as commands do where nobody reads their output; rich would exit with 1."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def render_str(self, text: str, **keywords: Any) -> rich.text.Text:
        """Return a text as rich shows it."""
        inner = text.strip("\n")
        start = text.index(inner) if inner else len(text)
        return super().render_str(text[:start] + escape(inner) + text[start + len(inner) :], **keywords)


def output() -> Console:
    """Return the console of standard output."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def errors() -> Console:
    """Return the console of standard error."""
    return Console(stderr=True)


def say(text: str, *, nl: bool = True) -> None:
    """Write lines to standard output, with what is not printable escaped."""
    click.echo(escape(text, lines=True), nl=nl)


def say_json(value: object) -> None:
    """Write a value to standard output as JSON, in which whatever is not printable is written as JSON escapes it."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    click.echo("".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text))


def say_error(message: str) -> None:
    """Show an error, in red where there is colour."""
    _say("error", "bold red", message)


def say_note(message: str) -> None:
    """Show something worth knowing."""
    _say("note", "yellow", message)


def say_stopping(promise: str) -> None:
    """Say what is done after Ctrl-C, on a line of its own where another one shows progress."""
    console = errors()
    console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))
    console.print(Text.assemble(("stopping: ", "yellow"), f"{promise}; Ctrl-C again ends at once"), soft_wrap=True)


def say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning, without the place in the program that it comes from; once what was recognised of a file."""
    if issubclass(category, RecognisedWarning):
        context = click.get_current_context(silent=True)
        told: set[str] = set() if context is None else context.meta.setdefault("mechdesign.recognised", set())
        if str(message) not in told:
            told.add(str(message))
            say_note(str(message))
        return
    _say("warning", "yellow", str(message))


def number(value: float) -> str:
    """Write a number with 10 significant digits."""
    return f"{value:.10g}"


def table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """Return an empty table; columns in `numbers` are aligned to the right."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return made


def certificate_tables(
    certificate: Certificate,
    names: Sequence[str] = (),
    measured: Measure | None = None,
    tolerance: float | None = None,
    bounded: Sequence[str] = (),
) -> Iterator[Table]:
    """Yield what a certificate says: requirement by requirement, then the cost and how many pairs are bounded.

    `names` are those of the requirements, `bounded` says how many pairs each bounds, and `measured` in what the cost
    is, where they are known.
    """
    requirements = table("requirement", "asked for", "achieved", "holds", numbers=("asked for", "achieved"))
    for index, checked in enumerate(certificate.requirements):
        name = names[index] if names else f"{checked.kind} privacy"
        if checked.radius and not names:
            name += f", radius {checked.radius}"
        symbol = "≥" if checked.at_least else f"{checked.symbol} ≤"
        realised = Text(number(checked.realised))
        requirements.add_row(
            Text(name),
            f"{symbol} {checked.nominal}",
            realised,
            Text("yes", "green") if checked.holds else Text("no", "red"),
        )
    if certificate.requirements:
        yield requirements
    costs = table("cost", "", numbers=("",))

    def written(value: float) -> str:
        return number(value) if measured is None else measured.with_root(value, number)

    for name, value, counts in (
        ("expected cost", certificate.expected_cost, certificate.objective == "expected"),
        ("worst cost", certificate.worst_cost, certificate.objective == "worst"),
    ):
        costs.add_row(Text(name + (" (minimised)" if counts else "")), Text(written(value)))
    costs.add_row("no channel costs less than", Text(written(certificate.lower_bound)))
    reached = tolerance is None or certificate.relative_gap <= tolerance
    gap = Text(f"{certificate.relative_gap:.3g}", "" if reached else "yellow")
    costs.add_row("relative gap", gap)
    for checked, pairs in zip(certificate.requirements, bounded, strict=False):
        if pairs:
            costs.add_row(Text(f"bounded by {checked.kind} privacy"), Text(pairs))
    if certificate.revealed:
        costs.add_row("secrets revealed for certain", Text(str(len(certificate.revealed)), "yellow"))
    if certificate.forbidden:
        costs.add_row("forbidden pairs of secret and answer", Text(str(certificate.forbidden)))
    yield costs


def show_next(commands: Mapping[str, str]) -> None:
    """Show what may be done next: commands, or files to open, each with what it shows."""
    shown = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
    for command, meaning in commands.items():
        shown.add_row(Text(command, "cyan"), meaning)
    console = output()
    console.print("\nnext", style="bold")
    console.print(shown)


def say_gap(made: Design, tolerance: float, which: str = "") -> None:
    """Say so when the gap that was asked for was not reached; `which` names the design where there are several."""
    if (gap := made.certificate.relative_gap) > tolerance:
        say_note(f"{which}{missed_gap(gap, tolerance)} ({made.status})")


def missed_gap(gap: float, tolerance: float) -> str:
    """Say what a relative gap above the one asked for means."""
    proved = f"proved to within {gap:.2g} of the least possible" if gap < 1 else "not bounded from below"
    return f"the cost is {proved}; {tolerance:.3g} was asked for. Privacy does not depend on it"


@contextmanager
def progress() -> Iterator[ProgressCallback]:
    """Show on standard error how far something is: a live line on a terminal, elsewhere a line every few seconds."""
    console = errors()
    line = _Line()
    if not console.is_terminal:
        yield _every_few_seconds(line)
        return
    with console.status(Text("starting")) as status:

        def report(moment: Progress) -> None:
            status.update(Text(line.after(moment)))

        yield report


def _every_few_seconds(line: _Line) -> ProgressCallback:
    """Return what prints a line now and then; whoever is done before the first one prints nothing."""
    shown = time.perf_counter()

    def report(moment: Progress) -> None:
        nonlocal shown
        text = line.after(moment)
        if time.perf_counter() - shown >= _PAUSE:
            shown = time.perf_counter()
            print(escape(text), file=sys.stderr, flush=True)

    return report


class _Line:
    """What the line says: the last round, with its bracket, is shown beside what the solver is at."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._round = ""
        self._bounds = ""

    def after(self, moment: Progress) -> str:
        """Return the line after `moment`."""
        if moment.lower is not None or moment.upper is not None:
            lower = "…" if moment.lower is None else f"{moment.lower:.6g}"
            upper = "…" if moment.upper is None else f"{moment.upper:.6g}"
            self._bounds = f"cost between {lower} and {upper}"
        # Which part of the work it is may stand before a stage.
        part, stage = _PART.fullmatch(moment.stage).groups("")  # type: ignore[union-attr]
        if stage.startswith("round"):
            self._round, stage = stage, ""
        elif moment.iteration:
            stage += f", iteration {moment.iteration}"
        seconds = f"{time.perf_counter() - self._start:.0f} s"
        return " · ".join(each for each in (part, self._round, stage, self._bounds, seconds) if each)


def _say(kind: str, style: str, message: str) -> None:
    console = errors()
    console.print(Text.assemble((f"{kind}: ", style), message), soft_wrap=True)


def load_pictures(module: str) -> None:
    """Import a module that draws; raise `MissingDependencyError` where that fails, as with a broken Matplotlib."""
    try:
        importlib.import_module(module)
    except Exception as error:  # What another package raises when it is loaded can be anything.
        message = f"pictures cannot be drawn: {error}. Repair Matplotlib; nothing was solved or spent"
        raise MissingDependencyError(message) from error


def say_private(problem: Problem, origin: Origin | None) -> None:
    """Show what the files of a design tell of data, and how a prior stays at home."""
    from mechdesign.report._private import COUNTED, HAND_ON, WRITTEN, private

    # Who wrote counts into a specification, which stands in the files, knows of them.
    for sentence in (said := [each for each in private(problem, origin) if each != WRITTEN]):
        say_note(sentence)
    if COUNTED in said:
        say_note(HAND_ON)


def say_private_folders(found: Iterable[tuple[str, Problem, Origin | None]], what: str) -> str:
    """Show, and return, which folders have a prior that was counted in data; `what` says what tells of it."""
    from mechdesign.report._private import COUNTED, private

    names = [name for name, problem, origin in found if COUNTED in private(problem, origin)]
    if not names:
        return ""
    said = f"the prior of {', '.join(names)} was counted in data: {what} rests on it, and is private"
    say_note(said)
    return said


wait_option = click.option(
    "--wait", metavar="SECONDS", type=float, default=WAIT_S, show_default=True,
    help="How long another process that uses the ledger is waited for.",
)  # fmt: skip


def announce(ledger: Ledger | None, public: Path) -> None:
    """Say which file will be charged, by its full path, and whether it is made for this; or that none is.

    Raises `InputError` where it lies in the folder that may be published.
    """
    if ledger is None:
        say_note("no ledger is charged: what is spent here is recorded nowhere but in what is released")
        return
    assert ledger.path is not None
    if public.resolve() in ledger.path.parents:
        raise InputError(
            "--output",
            "is the folder of the ledger, which is its owner's alone",
            value=str(public),
            bound=f"a folder that does not hold {ledger.path}",
        )
    lock = lock_file_of(ledger.path)
    if not exists(ledger.path):
        # Where there is no folder, or the lock of an earlier ledger stands, none is begun, and an error says so.
        if ledger.path.parent.is_dir() and not exists(lock):
            say_note(f"the ledger {ledger.path} is begun")
        return
    say_note(f"the ledger {ledger.path} is charged")
    for file in (ledger.path, lock):
        if os.name != "nt" and exists(file) and (mode := stat.S_IMODE(file.lstat().st_mode)) & 0o007:
            say_note(
                f"{file} is open to every user (mode {mode:04o}), as an earlier version made it, and is left so. Close "
                f"it with: chmod 600 {file}"
            )


def show_spending(ledger: Ledger) -> None:
    """Show what is left of a ledger's budget and, where there are several policies, what was spent under each."""
    from mechdesign.leakage._ledger_file import APART

    left = [
        f"{name} = {float(amount):.6g}"
        for name, amount in (("ε", ledger.remaining_epsilon), ("ρ", ledger.remaining_rho))
        if amount is not None
    ]
    output().print(f"left      {', '.join(left) or 'no limit was set'}", soft_wrap=True)
    if len(lines := ledger.by_policy) > 1:
        for line in lines:
            output().print(f"ledger    {line}", soft_wrap=True)
        output().print(f"          {APART}.", soft_wrap=True)


# So many seconds the main thread has to end by itself, tidily, before the process is ended.
_PATIENCE, _LESS_PATIENCE = 1.0, 0.3


@contextmanager
def watched() -> Iterator[None]:
    """Answer Ctrl-C during the block, in the main thread and unless the program ignores it."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    thread = threading.Thread(target=_watch, args=(receiver,), daemon=True)
    with receiver, sender:
        try:
            thread.start()
        except RuntimeError:
            # The system gives this process no further thread: Ctrl-C is answered when compiled code returns.
            yield
            return
        before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            sender.close()
            thread.join()


def _watch(receiver: socket.socket) -> None:
    """Read the numbers of signals until the other side is closed."""
    count = 0
    deadline: float | None = None
    while True:
        receiver.settimeout(None if deadline is None else max(1e-3, deadline - time.monotonic()))
        try:
            received = receiver.recv(64)
        except TimeoutError:
            promised = promise() if count == 1 else None
            if promised is None:
                _end()
            else:
                # The main thread has caught it, and found something to keep after all.
                say_stopping(promised)
                deadline = None
            continue
        if not received:
            return
        for _ in range(received.count(signal.SIGINT)):
            count += 1
            promised = promise()
            if count == 1 and promised is not None:
                say_stopping(promised)
            else:
                deadline = time.monotonic() + (_PATIENCE if count == 1 else _LESS_PATIENCE)


def _end() -> None:
    """End the process, as soon as no file is being written."""
    with atomic.WRITING:
        if sys.stderr.isatty():
            # A line that shows progress hides the cursor.
            os.write(sys.stderr.fileno(), b"\r\x1b[2K\x1b[?25h")
        say_error("stopped")
        os._exit(STOPPED)


def occupy_descriptors() -> None:
    """Open a null device for each standard descriptor that is closed, so that no file of ours takes its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The system gives the least number that is free, and those below are taken.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


@contextmanager
def usable() -> Iterator[None]:
    """Put streams that can be used in the place of standard ones in the block, and put the old ones back after it."""
    before = sys.stdin, sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        sys.stdin, sys.stdout = _open_or_null(before[0], "r", stack), _open_or_null(before[1], "w", stack)
        sys.stderr = _Forgiving(_open_or_null(before[2], "w", stack))
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


def divert(stream: TextIO | None) -> None:
    """Send what a stream still holds to a null device: Python would try to write it once more when it ends."""
    # A stream of a test, or of a notebook, has no descriptor.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())  # type: ignore[union-attr]
        finally:
            os.close(null)


def _open_or_null(stream: TextIO | None, mode: str, stack: contextlib.ExitStack) -> TextIO:
    """Return a stream with the encoding that ε and labels need, or a null device where there is none."""
    if stream is None or stream.closed:
        return cast(TextIO, stack.enter_context(open(os.devnull, mode, encoding="utf-8")))
    if mode == "w" and isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return stream


class _Forgiving:
    """A stream for notes: those that cannot be written are dropped."""

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
        """Write what is held back."""
        try:
            self._stream.flush()
        except OSError:
            divert(self._stream)
