"""Output of commands: streams, messages, progress, Ctrl-C, and notes on private data.

Python handles signals only between two steps of the main thread, and a call into compiled code may take minutes. So the
system passes signals to a separate thread. This thread announces the reaction to Ctrl-C. The thread ends the process if
no results must be kept, or after a second Ctrl-C, but first waits for files that are being written.

Results go to standard output, and a command whose results cannot be written has an exit code other than 0. Notes on
standard error do not change the result of a command: a note that cannot be written is dropped.
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
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import click
import rich.cells
import rich.console
import rich.table
import rich.text
from rich.control import Control
from rich.segment import ControlType

from mechdesign.base import _atomic as atomic
from mechdesign.base._deadline import promise
from mechdesign.base._errors import InputError, MissingDependencyError
from mechdesign.base._locks import WAIT_S, exists
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
    from mechdesign.report._headlines import Headline
    from mechdesign.synthesis._result import Design


STALLED = 3
"""Exit code of a certified and written design whose search by the method of rays stalled with a wide bracket."""

STOPPED = 130
"""Exit code after Ctrl-C, as in shells."""

# A file or a pipe has no width; rich would cut tables at 80 characters.
_WIDTH = 120
# Seconds between two lines of progress if there is no terminal.
_LINE_INTERVAL_S = 3.0
_PART = re.compile(r"(?:(\d+ of \d+): )?(.*)", re.DOTALL)


class Text(rich.text.Text):
    """A styled text in which characters that are not printable, including line ends, are escaped."""

    def __init__(self, text: str = "", *arguments: Any, **keywords: Any) -> None:
        super().__init__(escape(text), *arguments, **keywords)

    def append(self, text: rich.text.Text | str, style: str | Style | None = None) -> Self:
        """Append a text, with its unprintable characters escaped."""
        super().append(escape(text) if isinstance(text, str) else text, style)
        return self


class EscapedTable(rich.table.Table):
    """A table whose texts are escaped as in `Text`, and whose words are never broken.

    If the words do not fit the console, each row becomes a block. Below its first cell, each other cell is shown
    after the head of its column.
    """

    def add_row(self, *cells: RenderableType | None, **keywords: Any) -> None:
        """Add a row."""
        super().add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells), **keywords)

    def add_column(self, header: RenderableType = "", *arguments: Any, **keywords: Any) -> None:
        """Add a column."""
        super().add_column(Text(header) if isinstance(header, str) else header, *arguments, **keywords)

    def __rich_console__(
        self, console: rich.console.Console, options: rich.console.ConsoleOptions
    ) -> rich.console.RenderResult:
        ranges = [self._measure_column(console, options, column) for column in self.columns]
        if sum(each.minimum for each in ranges) > options.max_width:
            yield from self._stack_rows(options.max_width)
            return
        widths = [each.maximum for each in ranges]
        while sum(widths) > options.max_width:
            wide = [place for place, each in enumerate(ranges) if widths[place] > each.minimum]
            widths[max(wide, key=widths.__getitem__)] -= 1
        for column, width in zip(self.columns, widths, strict=True):
            column.width = width - self._get_padding_width(column._index)
        yield from super().__rich_console__(console, options)

    def _stack_rows(self, width: int) -> Iterator[rich.text.Text]:
        """Yield each row as lines: its first cell, and below it each other cell after the head of its column."""
        heads = [str(column.header) for column in self.columns]
        for first, *others in zip(*(list(column.cells) for column in self.columns), strict=True):
            yield wrap_text(rich.text.Text() + _as_text(first), width)
            for head, cell in zip(heads[1:], others, strict=True):
                if str(cell):
                    yield wrap_text(rich.text.Text(f"  {head}: " if head else "  ") + _as_text(cell), width)


def _as_text(cell: RenderableType) -> rich.text.Text:
    return cell if isinstance(cell, rich.text.Text) else Text(str(cell))


class Console(rich.console.Console):
    """A console on which control characters in printed texts have no effect.

    Unprintable characters are escaped; only line ends before and after a printed text are kept.
    """

    def __init__(self, **keywords: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **keywords)

    def on_broken_pipe(self) -> None:
        """Raise `BrokenPipeError`, which the command line handles; without this method, rich would exit with 1."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def print(self, *objects: Any, soft_wrap: bool | None = None, **keywords: Any) -> None:
        """Print objects; with `soft_wrap`, texts end their lines between words on a terminal, and nowhere else."""
        if soft_wrap and self.is_terminal:
            texts = [self.render_str(each) if isinstance(each, str) else each for each in objects]
            objects = tuple(wrap_text(each, self.width) for each in texts)
        super().print(*objects, soft_wrap=soft_wrap, **keywords)

    def render_str(self, text: str, **keywords: Any) -> rich.text.Text:
        """Return a text as rich shows it, with escaped characters."""
        inner = text.strip("\n")
        start = text.index(inner) if inner else len(text)
        return super().render_str(text[:start] + escape(inner) + text[start + len(inner) :], **keywords)


# A command between backticks stays on one line.
_WORD = re.compile(r"`[^`\n]*`\S*|\S+")
_COMMAND_OR_WORD = re.compile(r"\S+")
# The start of a line, below which its other lines are indented: a bullet, a label and its spaces, or spaces.
_START = re.compile(r"- |[^\s:]+ {2,}| +|")


def wrap_text(text: rich.text.Text, width: int) -> rich.text.Text:
    """Return a text whose lines have at most `width` characters, unless a word is longer; words are not broken.

    >>> print(wrap_text(rich.text.Text("files     city: channel.npz, certificate.json"), 30))
    files     city: channel.npz,
              certificate.json
    """
    lines = [piece for line in text.split("\n", allow_blank=True) for piece in _wrap_line(line, width)]
    return rich.text.Text("\n").join(lines)


def _wrap_line(line: rich.text.Text, width: int) -> Iterator[rich.text.Text]:
    if rich.cells.cell_len(line.plain) <= width:
        yield line
        return
    said = line.plain
    indent = len(cast(re.Match[str], _START.match(said)).group())
    words = [
        part
        for word in _WORD.finditer(said, indent)
        for part in ([word] if len(word.group()) <= width - indent else _COMMAND_OR_WORD.finditer(said, *word.span()))
    ]
    start, end = 0, indent
    for number, word in enumerate(words):
        room = width if start == 0 else width - indent
        if number and rich.cells.cell_len(said[start : word.end()]) > room:
            yield _indent(line[start:end], indent if start else 0)
            start = word.start()
        end = word.end()
    yield _indent(line[start:], indent if start else 0)


def _indent(line: rich.text.Text, count: int) -> rich.text.Text:
    return rich.text.Text(" " * count) + line


def output() -> Console:
    """Return the console of standard output."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def errors() -> Console:
    """Return the console of standard error."""
    return Console(stderr=True)


def say(text: str, *, nl: bool = True) -> None:
    """Write lines to standard output, with unprintable characters escaped."""
    click.echo(escape(text, lines=True), nl=nl)


def say_json(value: object) -> None:
    """Write a value to standard output as JSON, with unprintable characters as JSON escapes."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    click.echo("".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text))


def say_error(message: str) -> None:
    """Show an error, in red if the terminal has colours; three lines of Python in its remedy stay lines."""
    text, start, code = message.partition("\n    import pandas as pd\n")
    _say("error", "bold red", text)
    # A name of a file in the second line may contain line ends.
    for line in (start.strip("\n"), *code.rsplit("\n", 1)) if start else ():
        errors().print(Text(line), soft_wrap=True)


def say_note(message: str) -> None:
    """Show a note."""
    _say("note", "yellow", message)


def say_stopping(promise: str) -> None:
    """Announce the reaction to Ctrl-C on a new line, even if the current line shows progress."""
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
    """Show each warning once, without its file and line number."""
    context = click.get_current_context(silent=True)
    told: set[str] = set() if context is None else context.meta.setdefault("mechdesign.warnings", set())
    if str(message) not in told:
        told.add(str(message))
        _say("warning", "yellow", str(message))


def number(value: float) -> str:
    """Write a number with 4 significant digits; JSON and files have all digits."""
    # Imported late, as below, because most commands start without these modules.
    from mechdesign.model._words import short

    return short(value, 4)


def at_most(value: float) -> str:
    """Write an upper bound with 4 significant digits, rounded up; values below 0 are rounded to the nearest."""
    from mechdesign.model._words import format_bound

    return format_bound(value, up=True, digits=4)


def at_least(value: float) -> str:
    """Write a lower bound with 4 significant digits, rounded down; values below 0 are rounded to the nearest."""
    from mechdesign.model._words import format_bound

    return format_bound(value, up=False, digits=4)


def table(*columns: str, numbers: Sequence[str] = ()) -> EscapedTable:
    """Return an empty table; columns in `numbers` are aligned to the right."""
    made = EscapedTable(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return made


def certificate_tables(
    certificate: Certificate,
    names: Sequence[str] = (),
    measured: Measure | None = None,
    tolerance: float | None = None,
    bounded: Sequence[str] = (),
    stands_in: bool = False,
) -> Iterator[EscapedTable]:
    """Yield the tables of a certificate: its requirements, then its costs and the numbers of bounded pairs.

    `names` are the names of the requirements, `bounded` the numbers of pairs that they bound, and `measured` the unit
    of the cost, if known. `stands_in` is whether the prior is uniform in place of a private one.
    """
    from mechdesign.report._headlines import write_achieved

    requirements = table("requirement", "required", "achieved", "holds", numbers=("required", "achieved"))
    for index, checked in enumerate(certificate.requirements):
        name = names[index] if names else f"{checked.kind} privacy"
        if checked.radius and not names:
            name += f", radius {checked.radius}"
        symbol = "≥" if checked.at_least else f"{checked.symbol} ≤"
        requirements.add_row(
            Text(name),
            f"{symbol} {checked.nominal}",
            Text(write_achieved(checked)),
            Text("yes", "green") if checked.holds else Text("no", "red"),
        )
    if certificate.requirements:
        yield requirements
    costs = table("cost", "", numbers=("",))

    def format_cost(value: float, write: Callable[[float], str] = at_most) -> str:
        return write(value) if measured is None else measured.with_root(value, write)

    for aim, value in (("expected", certificate.expected_cost), ("worst", certificate.worst_cost)):
        name = f"cost ({aim})" if certificate.objective == aim else f"{aim} cost"
        how = " under a uniform prior" if stands_in and aim == "expected" else ""
        costs.add_row(Text(name + how), Text(format_cost(value)))
    costs.add_row("no such channel costs less than", Text(format_cost(certificate.lower_bound, at_least)))
    reached = tolerance is None or certificate.relative_gap <= tolerance
    gap = Text(f"{certificate.relative_gap:.3g}", "" if reached else "yellow")
    costs.add_row("relative gap", gap)
    kinds = [checked.kind for checked, pairs in zip(certificate.requirements, bounded, strict=False) if pairs]
    for index, (checked, pairs) in enumerate(zip(certificate.requirements, bounded, strict=False)):
        if pairs:
            # A requirement may make several claims, and several requirements may have one kind.
            alone = kinds.count(checked.kind) == 1 or not names
            costs.add_row(
                Text(f"bounded by {checked.kind} privacy" if alone else f"bounded, {names[index]}"), Text(pairs)
            )
    if certificate.revealed:
        costs.add_row("secrets revealed for certain", Text(str(len(certificate.revealed)), "yellow"))
    if certificate.forbidden:
        costs.add_row("forbidden pairs of secret and answer", Text(str(certificate.forbidden)))
    yield costs


def certificate_to_json(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as JSON values, with the cost of its objective under the name "cost"."""
    aim = f"{certificate.objective}_cost"
    return {name.replace(aim, "cost"): value for name, value in certificate.to_json().items()}


def show_verdict(found: Headline) -> None:
    """Show a verdict, with its first words in green or red, and an empty line."""
    text = Text.assemble((found.short, "bold green" if found.good else "bold red"), " ", found.long)
    output().print(text, soft_wrap=True)
    output().print()


def show_next(commands: Mapping[str, str]) -> None:
    """Show possible next steps: commands, or files to open, each on its own line above its description."""
    console = output()
    console.print("\nnext", style="bold")
    for command, meaning in commands.items():
        console.print(Text(command, "cyan"), no_wrap=True, crop=False, overflow="ignore")
        console.print(f"    {meaning}", soft_wrap=True)


def say_gap(made: Design, tolerance: float, which: str = "") -> None:
    """Show a note if the requested gap was not reached; `which` names the design if there are several.

    Above 2 %, the design itself has warned.
    """
    from mechdesign.synthesis._result import USUAL_GAP

    if tolerance < (gap := made.certificate.relative_gap) <= USUAL_GAP:
        say_note(f"{which}{describe_gap(gap, tolerance)} ({made.status})")


def describe_gap(gap: float, tolerance: float) -> str:
    """Return a sentence on a relative gap that exceeds the requested gap."""
    proved = f"proved to within {gap:.2g} of the least possible" if gap < 1 else "not bounded from below"
    return f"the cost is {proved}; the tolerance is {tolerance:.3g}. Privacy does not depend on the gap"


@contextmanager
def progress() -> Iterator[ProgressCallback]:
    """Show progress on standard error: a live line on a terminal, elsewhere a line every few seconds."""
    console = errors()
    line = _ProgressLine()
    if not console.is_terminal:
        yield _every_few_seconds(line)
        return
    with console.status(Text("starting")) as status:

        def report(moment: Progress) -> None:
            status.update(Text(line.after(moment)))

        yield report


def _every_few_seconds(line: _ProgressLine) -> ProgressCallback:
    """Return a callback that prints a line every few seconds, but prints nothing during shorter work."""
    shown = time.perf_counter()

    def report(moment: Progress) -> None:
        nonlocal shown
        text = line.after(moment)
        if time.perf_counter() - shown >= _LINE_INTERVAL_S:
            shown = time.perf_counter()
            print(escape(text), file=sys.stderr, flush=True)

    return report


class _ProgressLine:
    """The line of progress: the last round with its bracket, and the current stage of the solver."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._last_round = ""
        self._bounds = ""

    def after(self, moment: Progress) -> str:
        """Return the updated line for a new message of the solver."""
        if moment.lower is not None or moment.upper is not None:
            lower = "…" if moment.lower is None else f"{moment.lower:.6g}"
            upper = "…" if moment.upper is None else f"{moment.upper:.6g}"
            self._bounds = f"cost between {lower} and {upper}"
        # The stage may begin with the number of the design.
        part, stage = _PART.fullmatch(moment.stage).groups("")  # type: ignore[union-attr]
        if stage.startswith("round"):
            self._last_round, stage = stage, ""
        elif moment.iteration:
            stage += f", iteration {moment.iteration}"
        seconds = f"{time.perf_counter() - self._start:.0f} s"
        return " · ".join(each for each in (part, self._last_round, stage, self._bounds, seconds) if each)


def _say(kind: str, style: str, message: str) -> None:
    console = errors()
    console.print(Text.assemble((f"{kind}: ", style), message), soft_wrap=True)


def load_pictures(module: str) -> None:
    """Import a module that draws; raise `MissingDependencyError` if that fails, as without Matplotlib."""
    try:
        importlib.import_module(module)
    except Exception as error:  # Loading another package can raise any error.
        message = f"figures cannot be drawn: {error}. Repair its package; nothing was solved or spent"
        raise MissingDependencyError(message) from error


def say_private(problem: Problem, origin: Origin | None) -> None:
    """Show notes on private data in the files of a design, and on bundles without the prior."""
    from mechdesign.report._private import COUNTED, HAND_ON, WRITTEN, private
    from mechdesign.synthesis._without_prior import find_obstacle

    # Users who wrote counts into the specification know that its copy in the files contains them.
    for sentence in (said := [each for each in private(problem, origin) if each != WRITTEN]):
        say_note(sentence)
    if COUNTED in said and find_obstacle(problem) is None:
        say_note(HAND_ON)


def say_private_folders(found: Iterable[tuple[str, Problem, Origin | None]], what: str) -> str:
    """Show and return notes on folders whose prior was counted in data, or whose prior stands in for a private one.

    `what` names the result that depends on the prior.
    """
    from mechdesign.report._private import COUNTED, private

    found, said = list(found), []
    if names := [name for name, problem, origin in found if COUNTED in private(problem, origin)]:
        said.append(f"the prior of {', '.join(names)} was counted in data: {what} depends on it, and is private")
    if names := [name for name, _, origin in found if origin is not None and origin.has_substitute_prior]:
        said.append(f"expected costs and errors of {', '.join(names)} are under a uniform prior, not a private one")
    for sentence in said:
        say_note(sentence)
    return "; ".join(said)


wait_option = click.option(
    "--wait", metavar="SECONDS", type=float, default=WAIT_S, show_default=True,
    help="Seconds to wait for another process that uses the ledger.",
)  # fmt: skip


no_series_option = click.option(
    "--no-series", "series", flag_value=False, default=None, type=bool,
    help="Release outside the series of the ledger, whose limit of the leakage does not count this release.",
)  # fmt: skip


def announce(ledger: Ledger | None, public: Path) -> None:
    """Show the full path of the ledger of a release, or state that no ledger is charged.

    A new ledger is shown at the end of the command, if it was created. Raises `InputError` if the ledger is in the
    folder that may be published.
    """
    if ledger is None:
        say_note("no ledger is charged: only the released files record the spent budget")
        return
    path = ledger.path
    assert path is not None
    if public.resolve() in path.parents:
        raise InputError(
            "--output",
            "is the folder of the ledger, which is private",
            value=str(public),
            bound=f"a folder that does not contain {path}",
        )
    if exists(path):
        say_note(f"the ledger of this release is {path}")
        return

    def say_created() -> None:
        if exists(path):
            say_note(f"the ledger {path} was created")

    click.get_current_context().call_on_close(say_created)


def show_spending(ledger: Ledger) -> None:
    """Show the remaining budget of a ledger and, with several policies, the spending under each policy."""
    from mechdesign.leakage._entries import APART

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


# Seconds that the main thread has for ending cleanly, before the process is ended.
_END_TIMEOUT_S, _SECOND_END_TIMEOUT_S = 1.0, 0.3


@contextmanager
def watch_signals() -> Iterator[None]:
    """Handle Ctrl-C during a block in the main thread, unless the program ignores Ctrl-C."""
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
            # The system allows no further thread: Ctrl-C is handled when compiled code returns.
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
    """Read signal numbers until the sending socket is closed."""
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
                # The main thread has caught the signal and will keep partial results.
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
                deadline = time.monotonic() + (_END_TIMEOUT_S if count == 1 else _SECOND_END_TIMEOUT_S)


def _end() -> None:
    """End the process, as soon as no file is being written."""
    with atomic.WRITING:
        if sys.stderr.isatty():
            # The progress line hides the cursor.
            os.write(sys.stderr.fileno(), b"\r\x1b[2K\x1b[?25h")
        say_error("stopped")
        os._exit(STOPPED)


def occupy_descriptors() -> None:
    """Open a null device for each closed standard descriptor, so that none of our files gets its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The system assigns the least free number, and all smaller ones are taken.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


@contextmanager
def use_open_streams() -> Iterator[None]:
    """Replace unusable standard streams during the block, and restore the old streams after it."""
    before = sys.stdin, sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        sys.stdin, sys.stdout = _open_or_null(before[0], "r", stack), _open_or_null(before[1], "w", stack)
        sys.stderr = _NotesStream(_open_or_null(before[2], "w", stack))
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


def divert(stream: TextIO | None) -> None:
    """Send the unwritten output of a stream to a null device; Python would try to write it again at its exit."""
    # A stream of a test or a notebook has no descriptor.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())  # type: ignore[union-attr]
        finally:
            os.close(null)


def _open_or_null(stream: TextIO | None, mode: str, stack: contextlib.ExitStack) -> TextIO:
    """Return the stream with an encoding for ε and labels, or a null device if the stream is missing."""
    if stream is None or stream.closed:
        return cast(TextIO, stack.enter_context(open(os.devnull, mode, encoding="utf-8")))
    if mode == "w" and isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return stream


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
