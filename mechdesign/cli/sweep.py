"""``mechdesign sweep``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mechdesign.base._deadline import promising
from mechdesign.cli._console import STOPPED, Text, at_least, at_most, errors, number, output, say_note, show_next, table

if TYPE_CHECKING:
    from mechdesign.runs._tasks import Sweep
    from mechdesign.runs.sweep import Moment, Result


# Seconds between two lines of progress if there is no terminal.
_PAUSE = 10.0
_MOST_SHOWN = 20


@click.command()
@click.argument("specification", metavar="SPEC.toml", type=click.Path(path_type=Path))
@click.option("-o", "--output", "folder", metavar="DIR", default="sweep", show_default=True, help="Folder to write.")
@click.option(
    "--jobs", metavar="N", type=int, help="Number of processes on this machine; default: one for each processor."
)
@click.option("--dask", metavar="ADDRESS", help="Use the Dask cluster with this scheduler instead of local processes.")
@click.option("--resume", is_flag=True, help="Run the missing rows in DIR; finished rows are not run again.")
def sweep(specification: Path, folder: str, jobs: int | None, dask: str | None, resume: bool) -> None:
    """Make a certified design for each of many values of a specification.

    SPEC.toml is a specification with a [sweep] table, which lists values for the paths of keys, such as
    "privacy.0.epsilon" = [0.5, 1, 2]. By default all combinations are designed; mode = "zip" combines the first values
    of all lists, the second ones, and so on.

    DIR gets results.csv, report.html, channels/ with a certified bundle for each design, and rows/, which --resume
    reads. Failed rows are listed in the table, and the exit code is 0. After Ctrl-C all finished rows remain, and the
    exit code is 130.

    Each design uses one thread, unless [solver] sets another number. Results do not depend on the number of processes
    or on a Dask cluster. The workers of a cluster need the same package versions, and the data at the same path.
    """
    # Imported late, so that `mechdesign --help` is fast.
    from mechdesign.base._errors import InputError
    from mechdesign.runs import _tasks as tasks
    from mechdesign.runs import sweep

    asked = tasks.read(specification)
    started = time.perf_counter()
    try:
        with _progress() as live, promising("keeping the designs that are finished"):
            result = sweep.run(asked, folder, jobs=jobs, dask=dask, resume=resume, progress=live)
    except InputError as error:
        if error.path not in ("jobs", "dask"):
            raise
        path, remedy = f"--{error.path}", error.remedy
        raise InputError(path, error.problem, value=error.value, bound=error.bound, remedy=remedy) from error
    if asked.private:
        say_note(asked.private)
    _show(asked, result, time.perf_counter() - started)
    if result.interrupted:
        say_note(f"stopped; {len(asked) - _count_finished(result)} rows remain, which --resume runs")
        click.get_current_context().exit(STOPPED)


@contextmanager
def _progress() -> Iterator[Callable[[Moment], None]]:
    """Show the number of finished rows, their rate, and the remaining time on standard error."""
    console = errors()
    if not console.is_terminal:
        yield _every_few_seconds()
        return
    from rich.progress import BarColumn, Progress, TextColumn

    with Progress(BarColumn(), TextColumn("{task.description}"), console=console, transient=True) as bar:
        task = bar.add_task("checking the listed designs", total=None)

        def report(moment: Moment) -> None:
            bar.update(task, total=moment.rows, completed=moment.done, description=_line(moment))

        yield report


def _every_few_seconds() -> Callable[[Moment], None]:
    shown = time.perf_counter()

    def report(moment: Moment) -> None:
        nonlocal shown
        if time.perf_counter() - shown >= _PAUSE:
            shown = time.perf_counter()
            print(_line(moment), file=sys.stderr, flush=True)

    return report


def _line(moment: Moment) -> str:
    parts = [f"{moment.done} of {moment.rows} rows"]
    if moment.failed:
        parts.append(f"{moment.failed} failed")
    if moment.rate:
        parts.append(f"{moment.rate:.3g} a second" if moment.rate >= 1 else f"{1 / moment.rate:.3g} s each")
    if moment.left is not None:
        parts.append(f"{_time(moment.left)} left")
    return " · ".join(parts)


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _show(asked: Sweep, result: Result, seconds: float) -> None:
    from mechdesign.runs._store import State
    from mechdesign.runs._tasks import cell

    console = output()
    console.print(Text(asked.title or "Privacy mechanisms", "bold"))
    ended = [f"{count} {state}" for state in State if (count := result.count(state))]
    console.print(f"{len(asked)} designs: {', '.join(ended) or 'none run'}\n")
    numbers = ("cost", "no less than", "relative gap", "tight ε")
    shown = table(*asked.values, "status", *numbers, numbers=numbers)
    for row in result.rows[:_MOST_SHOWN]:
        values = [row.values.get(name) for name in ("cost", "lower_bound", "relative_gap", "tight_epsilon")]
        write = (at_most, at_least, number, at_most)
        texts = [each(value) if isinstance(value, float) else "" for each, value in zip(write, values, strict=True)]
        texts[2] = f"{values[2]:.3g}" if isinstance(values[2], float) else ""
        style = "" if row.state is State.DONE else "yellow"
        shown.add_row(*(Text(str(cell(row.values[key]))) for key in asked.values), Text(row.state, style), *texts)
    console.print(shown)
    if len(result.rows) > _MOST_SHOWN:
        console.print(f"… and {len(result.rows) - _MOST_SHOWN} more rows in results.csv", soft_wrap=True)
    files = "results.csv, report.html, channels/, rows/"
    console.print(f"\ntime      {seconds:.1f} s")
    console.print(f"files     {result.folder}: {files}", soft_wrap=True)
    channel = next((row.values["channel"] for row in result.rows if row.values.get("channel")), None)
    following = {f"{result.folder}/report.html": "cost against privacy: open it in a browser"}
    if channel is not None:
        following[f"mechdesign verify {result.folder}/{channel}"] = "prove one of the designs again"
    show_next(following)


def _count_finished(result: Result) -> int:
    return sum(row.state.final for row in result.rows)
