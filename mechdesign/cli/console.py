"""What commands show: results on standard output, everything else on standard error."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click
import rich.console
import rich.table
import rich.text
from rich.control import Control
from rich.segment import ControlType

from mechdesign.certify._texts import escape
from mechdesign.base._errors import RecognisedWarning

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from rich.console import RenderableType
    from rich.style import Style

    from mechdesign.certify._certificate import Certificate
    from mechdesign.model._words import Measure
    from mechdesign.solve._contract import Progress
    from mechdesign.solve._contract import ProgressCallback
    from mechdesign.synthesis._result import Design

__all__ = [
    "STALLED",
    "STOPPED",
    "Console",
    "Table",
    "Text",
    "certificate_tables",
    "errors",
    "missed_gap",
    "number",
    "output",
    "progress",
    "say",
    "say_error",
    "say_gap",
    "say_json",
    "say_note",
    "say_stopping",
    "say_warning",
    "show_next",
    "table",
]

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
